"""The words that rows of the gate are written in.

A row needs operations on resources: of the `whole` request, of `each` entry, or to `keep` entries
of the answer. `when` and `unless` say when a need applies; their docstrings are what the
documentation prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from aclbroker.broker.acl.authorizer import RequestContext
from aclbroker.broker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.broker.gate.echo import TOP, Answer
from aclbroker.broker.gate.rights import May, Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import ZERO_UUID

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


class Scope(Enum):
    """What a missing right refuses."""

    WHOLE = "the request"
    EACH = "the entry"
    KEEP = "nothing: the entry is left out of the answer"


Target = tuple[ResourceType, str | None] | int | None
"""A resource; an error code, for an entry that cannot have one; None, if nothing is needed."""

Resource = Callable[[Any, Any, Topics], Target]
"""Finds the resource of an entry of a request: takes the entry and the request."""

First = Callable[[Any, RequestContext], Any]
"""Refuses a request for what it is, before any right is asked for: returns a `Denial`, a whole
response, or None to go on.
"""

When = Callable[[Any], bool]
"""Tells of a request whether a need applies."""

Unless = Callable[[May], bool]
"""Tells of a session whether it has a broader right, which makes a need moot."""

ALL_VERSIONS: Final = range(0x7FFF)


@dataclass(frozen=True)
class Need:
    """One line of a row."""

    scope: Scope
    operation: AclOperation
    type_name: str
    """The type of the resource, as the documentation prints it."""
    resources: Callable[[Any], Iterable[Target]] | None = None
    """For WHOLE: finds all resources of a request."""
    resource: Resource | None = None
    """For EACH and KEEP: finds the resource of one entry."""
    array: str = ""
    """For KEEP: the array of the answer."""
    versions: range = ALL_VERSIONS
    when: When | None = None
    unless: Unless | None = None
    code: int | None = None
    """What refuses, if it is not the resource type's own code."""
    spare: int | None = None
    """For EACH: what entries get that are allowed beside some that are not (all or nothing)."""
    profile: Profile | None = None
    """The profile to which the need belongs; None: both."""


@dataclass(frozen=True)
class Row:
    """What one API key needs, and how its answers refuse."""

    key: ApiKey
    needs: tuple[Need, ...]
    answers: tuple[tuple[int, Answer], ...]
    """Answers by the first version that has them, the newest first."""
    exempt: bool = False
    note: str = ""
    first: First | None = None
    once: bool = False
    """Whether the request may name each entry only once."""
    special: Callable[..., Any] | None = None
    """Decides in place of the engine, where an API has logic of its own: takes what
    `engine.check` takes.
    """
    trim: Callable[[May, Any], Any] | None = None
    """Takes out of an answer what the session may not see in it."""

    def answer(self, version: int) -> Answer:
        """Return how the answer of a version is made."""
        return next(answer for since, answer in self.answers if version >= since)


def named(resource_type: ResourceType, field: str) -> Resource:
    """Find the resource in a field of an entry; "" is the entry itself."""

    def find(entry: Any, _request: Any, _topics: Topics) -> Target:
        return resource_type, getattr(entry, field) if field else entry

    return find


def topic(field: str | None = "name", id_field: str = "topic_id") -> Resource:
    """Find an entry's topic by its id or, without one, by its name; ``field`` is None where topics
    have no names.
    """

    def find(entry: Any, _request: Any, topics: Topics) -> Target:
        topic_id = getattr(entry, id_field)
        if topic_id == ZERO_UUID and field is not None:
            return ResourceType.TOPIC, getattr(entry, field)
        name = topics.name_of(topic_id)
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return ResourceType.TOPIC, name

    return find


def whole(
    operation: AclOperation,
    resource_type: ResourceType,
    field: str = "",
    *,
    names: Callable[[Any], Iterable[str | None]] | None = None,
    **more: Any,
) -> Need:
    """Need an operation for the request as a whole: on the resource that a field names, on all of
    several ``names``, or on the cluster.
    """

    def find(request: Any) -> Iterable[Target]:
        if names is not None:
            return [(resource_type, name) for name in names(request)]
        return [(resource_type, getattr(request, field) if field else CLUSTER_NAME)]

    return Need(Scope.WHOLE, operation, resource_type.name, resources=find, **more)


def whole_by(
    operation: AclOperation,
    resources: Callable[[Any], Iterable[Target]],
    type_name: str,
    **more: Any,
) -> Need:
    """Need an operation for the request as a whole, on resources that a function finds."""
    return Need(Scope.WHOLE, operation, type_name, resources=resources, **more)


def each(
    operation: AclOperation, resource: ResourceType | Resource, field: str = "", **more: Any
) -> Need:
    """Need an operation for each entry of the array that the row's answer echoes."""
    if isinstance(resource, ResourceType):
        find = named(resource, field)
        return Need(Scope.EACH, operation, resource.name, resource=find, **more)
    type_name = more.pop("type_name", ResourceType.TOPIC.name)
    return Need(Scope.EACH, operation, type_name, resource=resource, **more)


def keep(
    operation: AclOperation, resource_type: ResourceType, array: str, field: str, **more: Any
) -> Need:
    """Need an operation to see an entry of the answer; without it the entry is left out."""
    find = named(resource_type, field)
    return Need(Scope.KEEP, operation, resource_type.name, resource=find, array=array, **more)


def on_cluster(*operations: AclOperation) -> Unless:
    """Name the broader right to do one of the operations on the cluster."""

    def has(may: May) -> bool:
        return any(may.cluster(operation, quietly=True) for operation in operations)

    has.__doc__ = " or ".join(operation.name for operation in operations) + " on the Cluster"
    return has


def anywhere(operation: AclOperation, resource_type: ResourceType) -> Unless:
    """Name the broader right to do the operation on any resource of a type (KIP-679)."""

    def has(may: May) -> bool:
        return may.anywhere(operation, resource_type)

    has.__doc__ = f"{operation.name} on any {resource_type.name.title()}"
    return has


def since(version: int) -> range:
    """Name the versions from one on."""
    return range(version, ALL_VERSIONS.stop)


def until(version: int) -> range:
    """Name the versions up to one."""
    return range(version + 1)


def row(key: ApiKey, *needs: Need, answer: Answer | dict[int, Answer] = TOP, **more: Any) -> Row:
    """Write a row; an ``answer`` that changed its form is given by the first version of each."""
    answers = answer if isinstance(answer, dict) else {0: answer}
    return Row(key, needs, tuple(sorted(answers.items(), reverse=True)), **more)


def exempt(key: ApiKey, note: str) -> Row:
    """Write the row of a key that needs no right, and say why."""
    return Row(key, (), ((0, TOP),), exempt=True, note=note)
