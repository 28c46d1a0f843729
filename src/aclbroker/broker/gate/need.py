"""The declarations that the table of needs consists of.

A row needs operations on resources: for the `whole` request, for `each` entry of an array, or to
`keep` entries of the answer. The API's own function or its handler asks for a need that has a
``name``; the engine asks for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from aclbroker.acl.authorizer import RequestContext
from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.broker.gate.echo import Denial
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.turns import in_turns

if TYPE_CHECKING:
    from aclbroker.broker.gate.topics_known import Topics

REFUSAL: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error code of a missing right, by the type of the resource."""


class Profile(Enum):
    """Which rules hold: those of Kafka 4.3's code, or those that its documentation lists."""

    KAFKA = "kafka-4.3"
    DOCUMENTED = "documented"


Target = tuple[ResourceType, str | None] | int
"""The type and name of a resource, or the error code of an entry that has no valid one."""

FindAll = Callable[[Any], Iterable[Target]]
"""Takes a request; returns all resources that it as a whole is about."""

FindOne = Callable[[Any, Any, Any], Target]
"""Takes an entry, the request and what is known of topics (`topics_known.Topics`).

Returns the resource that the entry is about.
"""

ALL_VERSIONS: Final = range(0x7FFF)


@dataclass(frozen=True)
class Broader:
    """A broader right; a session that has it does not need the narrower one.

    It is the operation on the cluster or, with ``anywhere``, on any resource of a type (KIP-679).
    """

    operation: AclOperation
    anywhere: ResourceType | None = None
    log_if_denied: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the right as docs/gate.md prints it."""
        place = "the Cluster" if self.anywhere is None else f"any {self.anywhere.name.title()}"
        return f"{self.operation.name} on {place}"


@dataclass(frozen=True, kw_only=True)
class Need:
    """The fields that all needs have."""

    operation: AclOperation
    types: tuple[ResourceType, ...]
    """The types that the resource may have."""
    name: str = ""
    """The name by which the API's own function or handler asks for it; the engine asks if ""."""
    versions: range = ALL_VERSIONS
    profile: Profile | None = None
    """The only profile in which the need holds; None means both."""
    when: Callable[[Any], bool] | None = None
    """Returns whether the need applies to a request; docs/gate.md prints its docstring."""
    unless: Broader | None = None
    log_if_denied: bool = True
    """Whether a denial is logged at its usual level: ``logIfDenied`` of Kafka's AuthHelper."""

    scope: ClassVar[str]
    """What is refused if the right is missing, as docs/gate.md prints it."""


@dataclass(frozen=True, kw_only=True)
class Whole(Need):
    """A right that the whole request needs."""

    find: FindAll
    code: int | None = None
    """The error code, if it is not the one of the resource type."""

    scope: ClassVar = "the request"


@dataclass(frozen=True, kw_only=True)
class Each(Need):
    """A right that each entry needs, in the array of the request that the answer repeats."""

    find: FindOne
    counted: str = ""
    """The array of the entry that the audit log counts, where Kafka asks for each partition of a
    topic; "" counts the entry.
    """
    others: int | None = None
    """The code of the allowed entries if others are refused, for APIs that do all or nothing."""

    scope: ClassVar = "the entry"


@dataclass(frozen=True, kw_only=True)
class Keep(Need):
    """A right to see an entry or a field of the answer, which is left out without it."""

    shown: str
    """The path to the field of the answer that is shown, or that names the resource."""
    log_if_denied: bool = False

    scope: ClassVar = "nothing: it is left out of the answer"


class Repeats(Enum):
    """How entries are answered that a request names more than once."""

    ANSWERED = "each is answered"
    REFUSED = "each is refused with 42"
    REFUSED_ONCE = "one entry refuses them with 42"
    MERGED = "they are one entry"


Refusal = Denial | Any
"""The error that refuses a request, or the whole response that does."""


