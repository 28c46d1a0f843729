"""How the clients of one listener become sessions: who they may prove to be, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.auth.principals import AuthenticationContext, PrincipalBuilder, built
from aclbroker.broker.auth.sasl.mechanism import Identity, Mechanism

MechanismFactory = Callable[[], Mechanism]
"""Makes the server's side of one exchange."""

_MILLISECONDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Login:
    """The way into one listener. ``mechanisms`` is empty where it has no SASL.

    ``max_reauth_ms`` are the milliseconds after which a session of a mechanism has to authenticate
    again (KIP-368); without an entry, or with 0, only the end of its credential makes it.
    """

    listener: str
    security_protocol: str
    builder: PrincipalBuilder
    mechanisms: Mapping[str, MechanismFactory] = field(default_factory=dict)
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)

    def session(
        self,
        host: str,
        *,
        mechanism: str | None = None,
        identity: Identity | None = None,
        peer_certificate: bytes | None = None,
    ) -> Session:
        """Return the session of a client at an address; raises `AuthenticationFailed`."""
        context = AuthenticationContext(
            self.security_protocol, self.listener, host, mechanism, identity, peer_certificate
        )
        return Session(
            built(self.builder, context),
            host,
            self.listener,
            self.security_protocol,
            token_authenticated=identity is not None and identity.token_authenticated,
        )

    def lifetime_ms(self, mechanism: str, identity: Identity) -> int | None:
        """Return for how many milliseconds a session is good, None if it does not end.

        As in Kafka's SaslServerAuthenticator the shorter of both limits counts.
        """
        limits = []
        if maximum := self.max_reauth_ms.get(mechanism, 0):
            limits.append(maximum)
        if identity.expires_at is not None:
            limits.append(max(0, int((identity.expires_at - time.time()) * _MILLISECONDS)))
        return min(limits, default=None)
