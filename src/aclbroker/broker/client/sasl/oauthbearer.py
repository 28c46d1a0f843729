r"""The client's side of OAUTHBEARER (RFC 7628), as Kafka's OAuthBearerSaslClient; no I/O.

The message is `n,,^Aauth=Bearer TOKEN^A[KEY=VALUE^A]...^A` with ^A for the byte 1. A broker that
refuses the token says why in JSON, which a single ^A answers before the login fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.sasl.mechanism import MakeClient
from aclbroker.broker.client.sasl.tokens import token_source

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings

_SEPARATOR: Final = "\x01"
_EXTENSION: Final = re.compile(r"(?:unsecuredLoginExtension|extension)_(?P<key>.*)", re.DOTALL)
_KEY: Final = re.compile(r"(?!auth$)[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")


def from_settings(settings: ClientSettings) -> MakeClient:
    """Return what makes clients with the token that the settings tell how to get."""
    options = settings.jaas.options if settings.jaas else {}
    extensions = _extensions(options)
    token = token_source(settings)
    return lambda host: OAuthBearerClient(token, extensions)


class OAuthBearerClient:
    """One exchange: a message with the token, which the broker answers with nothing."""

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = extensions

    def first(self) -> bytes:
        """Return the token and the extensions; raises `ClientError` if there is no token."""
        token = self._token()
        if _TOKEN.fullmatch(token) is None:
            raise ClientConfigError("the access token has characters that no token has")
        pairs = "".join(f"{key}={value}{_SEPARATOR}" for key, value in self._extensions.items())
        parts = ("n,,", f"auth=Bearer {token}", pairs + _SEPARATOR)
        return _SEPARATOR.join(parts).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Return None, or to a broker that refuses the token what makes it end the exchange."""
        return _SEPARATOR.encode() if challenge else None


def _extensions(options: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, value in options.items():
        match = _EXTENSION.fullmatch(name)
        if match is None:
            continue
        if not _KEY.fullmatch(match["key"]) or not _VALUE.fullmatch(value):
            raise ClientConfigError(
                f"sasl.jaas.config: {name}: allowed: a key of letters other than auth, and a value "
                "of ASCII characters"
            )
        found[match["key"]] = value
    return found
