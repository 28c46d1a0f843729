"""What a mechanism is to a client, and how Kafka's settings choose one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from aclbroker.broker.client.errors import ClientConfigError

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings

_PACKAGE: Final = "org.apache.kafka.common.security."


class SaslClient(Protocol):
    """The client's side of one exchange, without I/O."""

    def first(self) -> bytes:
        """Return the first message. Raises `ClientError` if the client has no credentials."""

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the answer to what the broker sent, None if the exchange is over.

        Raises `AuthenticationRefused` if the broker does not prove what it has to.
        """


MakeClient = Callable[[str], SaslClient]
"""Makes the client's side of an exchange with the broker of a host name."""


def sasl_client(settings: ClientSettings) -> MakeClient:
    """Return what makes a client of the mechanism that the settings name.

    Raises `ClientConfigError`, also for credentials that the settings lack.
    """
    name = settings.mechanism
    if name not in _MECHANISMS:
        raise ClientConfigError(
            f"sasl.mechanism={name!r}: aclbroker cannot do that; allowed: {', '.join(_MECHANISMS)}"
        )
    module, login_module = _MECHANISMS[name]
    if settings.jaas is None or settings.jaas.login_module != login_module:
        raise ClientConfigError(
            f"sasl.jaas.config: the login module of {name} is {login_module.rpartition('.')[2]}"
        )
    made: MakeClient = import_module(f"aclbroker.broker.client.sasl.{module}").from_settings(
        settings
    )
    return made


_MECHANISMS: Final = {
    "PLAIN": ("plain", f"{_PACKAGE}plain.PlainLoginModule"),
    "SCRAM-SHA-256": ("scram", f"{_PACKAGE}scram.ScramLoginModule"),
    "SCRAM-SHA-512": ("scram", f"{_PACKAGE}scram.ScramLoginModule"),
    "OAUTHBEARER": ("oauthbearer", f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule"),
    "GSSAPI": ("gssapi_client", "com.sun.security.auth.module.Krb5LoginModule"),
}
"""By the name of the mechanism: its module, and the login module of Kafka's clients."""


def option(options: Mapping[str, str], name: str) -> str:
    """Return an option of the JAAS text; raises `ClientConfigError` if it is not there."""
    if name not in options:
        raise ClientConfigError(f"sasl.jaas.config: there is no {name}")
    return options[name]
