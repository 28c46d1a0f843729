"""How clients of one listener log in: by which mechanisms, as which principals, for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.acl.groups import Groups
from aclbroker.broker.auth.principals import AuthenticationContext, PrincipalBuilder, built
from aclbroker.broker.auth.sasl.mechanism import Identity, Mechanism

MechanismFactory = Callable[[], Mechanism]
"""Makes the server's side of one exchange."""

_MILLISECONDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Login:
    """How clients log in at one listener. ``mechanisms`` is empty where it has no SASL.

    ``max_reauth_ms`` are the milliseconds after which a session of a mechanism has to authenticate
    again (KIP-368). Without an entry, or with 0, it has to only when its credential expires.
    ``groups`` returns the groups that there are now.
    """

    listener: str
    security_protocol: str
    builder: PrincipalBuilder
    mechanisms: Mapping[str, MechanismFactory] = field(default_factory=dict)
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    groups: Callable[[], Groups] = Groups

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
        own = built(self.builder, context)
        claimed = () if identity is None else identity.groups
        return Session(
            self.groups().principals(own, claimed),
            host,
            self.listener,
            self.security_protocol,
            token_authenticated=identity is not None and identity.token_authenticated,
            own=own,
            claimed=claimed,
        )

    def regrouped(self, session: Session) -> Session:
        """Return a session with the groups that its principals have now; the same if they are."""
        principals = self.groups().principals(session.own, session.claimed)
        if principals == session.principals:
            return session
        return replace(session, principals=principals)

    def lifetime_ms(self, mechanism: str, identity: Identity) -> int | None:
        """Return for how many milliseconds a session is valid, None if it does not expire.

        As in Kafka's SaslServerAuthenticator the shorter of both limits counts.
        """
        limits = []
        if maximum := self.max_reauth_ms.get(mechanism, 0):
            limits.append(maximum)
        if identity.expires_at is not None:
            limits.append(max(0, int((identity.expires_at - time.time()) * _MILLISECONDS)))
        return min(limits, default=None)
