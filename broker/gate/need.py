"""The words that the table of needs is written in.

A row needs operations on resources: of the `whole` request, of `each` entry of an array, or to
`keep` entries of the answer. A need with a `name` is asked for by that name, in the API's own
function or its handler; all others are asked for by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final

from aclbroker.broker.acl.authorizer import RequestContext
from aclbroker.broker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.broker.gate.echo import Denial
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

REFUSAL: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The code that refuses, by the type of the resource."""


class Profile(Enum):
    """Whose rules: Kafka 4.3's own, or those of its documentation's table of API keys."""

    KAFKA = "kafka-4.3"
    DOCUMENTED = "documented"


Target = tuple[ResourceType, str | None] | int
"""A resource; or an error code, for an entry that cannot have one."""

FindAll = Callable[[Any], Iterable[Target]]
"""Finds all resources that a request as a whole is about."""

FindOne = Callable[[Any, Any, Any], Target]
"""Finds the resource that an entry is about: takes the entry, the request, and what is known of
topics (`topics_known.Topics`).
"""

ALL_VERSIONS: Final = range(0x7FFF)


@dataclass(frozen=True)
class Broader:
    """A broader right, beside which a need asks for nothing: the operation on the cluster or, with
    ``anywhere``, on any resource of that type (KIP-679).
    """

    operation: AclOperation
    anywhere: ResourceType | None = None
    log_if_denied: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return it in the words of the documentation."""
        place = "the Cluster" if self.anywhere is None else f"any {self.anywhere.name.title()}"
        return f"{self.operation.name} on {place}"


@dataclass(frozen=True, kw_only=True)
class Need:
    """What all needs have in common."""

    operation: AclOperation
    types: tuple[ResourceType, ...]
    """The types that the resource may have."""
    name: str = ""
    """The name by which an API's own function or its handler asks for it; "": the engine asks."""
    versions: range = ALL_VERSIONS
    profile: Profile | None = None
    """The profile to which the need belongs; None: both."""
    when: Callable[[Any], bool] | None = None
    """Returns of a request whether the need applies; its docstring is what docs/gate.md prints."""
    unless: Broader | None = None
    log_if_denied: bool = True
    """Whether the audit log shows a denial at its usual level, as in Kafka's AuthHelper."""

    scope: ClassVar[str]
    """What a missing right refuses, as docs/gate.md prints it."""


@dataclass(frozen=True, kw_only=True)
class Whole(Need):
    """Needed for the request as a whole."""

    find: FindAll
    code: int | None = None
    """What refuses, if it is not the resource type's own code."""

    scope: ClassVar = "the request"


@dataclass(frozen=True, kw_only=True)
class Each(Need):
    """Needed for each entry of the array that the answer echoes."""

    find: FindOne
    counted: str = ""
    """The array of the entry that the audit log counts, where Kafka asks for each partition of a
    topic; "" counts the entry.
    """
    others: int | None = None
    """What entries get that are allowed beside some that are not, where it is all or nothing."""

    scope: ClassVar = "the entry"


@dataclass(frozen=True, kw_only=True)
class Keep(Need):
    """Needed to see an entry of an answer's array, or a field; without it that is left out."""

    shown: str
    """The path of fields in the answer, down to the one that is shown or names the resource."""
    log_if_denied: bool = False

    scope: ClassVar = "nothing: it is left out of the answer"


class Repeats(Enum):
    """What becomes of entries that a request names more than once."""

    ANSWERED = "each is answered"
    REFUSED = "each is refused with 42"
    REFUSED_ONCE = "one entry refuses them with 42"
    MERGED = "they are one entry"


Refusal = Denial | Any
"""Why a request is refused; or the whole response that refuses it."""


@dataclass(frozen=True)
class Row:
    """What one API key needs."""

    key: ApiKey
    kafka: str
    """The method of Kafka 4.3 that has the rule: of KafkaApis, if no other class is named."""
    needs: tuple[Need, ...] = ()
    exempt: str = ""
    """Why the key needs no right, if it needs none."""
    note: str = ""
    early: Callable[[Any, RequestContext], Refusal | None] | None = None
    """Refuses a request for what it is, before any right is asked for."""
    between: Callable[[Any, RequestContext], Refusal | None] | None = None
    """The same between the rights of the whole request that come first and all others."""
    repeats: Repeats = Repeats.ANSWERED
    own: Callable[..., Any] | None = None
    """The API's own function in place of the engine: takes the request, its `RequestRights` and
    what is known of topics; returns a `Verdict`.
    """
    hides: bool = False
    """Whether a standalone broker's answer passes through `showing`, which leaves out what the
    session may not see; a gateway's always does.
    """
    operations_of: tuple[ResourceType, ...] = ()
    """The types of resources whose authorized operations the answer shows (KIP-430)."""
    resolves: tuple[str, ...] = ()
    """Where the request has topic ids that stand for names, and names whose existence matters."""
    _applying: dict[tuple[int, Profile], tuple[Need, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    _named: dict[tuple[int, Profile], dict[str, Need]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def named(self, version: int, profile: Profile) -> dict[str, Need]:
        """Return by their names the needs that hold in a version and a profile."""
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
    """Find the resource in a field of an entry; "" is the entry itself."""

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
    """Need an operation for the request as a whole: on the resource that a field names, on all of
    several ``names``, or on the cluster.
    """

    def find(request: Any) -> Iterable[Target]:
        if names is not None:
            return [(resource_type, name) for name in names(request)]
        return [(resource_type, getattr(request, field_name) if field_name else CLUSTER_NAME)]

    return Whole(operation=operation, types=(resource_type,), find=find, **more)


def whole_by(operation: AclOperation, find: FindAll, *types: ResourceType, **more: Any) -> Whole:
    """Need an operation for the request as a whole, on resources that a function finds."""
    return Whole(operation=operation, types=types, find=find, **more)


def each(
    operation: AclOperation, resource_type: ResourceType, field_name: str = "", **more: Any
) -> Each:
    """Need an operation for each entry, on the resource that a field of it names, or it itself."""
    find = named(resource_type, field_name)
    return Each(operation=operation, types=(resource_type,), find=find, **more)


def each_by(operation: AclOperation, find: FindOne, *types: ResourceType, **more: Any) -> Each:
    """Need an operation for each entry, on the resource that a function finds."""
    return Each(operation=operation, types=types, find=find, **more)


def keep(operation: AclOperation, resource_type: ResourceType, shown: str, **more: Any) -> Keep:
    """Need an operation to see what stands at a path of the answer, such as ``groups.group_id``."""
    return Keep(operation=operation, types=(resource_type,), shown=shown, **more)


def on_cluster(operation: AclOperation) -> Broader:
    """Name the broader right to do the operation on the cluster."""
    return Broader(operation)


def anywhere(operation: AclOperation, resource_type: ResourceType) -> Broader:
    """Name the broader right to do the operation on any resource of a type (KIP-679)."""
    return Broader(operation, resource_type)


def since(version: int) -> range:
    """Name the versions from one on."""
    return range(version, ALL_VERSIONS.stop)


def until(version: int) -> range:
    """Name the versions up to one."""
    return range(version + 1)


def row(key: ApiKey, kafka: str, *needs: Need, **more: Any) -> Row:
    """Write a row: the key, the method of Kafka that has the rule, and what is needed."""
    return Row(key, kafka, needs, **more)


def exempt(key: ApiKey, kafka: str, why: str, *needs: Need, **more: Any) -> Row:
    """Write the row of a key that is refused to nobody, and say why.

    Its needs are asked for by name: they decide what of the answer is shown.
    """
    return Row(key, kafka, needs, exempt=why, **more)
