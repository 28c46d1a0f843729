"""The authorizer: who asks, what is asked, what is decided, and the interface that decides.

The interface follows Kafka's pluggable one (KIP-11, KIP-504). `acl.decisions` holds the
rules of Kafka's own authorizer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cache
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from aclbroker.acl.bindings import AclBinding, AclFilter, AclOperation, ResourceType
from aclbroker.acl.hosts import canonical

Peer = tuple[tuple[str, ...], str]
"""The principals of a session, and its address in the form that ACLs' hosts are compared with."""

Position = int | tuple[tuple[str, int], ...]
"""Up to which change of their store the ACLs are that decide; of several stores by their names."""


@dataclass(frozen=True, slots=True)
class Session:
    """An authenticated peer: its principals (``Type:name``), its host, the listener it came by.

    ``security_protocol`` is the listener's: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    ``token_authenticated`` tells that it logged in with a delegation token (KIP-48).
    ``host`` is the peer's address as text, ``address`` the same in canonical form. ``peer`` is all
    that decisions depend on.

    The first principal is who the session is: to quotas, tokens and logs. ``own`` are those of the
    ``principals`` that were proved; without it all. The others are those of groups (`Groups`), of
    which ``claimed`` came with an access token. Raises ValueError without any principal.

    ``connection`` is what the sessions of a connection have in common, of which there is another
    one after each authentication, and for other groups.
    """

    principals: tuple[str, ...]
    host: str
    listener: str
    security_protocol: str = "PLAINTEXT"
    token_authenticated: bool = False
    own: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    connection: object = field(default_factory=object, repr=False, compare=False)
    address: str = field(init=False, repr=False, compare=False)
    peer: Peer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.principals) is not tuple or not self.principals:
            raise ValueError("a session needs a tuple of at least one principal")
        if not self.own:
            object.__setattr__(self, "own", self.principals)
        object.__setattr__(self, "address", canonical(self.host))
        object.__setattr__(self, "peer", (self.principals, self.address))


ANY_RESOURCE = "(any)"
"""The name in audit records where any resource of a type would do (KIP-679); no topic has it."""


class RequestContext(NamedTuple):
    """The request for which authorization is asked."""

    session: Session
    api_key: int
    api_version: int
    client_id: str | None
    correlation_id: int


class Action(NamedTuple):
    """An operation on one resource, for which authorization is asked.

    ``resource_name`` None, as a nullable field of a request may be, is allowed to nobody. The log
    flags tell whether an audit log should show the decision: not when it only filters an answer.
    ``reference_count`` is how often the request names the resource.
    """

    operation: AclOperation
    resource_type: ResourceType
    resource_name: str | None
    log_if_allowed: bool = True
    log_if_denied: bool = True
    reference_count: int = 1


class RuleKind(Enum):
    """What decided; the values are the words of Kafka's audit log."""

    SUPER_USER = "SuperUser"
    MATCHING_ACL = "MatchingAcl"
    DEFAULT_ALLOW = "DefaultAllow"
    DEFAULT_DENY = "DefaultDeny"
    RESERVED_TOPIC = "ReservedTopic"
    """Of ours alone: the topic keeps the broker's own ACLs, and nobody may reach it."""


class Rule(NamedTuple):
    """What decided, and for MATCHING_ACL which ACL; None if that ACL is gone since."""

    kind: RuleKind
    binding: AclBinding | None = None


class Decision:
    """Whether an action is allowed, and by which rule. It is true if the action is allowed.

    The rule of a matching ACL may be given as a function, which looks the ACL up when the rule is
    first asked for. So ask for the rule before the ACLs change.
    """

    __slots__ = ("_rule", "allowed")

    def __init__(self, allowed: bool, rule: Rule | Callable[[], Rule]) -> None:
        self.allowed = allowed
        self._rule = rule

    @property
    def rule(self) -> Rule:
        """What decided."""
        if not isinstance(self._rule, Rule):
            self._rule = self._rule()
        return self._rule

    @property
    def kind(self) -> RuleKind:
        """The kind of the rule; cheap, since no ACL is looked up."""
        return self._rule.kind if isinstance(self._rule, Rule) else RuleKind.MATCHING_ACL

    def __bool__(self) -> bool:
        return self.allowed

    def __repr__(self) -> str:
        return f"Decision(allowed={self.allowed}, rule={self.rule})"


