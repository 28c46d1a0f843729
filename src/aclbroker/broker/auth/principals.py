"""Principal builders: from a proved identity to the principals that ACLs name.

The interface follows Kafka's KafkaPrincipalBuilder (KIP-189). Unlike there, a builder may name
several principals, such as a user and its groups: ACLs of each count, and any denial wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity

ANONYMOUS: Final = "User:ANONYMOUS"

_NOBODY: Final = "Authentication failed: there is no principal for this identity"


class AuthenticationContext(NamedTuple):
    """What is known of a connection once it is authenticated.

    ``security_protocol`` is PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, ``listener`` the listener's
    name, ``client_address`` the peer's address as text. ``mechanism`` and ``identity`` are those of
    SASL. ``peer_certificate`` is the client's from TLS, DER encoded; None without one.
    """

    security_protocol: str
    listener: str
    client_address: str
    mechanism: str | None = None
    identity: Identity | None = None
    peer_certificate: bytes | None = None


class PrincipalBuilder(Protocol):
    """Names the principals of a connection. It is made without arguments, then configured."""

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take the broker's properties. Raises ValueError that names the property at fault."""

    def build(self, context: AuthenticationContext) -> str | Sequence[str]:
        """Return one or several principals, ``Type:name``. Any exception refuses the client."""


class DefaultPrincipalBuilder:
    """Kafka's DefaultKafkaPrincipalBuilder: a single principal of the type ``User``.

    With SASL it is the authorization id, with Kerberos after ``kerberos_name`` has shortened it.
    With TLS alone it is what ``certificate_name`` makes of the client's certificate, and
    User:ANONYMOUS if there was none, as on a PLAINTEXT listener.
    """

    def __init__(
        self, certificate_name: Callable[[bytes], str], kerberos_name: Callable[[str], str]
    ) -> None:
        self._certificate_name = certificate_name
        self._kerberos_name = kerberos_name

    def configure(self, properties: Mapping[str, str]) -> None:
        """Do nothing: it has no properties."""

    def build(self, context: AuthenticationContext) -> str:
        """Return the principal; raises ValueError for a name that no rule matches."""
        identity = context.identity
        if identity is not None:
            name = identity.name
            return f"User:{self._kerberos_name(name) if context.mechanism == 'GSSAPI' else name}"
        if context.security_protocol == "SSL" and context.peer_certificate is not None:
            return f"User:{self._certificate_name(context.peer_certificate)}"
        if context.security_protocol.startswith("SASL"):
            raise ValueError("nobody has logged in")
        return ANONYMOUS


def built(builder: PrincipalBuilder, context: AuthenticationContext) -> tuple[str, ...]:
    """Return the principals that a builder names; raises `AuthenticationFailed` for anything else.

    The text, which the client gets, does not say why; the reason, which is logged, does.
    """
    name = type(builder).__name__
    try:
        found = builder.build(context)
        principals = (found,) if isinstance(found, str) else tuple(found)
    except Exception as error:
        raise AuthenticationFailed(_NOBODY, f"{name} failed: {error}") from error
    if not principals:
        raise AuthenticationFailed(_NOBODY, f"{name} named no principal")
    for principal in principals:
        if not isinstance(principal, str) or not all(principal.partition(":")):
            raise AuthenticationFailed(_NOBODY, f"{name} named {principal!r}, not Type:name")
    return principals