@dataclass(frozen=True)
class Row:
    """The rights that requests of one API key need, and what else the gate does with them."""

    key: ApiKey
    kafka: str
    """The method of Kafka 4.3 that has the rule; it is in KafkaApis if no class is named."""
    needs: tuple[Need, ...] = ()
    exempt: str = ""
    """The reason if the key needs no right, else ""."""
    note: str = ""
    early: Callable[[Any, RequestContext, Topics], Refusal | None] | None = None
    """Refuses a request that is invalid, before any right is checked."""
    between: Callable[[Any, RequestContext], Refusal | None] | None = None
    """Refuses an invalid request after the first right of the whole request."""
    repeats: Repeats = Repeats.ANSWERED
    own: Callable[..., Any] | None = None
    """The API's own function, which is called in place of the engine.

    It takes the request, its `RequestRights` and what is known of topics, and returns a `Verdict`.
    """
    hides: bool = False
    """Whether `showing` filters the answer that a standalone broker makes itself.

    Answers of another broker behind a gateway must always be filtered.
    """
    operations_of: tuple[ResourceType, ...] = ()
    """The types of resources whose authorized operations the answer shows (KIP-430)."""
    resolves: tuple[str, ...] = ()
    """Paths in the request to topic ids to resolve, and to names whose existence matters."""
    _applying: dict[tuple[int, Profile], tuple[Need, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    _named: dict[tuple[int, Profile], dict[str, Need]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def named(self, version: int, profile: Profile) -> dict[str, Need]:
        """Return the needs with a name that hold in a version and a profile, by name."""
        key = version, profile
        if key not in self._named:
            applying = self.applying(version, profile)
            self._named[key] = {need.name: need for need in applying if need.name}
        return self._named[key]

    def applying(self, version: int, profile: Profile) -> tuple[Need, ...]:
        """Return the needs that hold in a version and a profile."""
        key = version, profile
        if key not in self._applying:
            self._applying[key] = tuple(
                need
                for need in self.needs
                if version in need.versions and need.profile in (None, profile)
            )
        return self._applying[key]


def named(resource_type: ResourceType, field_name: str) -> FindOne:
    """Return a function that finds an entry's resource in a field; "" is the entry itself."""

    def find(entry: Any, _request: Any, _topics: Any) -> Target:
        return resource_type, getattr(entry, field_name) if field_name else entry

    return find


def whole(
    operation: AclOperation,
    resource_type: ResourceType,
    field_name: str = "",
    *,
    names: Callable[[Any], Iterable[str | None]] | None = None,
    **more: Any,
) -> Whole:
    """Declare a right that the whole request needs.

    It is needed on the resource that a field names, on all resources that ``names`` returns or,
    with neither, on the cluster.
    """

    def find(request: Any) -> Iterable[Target]:
        if names is not None:
            return [(resource_type, name) for name in in_turns(list(names(request)))]
        return [(resource_type, getattr(request, field_name) if field_name else CLUSTER_NAME)]

    return Whole(operation=operation, types=(resource_type,), find=find, **more)


def whole_by(operation: AclOperation, find: FindAll, *types: ResourceType, **more: Any) -> Whole:
    """Declare a right that the whole request needs, on the resources that a function finds."""
    return Whole(operation=operation, types=types, find=find, **more)


def each(
    operation: AclOperation, resource_type: ResourceType, field_name: str = "", **more: Any
) -> Each:
    """Declare a right that each entry needs, on the resource in a field ("" is the entry)."""
    find = named(resource_type, field_name)
    return Each(operation=operation, types=(resource_type,), find=find, **more)


def each_by(operation: AclOperation, find: FindOne, *types: ResourceType, **more: Any) -> Each:
    """Declare a right that each entry needs, on the resource that a function finds."""
    return Each(operation=operation, types=types, find=find, **more)


def keep(operation: AclOperation, resource_type: ResourceType, shown: str, **more: Any) -> Keep:
    """Declare a right to see what is at a path of the answer, such as ``groups.group_id``."""
    return Keep(operation=operation, types=(resource_type,), shown=shown, **more)


def on_cluster(operation: AclOperation) -> Broader:
    """Return the broader right to do the operation on the cluster."""
    return Broader(operation)


def anywhere(operation: AclOperation, resource_type: ResourceType) -> Broader:
    """Return the broader right to do the operation on any resource of a type (KIP-679)."""
    return Broader(operation, resource_type)


def since(version: int) -> range:
    """Return all versions from one on."""
    return range(version, ALL_VERSIONS.stop)


def until(version: int) -> range:
    """Return all versions up to one, with it."""
    return range(version + 1)


def row(key: ApiKey, kafka: str, *needs: Need, **more: Any) -> Row:
    """Declare a row: the key, the method of Kafka that has the rule, and the needs."""
    return Row(key, kafka, needs, **more)


def exempt(key: ApiKey, kafka: str, why: str, *needs: Need, **more: Any) -> Row:
    """Declare the row of a key that needs no right, with the reason.

    Its needs have names, and decide only what the answer shows.
    """
    return Row(key, kafka, needs, exempt=why, **more)
