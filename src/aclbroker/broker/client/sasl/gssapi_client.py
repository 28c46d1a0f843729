"""The client's side of SASL GSSAPI (RFC 4752), that is Kerberos 5, over the library `gssapi`.

The JAAS text is that of Java's Krb5LoginModule: with ``useKeyTab=true`` the tickets come from a key
tab, else from the cache of kinit. What else that module could ask, it would ask at a terminal.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from aclbroker.broker.client.errors import AuthenticationRefused, ClientConfigError
from aclbroker.broker.client.sasl.mechanism import MakeClient

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings

_SERVICE_NAME: Final = "sasl.kerberos.service.name"
_NO_SECURITY_LAYER: Final = 1
_CHOSEN_LAYER: Final = bytes([_NO_SECURITY_LAYER, 0, 0, 0])
_CANNOT: Final = ("useFirstPass", "tryFirstPass")


def from_settings(settings: ClientSettings) -> MakeClient:
    """Return what makes clients of the principal that the JAAS text names."""
    options = settings.jaas.options if settings.jaas else {}
    service = settings.values.get(_SERVICE_NAME) or options.get("serviceName")
    if not service:
        raise ClientConfigError(f"{_SERVICE_NAME} is missing: the name that the broker runs as")
    for name in _CANNOT:
        if _is_true(options, name):
            raise ClientConfigError(f"sasl.jaas.config: {name}: aclbroker cannot do that")
    gssapi = _library()
    return lambda host: GssapiClient(gssapi, options, f"{service}@{host}")


class GssapiClient:
    """One exchange: Kerberos' own tokens, and then the choice of no security layer."""

    def __init__(self, gssapi: Any, options: Mapping[str, str], service: str) -> None:
        self._gssapi = gssapi
        self._options = options
        self._service = service
        self._context: Any = None
        self._has_chosen = False

    def first(self) -> bytes:
        """Return the first token; raises `AuthenticationRefused` if there is no ticket."""
        try:
            self._context = self._gssapi.SecurityContext(
                name=self._gssapi.Name(self._service, self._gssapi.NameType.hostbased_service),
                creds=_credentials(self._gssapi, self._options),
                mech=self._gssapi.MechType.kerberos,
                usage="initiate",
            )
            return self._context.step() or b""
        except self._gssapi.exceptions.GSSError as error:
            raise AuthenticationRefused(_told(error)) from None

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the next token, None when the exchange is over."""
        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            if self._has_chosen:
                return None
            return self._choose(challenge)
        except self._gssapi.exceptions.GSSError as error:
            raise AuthenticationRefused(_told(error)) from None

    def _choose(self, challenge: bytes) -> bytes:
        if not challenge:
            return b""
        offered: bytes = self._context.unwrap(challenge).message
        if not offered or not offered[0] & _NO_SECURITY_LAYER:
            raise AuthenticationRefused("the broker wants a security layer, which Kafka has not")
        self._has_chosen = True
        chosen: bytes = self._context.wrap(_CHOSEN_LAYER, False).message
        return chosen


def _credentials(gssapi: Any, options: Mapping[str, str]) -> Any:
    principal = options.get("principal")
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal) if principal else None
    if _is_true(options, "useKeyTab"):
        keytab = options.get("keyTab", "").removeprefix("file:").removeprefix("FILE:")
        store = {"client_keytab": f"FILE:{keytab}"} if keytab else {}
        # Tickets of a key tab are this login's own: those of kinit stay as they are.
        store["ccache"] = f"MEMORY:aclbroker-{secrets.token_hex(8)}"
        return gssapi.Credentials(usage="initiate", name=name, store=store)
    cache = options.get("ticketCache", "").removeprefix("file:").removeprefix("FILE:")
    return gssapi.Credentials(
        usage="initiate", name=name, store={"ccache": f"FILE:{cache}"} if cache else None
    )


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _library() -> Any:
    try:
        return import_module("gssapi")
    except ImportError:
        raise ClientConfigError(
            "sasl.mechanism=GSSAPI needs the package gssapi: pip install 'aclbroker[gssapi]'"
        ) from None


def _told(error: Any) -> str:
    return " ".join(str(error).split())
