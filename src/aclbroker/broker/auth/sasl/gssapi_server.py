"""The server's side of SASL GSSAPI (RFC 4752), that is Kerberos 5, over the library `gssapi`.

It is an extra of this package, since `gssapi` is built against the system's Kerberos libraries.
Those find their configuration as always: `/etc/krb5.conf`, or `KRB5_CONFIG` of the environment.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity, InvalidCredentials

_NO_SECURITY_LAYER: Final = 1
# RFC 4752: a bit for each security layer, and 24 bits for the longest message a layer takes.
_OFFERED_LAYERS: Final = bytes([_NO_SECURITY_LAYER, 0, 0, 0])


class GssapiError(Exception):
    """Clients cannot be accepted; the text says why (a key is missing, for example)."""


def acceptor_credentials(principal: str, keytab: str | None) -> Any:
    """The credentials of a service ``primary/host@REALM`` whose key is in a file.

    Without a ``keytab`` it is the default one of krb5.conf. The file is read again for every
    client, so that a new key needs no restart. Raises `GssapiError`.
    """
    try:
        gssapi: Any = import_module("gssapi")
    except ImportError:
        raise GssapiError(
            "the package gssapi is not installed: pip install 'gssapi>=1.9', or make setup-gssapi "
            "in a checkout of aclbroker; both need a C compiler and the headers of MIT Kerberos "
            "(Debian: gcc, libkrb5-dev)"
        ) from None
    try:
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(
            name=name,
            usage="accept",
            # Kerberos alone, not what SPNEGO could negotiate.
            mechs=[gssapi.MechType.kerberos],
            store={"keytab": f"FILE:{keytab}"} if keytab else None,
        )
    except gssapi.exceptions.GSSError as error:
        raise GssapiError(_told(error)) from None


class GssapiServer:
    """One exchange with a client, for a service with these `acceptor_credentials`.

    Kerberos' own tokens come first. Then the server offers security layers, of which it has only
    "none", and the client chooses that one. The authorization id that a client may add there has no
    effect, as in Kafka: the client is who its ticket says.
    """

    def __init__(self, credentials: Any) -> None:
        self.identity: Identity | None = None
        self._gssapi: Any = import_module("gssapi")
        self._context = self._gssapi.SecurityContext(creds=credentials, usage="accept")
        self._established = False
        self._layers_offered = False

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next token; raises `AuthenticationFailed`."""
        try:
            if not self._established:
                return self._establish(token)
            if not self._layers_offered:
                return self._offer_layers(token)
            return self._choose_layer(token)
        except self._gssapi.exceptions.GSSError as error:
            raise _refused(_told(error)) from None

    def _establish(self, token: bytes) -> bytes:
        answer: bytes | None = self._context.step(token)
        # The library raises an error that has a token for the client only when it is asked again.
        self._established = self._context.complete
        if answer or not self._established:
            return answer or b""
        return self._offer_layers(b"")

    def _offer_layers(self, token: bytes) -> bytes:
        if token:
            raise _refused("a token where none is expected")
        self._layers_offered = True
        offer: bytes = self._context.wrap(_OFFERED_LAYERS, encrypt=False).message
        return offer

    def _choose_layer(self, token: bytes) -> bytes:
        chosen: bytes = self._context.unwrap(token).message
        if len(chosen) < len(_OFFERED_LAYERS) or chosen[0] != _NO_SECURITY_LAYER:
            raise _refused("a security layer that was not offered")
        try:
            name = bytes(self._context.initiator_name).decode()
        except UnicodeDecodeError:
            raise _refused("a principal that is not UTF-8") from None
        self.identity = Identity(name)
        return b""


def _refused(reason: str) -> AuthenticationFailed:
    return InvalidCredentials("GSSAPI", reason)


def _told(error: Any) -> str:
    """What Kerberos says went wrong; it names principals, and holds no keys."""
    return " ".join(str(error).split())