class AclError(IntEnum):
    """The Kafka error codes of ACL changes."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    REQUEST_TIMED_OUT = 7
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44


class AclCreateResult(NamedTuple):
    """The outcome of one creation; an ACL that was there already is a success."""

    error_code: int = AclError.NONE
    error_message: str | None = None


class AclDeleteResult(NamedTuple):
    """The outcome of one filter, with all ACLs that it matched; none if there was an error.

    A list of them belongs to whoever gets it, who may empty it.
    """

    error_code: int = AclError.NONE
    error_message: str | None = None
    bindings: Sequence[AclBinding] = ()


class Authorizer(Protocol):
    """Decides over actions and keeps ACLs.

    It is made without arguments, then configured, then started. If a method that decides raises an
    exception, nothing is allowed. Once a change is answered, every later decision sees it.
    """

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take the broker's properties. Raises ValueError that names the property at fault."""

    async def start(self) -> None:
        """Load what is needed to decide; no request is answered before."""

    async def close(self) -> None:
        """Finish the changes that were asked for, and release everything."""

    def authorize(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> Sequence[Decision]:
        """Decide the operation on the resource of each name, in order."""

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the operation is allowed on at least one resource of a type (KIP-679)."""

    def authorized_operations(
        self, context: RequestContext, resource_type: ResourceType, resource_name: str
    ) -> int:
        """Return which of the type's operations are allowed, as a bit field (KIP-430)."""

    async def create_acls(
        self, context: RequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Create ACLs, each on its own; return a result for each, in order (KIP-140)."""

    async def delete_acls(
        self, context: RequestContext, filters: Sequence[AclFilter]
    ) -> list[AclDeleteResult]:
        """Delete all ACLs that any filter matches; return a result for each filter, in order."""

    def acls(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return all ACLs that a filter matches; the caller uses them up before it awaits."""


class DecisionsByName(Protocol):
    """An authorizer that decides by names alone, for requests that are not decoded."""

    def decisions(
        self, session: Session, operation: AclOperation, resource_type: ResourceType
    ) -> Mapping[str | None, Decision] | None:
        """Return the decisions on an operation by resource name.

        They are another object after each change that may alter one of them. The result is None
        where that cannot be said.
        """


def deciding_by_name(authorizer: object) -> DecisionsByName | None:
    """Return an authorizer as one that decides by names, None if it does not.

    A subclass that changes ``authorize`` alone does not: its ``decisions`` would be others.
    """
    cls: Any = type(authorizer)
    return cast(DecisionsByName, authorizer) if _decides_by_name(cls) else None


@cache
def _decides_by_name(cls: type) -> bool:
    for base in cls.__mro__:
        if "decisions" in base.__dict__:
            return True
        if "authorize" in base.__dict__:
            return False
    return False


@runtime_checkable
class HostChecker(Protocol):
    """An authorizer that knows which hosts of ACLs can match a client."""

    def host_fault(self, host: str) -> str | None:
        """Return why an ACL's host can match no client; None if it can."""


@runtime_checkable
class LatestAuthorizer(Protocol):
    """What an authorizer has besides whose ACLs others may change elsewhere."""

    def catch_up(self) -> Awaitable[bool] | None:
        """Have `Authorizer.acls` return what anybody had changed when this was called.

        When it was awaited it tells whether that was done; if not, what is there cannot be reached
        in time. None where no client wants to wait for that.
        """
