"""The authentication of one connection: at first, and again before its session ends; no I/O."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.exchange import Answers, Reply, SaslExchange
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.protocol.errors import shown_name
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import Frame

_SASL_HANDSHAKE: Final = struct.pack(">h", ApiKey.SASL_HANDSHAKE)
_MILLISECONDS: Final = 1000

_BETWEEN: Final = 1.0
"""Seconds that must lie between two authentications of a connection, as in Kafka's KafkaChannel."""


class Authentication:
    """The authentication of a peer at the address ``host``.

    ``session`` is None until it is complete. ``clock`` returns seconds since any moment.
    """

    def __init__(
        self,
        login: Login,
        host: str,
        answers: Answers,
        clock: Callable[[], float],
    ) -> None:
        self.session: Session | None = None
        self._login = login
        self._host = host
        self._answers = answers
        self._clock = clock
        self._peer_certificate: bytes | None = None
        self._exchange: SaslExchange | None = None
        self._mechanism = ""
        self._expires_at = math.inf
        self._began_at = -math.inf

    def begin(self, peer_certificate: bytes | None) -> None:
        """Begin, with the peer's certificate from TLS. Without SASL that completes it.

        Raises `AuthenticationFailed`.
        """
        self._peer_certificate = peer_certificate
        if self._login.mechanisms:
            self._begin_exchange(None)
        else:
            self.session = self._new_session(None, None)

    @property
    def mechanism(self) -> str:
        """The SASL mechanism that the peer uses or has used; "" before it has named one."""
        return self._mechanism if self._exchange is None else self._exchange.mechanism

    @property
    def is_at_work(self) -> bool:
        """Whether the next frames are for `receive`."""
        return self._exchange is not None

    @property
    def may_expire(self) -> bool:
        """Whether `begins_again` and `is_expired` have to be asked for each frame."""
        return self._expires_at < math.inf

    @property
    def is_expired(self) -> bool:
        """Whether the session has ended: no request of it may be answered."""
        return self._clock() >= self._expires_at

    def begins_again(self, frame: Frame) -> bool:
        """Begin again if a frame asks for that, in a session that will expire (KIP-368)."""
        begins = (
            frame.startswith(_SASL_HANDSHAKE)
            and self.may_expire
            and self._clock() - self._began_at >= _BETWEEN
        )
        if begins:
            self._begin_exchange(self._mechanism)
        return begins

    def regroup(self) -> bool:
        """Give the session its principals' groups of now; tell whether they are others."""
        before = self.session
        if before is None:
            return False
        self.session = self._login.regrouped(before)
        return self.session is not before

    def end(self) -> None:
        """Give up an exchange at work: the peer is gone."""
        self._exchange = None

    def receive(self, frame: Frame) -> Reply:
        """Answer a frame of the exchange; raises `ProtocolError` for what cannot be answered."""
        if self._exchange is None:
            raise RuntimeError("there is no exchange at work")
        reply = self._exchange.receive(frame)
        if self._exchange.complete:
            self._exchange = None
        return reply

    def _begin_exchange(self, again: str | None) -> None:
        self._began_at = self._clock()
        self._exchange = SaslExchange(self._login.mechanisms, self._answers, self._accept, again)

    def _accept(self, mechanism: str, identity: Identity) -> int:
        """Begin the session of a proved identity, or prolong it; see `SaslExchange`."""
        session = self._new_session(mechanism, identity)
        if self.session is not None:
            if self.session.own != session.own:
                raise AuthenticationFailed(
                    "Cannot change principals during re-authentication from "
                    f"{_shown(self.session.own)}: {_shown(session.own)}"
                )
            session = replace(session, connection=self.session.connection)
        lifetime = self._login.lifetime_ms(mechanism, identity)
        self._expires_at = (
            math.inf if lifetime is None else self._clock() + lifetime / _MILLISECONDS
        )
        self._mechanism = mechanism
        self.session = session
        return lifetime or 0

    def _new_session(self, mechanism: str | None, identity: Identity | None) -> Session:
        return self._login.session(
            self._host,
            mechanism=mechanism,
            identity=identity,
            peer_certificate=self._peer_certificate,
        )


def _shown(principals: Sequence[str]) -> str:
    return shown_name(", ".join(principals))
