"""The parts of a running broker that handlers share: the authorizer, the backend, credentials."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from aclbroker.acl.authorizer import Authorizer, RequestContext, Session
from aclbroker.broker.backends.backend import Answers, Backend, Relay
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.gate.need import Profile, Row
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.whole import WholeRights
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import ApiKey

Handler = Callable[["Services", RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""Takes the part of a request that the gate allowed; returns the response or a coroutine of it.

If the gate adds nothing to the response, it may also be bytes: the message without its header,
encoded at the version of the request.
"""

Answer = Callable[[RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""A handler that knows its services or its backend."""

_SHORT_ANSWERS: Final = frozenset((ApiKey.API_VERSIONS,))


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running broker that answer the requests of one cluster's clients.

    Without an ``authorizer`` everything is allowed, and the ACL APIs answer SECURITY_DISABLED
    (KIP-140). The cluster behind the gate is ``backend``. The API keys that this broker answers
    itself have ``handlers``. Without a store for them ``credentials`` is None. Injected ``faults``
    come before all else. Clients can neither see nor access
    ``reserved_topics``, in which ACLs are kept. ``waits`` is the error message for clients while
    the ACLs are unavailable: then only ApiVersions is answered.
    """

    authorizer: Authorizer | None
    audit: Audit
    backend: Backend
    handlers: Mapping[int, Handler] = field(default_factory=dict)
    profile: Profile = Profile.KAFKA
    credentials: Credentials | None = None
    turns: Turns = field(default_factory=Turns)
    faults: Faults | None = None
    rights_class: type[RequestRights] = RequestRights
    reserved_topics: frozenset[str] = frozenset()
    waits: str = ""
    answers: dict[int, Answer] = field(init=False)
    """The backend's answer to each API key that it answers."""

    answered_here: tuple[int, ...] = field(init=False)
    """The API keys that this broker answers itself."""

    short_answers: frozenset[int] = field(init=False)
    """The keys whose answers to short requests wait for nothing and are never long."""

    whole_rights: WholeRights | None = field(init=False)
    """The rights by which requests can be forwarded without being decoded, if there are such."""

    def __post_init__(self) -> None:
        answers: dict[int, Answer] = {
            key: partial(handler, self.backend) for key, handler in self.backend.handlers.items()
        }
        # A fault may wait, which only work that takes turns can do.
        is_short = self.faults is None
        short = _SHORT_ANSWERS.union(self.backend.short_answers) if is_short else frozenset()
        object.__setattr__(self, "whole_rights", self._whole_rights())
        object.__setattr__(self, "answers", answers)
        object.__setattr__(self, "answered_here", tuple(self.handlers))
        object.__setattr__(self, "short_answers", short)

    def _whole_rights(self) -> WholeRights | None:
        if self.rights_class is not RequestRights or self.faults is not None or self.waits:
            return None
        return WholeRights.of(self.authorizer, self.audit, self.profile, self.reserved_topics)

    def answer_to(self, key: int) -> Answer | None:
        """Return the answer to an API key, of the backend or of this broker; None without one."""
        if (answer := self.answers.get(key)) is not None:
            return answer
        # Not kept: it would refer to this object, and be garbage in a circle.
        handler = self.handlers.get(key)
        return None if handler is None else partial(handler, self)

    @property
    def cluster_id(self) -> str:
        """The cluster id."""
        return self.backend.cluster_id

    def rights(self, row: Row, context: RequestContext) -> RequestRights:
        """Return the rights of the session that sent a request; the audit records each decision."""
        return self.rights_class(
            row, context, self.authorizer, self.audit, self.profile, self.reserved_topics
        )

    def connected(self, session: Session, answers: Answers) -> Relay | None:
        """Note that a session has begun; see `Backend.connected`."""
        return self.backend.connected(session.connection, answers)

    def disconnected(self, session: Session | None) -> None:
        """Note that the connection of a session is closed, if there was a session."""
        if session is not None:
            self.backend.disconnected(session.connection)
