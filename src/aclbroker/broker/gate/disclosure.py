"""The declarations that `broker.gate.shown` consists of: who may see which parts of an answer.

Each has ``fields``, the paths (`broker.gate.places`) of the fields that it declares, and ``words``,
its sentences in docs/gate.md. `broker.gate.showing` applies the declarations to an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.places import Place, fields_of, place

_NOUNS: Final = {
    ResourceType.TOPIC: "topics",
    ResourceType.GROUP: "groups",
    ResourceType.TRANSACTIONAL_ID: "transactional ids",
    ResourceType.USER: "users",
    None: "entries",
}


class Whoever(Enum):
    """Takes the place of a right where everybody who may send the request may see all entries."""

    ASKS = "whoever may ask"


AllWhen = Callable[[Any, str, int], bool]
"""Returns whether a request asks for everything that there is.

Takes the request, the array in which it names what it asks for, and the version.
"""


def null(request: Any, array: str, _version: int) -> bool:
    """where all are asked for"""
    return getattr(request, array) is None


@dataclass(frozen=True)
class Refusal:
    """How to refuse an entry that may not be seen and that cannot be left out.

    The inner entries of ``array`` keep only their ``key`` and get an error code: 29, or 100 for a
    topic id whose name is not known.
    """

    array: str
    key: str
    fill: Mapping[str, Any]


@dataclass(frozen=True)
class Echoed:
    """Entries that the request must have asked for, in the arrays that ``asked`` names.

    An entry that was asked for was authorized together with the request. If the request asks for
    everything, an entry needs the right ``all_to``; if that is None, no entry is shown. ``inside``
    declares entries inside of each entry, which the matching entry of the request must name.
    """

    resource: ResourceType | None
    path: str
    asked: str
    all_to: AclOperation | Whoever | None
    all_when: AllWhen
    refusal: Refusal | None
    inside: Echoed | None

    @cached_property
    def place(self) -> Place:
        """Where the entries are."""
        return place(self.path)

    @cached_property
    def asked_places(self) -> tuple[Place, ...]:
        """Where the request names them."""
        return tuple(place(path) for path in self.asked.split())

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        inner = self.inside.fields if self.inside else []
        return [*fields_of(self.path), *(f"{self.place.array}.{name}" for name in inner)]

    @property
    def asked_fields(self) -> list[str]:
        """The fields of the request that name them."""
        inner = self.inside.asked_fields if self.inside else []
        array = self.asked_places[0].array
        return [*fields_of(*self.asked.split()), *(f"{array}.{name}" for name in inner)]

    def words(self) -> Iterable[str]:
        """Say what is left out or refused."""
        nouns = _NOUNS[self.resource]
        yield f"{nouns.capitalize()} that were not asked for are left out."
        when = (self.all_when.__doc__ or "").capitalize()
        if self.all_to is Whoever.ASKS:
            yield f"{when}, {nouns} are shown to {self.all_to.value}."
        elif isinstance(self.all_to, AclOperation):
            how = "refused" if self.refusal else "left out"
            yield f"{when}, {nouns} without {self.all_to.name} are {how}."
        if self.inside is not None:
            yield from self.inside.words()


@dataclass(frozen=True)
class Listed:
    """Entries that need a right to be seen, whatever was asked for; the others are left out."""

    resource: ResourceType
    path: str
    to: AclOperation

    @cached_property
    def place(self) -> Place:
        """Where the entries are."""
        return place(self.path)

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return fields_of(self.path)

    def words(self) -> Iterable[str]:
        """Say what is left out."""
        yield f"{_NOUNS[self.resource].capitalize()} without {self.to.name} are left out."


@dataclass(frozen=True)
class AllOrRefused:
    """Groups, the entries of ``array``, each of which is shown as a whole or refused.

    A session that lacks the right on one of the topics in a group sees nothing of the group.
    """

    array: str
    key: str
    to: AclOperation
    paths: tuple[str, ...]
    resource: ResourceType = ResourceType.TOPIC

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where the topics are in an entry."""
        return tuple(place(path) for path in self.paths)

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return [f"{self.array}.{path}" for path in fields_of(*self.paths)]

    def words(self) -> Iterable[str]:
        """Say what is refused."""
        yield f"A group with a topic without {self.to.name} is refused with 29."


@dataclass(frozen=True)
class Blanked:
    """Fields that are blanked for a session that lacks a right on the topic of their entry."""

    resource: ResourceType
    path: str
    to: AclOperation
    when: Callable[[Any], Callable[[Any], bool]]
    """Takes the request, and returns of an entry whether it is one that may be blanked."""
    blanks: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def place(self) -> Place:
        """Where the entries are."""
        return place(self.path)

    @property
    def fields(self) -> list[str]:
        """The declared fields; all that they contain is declared with them."""
        owner = self.path.rpartition(".")[0]
        return [*fields_of(self.path), *(f"{owner}.{name}" for name in self.blanks)]

    def words(self) -> Iterable[str]:
        """Say what is blank."""
        when = (self.when.__doc__ or "").capitalize()
        names = [name for name in self.blanks if not name.endswith("error_code")]
        yield f"{when}, blank without {self.to.name}: {', '.join(names)}."


@dataclass(frozen=True)
class Sensitive:
    """Configurations whose ``values`` become null if they are marked as sensitive.

    Kafka nulls them itself (ConfigHelper). This makes sure of it for any upstream broker.
    """

    array: str
    values: tuple[str, ...]

    @cached_property
    def place(self) -> Place:
        """Where the configurations are."""
        return place(f"{self.array}[]")

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where the values are in a configuration; the name of the field stands for an array."""
        return tuple(place(f"{value}[]") for value in self.values)

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return [f"{self.array}.{value}" for value in self.values]

    def words(self) -> Iterable[str]:
        """Say what is null."""
        yield "Values of sensitive configurations are null."


@dataclass(frozen=True)
class Operations:
    """A field of authorized operations (KIP-430), filled with those of the session by our ACLs.

    ``key`` is the field beside it with the name of the resource, "" for the cluster. ``wanted`` is
    the field of the request that asks for the operations, None if they are always told.
    """

    resource: ResourceType
    path: str
    key: str
    wanted: str | None

    @cached_property
    def place(self) -> Place:
        """Where the field is; its name stands for an array."""
        return place(f"{self.path}[]")

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return [self.path]

    def words(self) -> Iterable[str]:
        """Say whose operations they are."""
        need = "; none without DESCRIBE" if self.resource is ResourceType.CLUSTER else ""
        yield f"Authorized operations on the {self.resource.name} are the session's own{need}."


@dataclass(frozen=True)
class Tokens:
    """Delegation tokens: those that concern the session, and those that a right shows it."""

    array: str

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        names = ["principal_type", "principal_name", "token_id", "hmac", "renewers"]
        names += [f"token_requester_{name}" for name in names[:2]]
        return [f"{self.array}.{name}" for name in names]

    def words(self) -> Iterable[str]:
        """Say which are shown."""
        yield (
            "Of the tokens of the owners that were asked for, one's own are shown; others with "
            "DESCRIBE on the DELEGATION_TOKEN or DESCRIBE_TOKENS on the USER."
        )


@dataclass(frozen=True)
class Nodes:
    """Addresses of brokers and controllers (id, host and port), for which no right is needed."""

    paths: tuple[str, ...]

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return fields_of(*self.paths)

    def words(self) -> Iterable[str]:
        """Say that the answer has addresses."""
        yield "Tells addresses of nodes."


@dataclass(frozen=True)
class Along:
    """Fields for everybody who sees their entry or, at the top, who may send the request.

    ``topics`` tells of an entry whether the field names a topic, which may be a reserved one.
    """

    paths: tuple[str, ...]
    topics: Callable[[Any], bool] | None = None

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where the entries are."""
        return tuple(place(path) for path in self.paths)

    @property
    def fields(self) -> list[str]:
        """The declared fields."""
        return fields_of(*self.paths)

    def words(self) -> Iterable[str]:
        """Name the fields, with the path that leads to them."""
        names = dict.fromkeys(".".join(path.split(".")[-2:]) for path in self.fields)
        yield f"Shown along with the rest: {', '.join(names)}."


Line = Echoed | Listed | AllOrRefused | Blanked | Sensitive | Operations | Tokens | Nodes | Along
"""A declaration about some fields of an answer."""


def echoed(
    resource: ResourceType | None,
    path: str,
    asked: str = "",
    *,
    all_to: AclOperation | Whoever | None = None,
    all_when: AllWhen = null,
    refusal: Refusal | None = None,
    inside: Echoed | None = None,
) -> Echoed:
    """Declare entries that must have been asked for; ``asked`` is the same path if it is empty."""
    return Echoed(resource, path, asked or path, all_to, all_when, refusal, inside)


def listed(resource: ResourceType, path: str, to: AclOperation) -> Listed:
    """Declare entries that need a right to be seen."""
    return Listed(resource, path, to)


def all_or_refused(array: str, key: str, to: AclOperation, *paths: str) -> AllOrRefused:
    """Declare groups with the id ``key`` that need a right on every topic at ``paths``."""
    return AllOrRefused(array, key, to, paths)


def blanked(
    resource: ResourceType,
    path: str,
    to: AclOperation,
    when: Callable[[Any], Callable[[Any], bool]],
    **blanks: Any,
) -> Blanked:
    """Declare the values of fields for entries on which a session lacks a right.

    It applies to an entry if ``when(entry, request)`` is true.
    """
    return Blanked(resource, path, to, when, blanks)


def sensitive(array: str, *values: str) -> Sensitive:
    """Declare configurations, and where each has its values."""
    return Sensitive(array, values)


def operations(
    resource: ResourceType, path: str, key: str = "", wanted: str | None = None
) -> Operations:
    """Declare a field of authorized operations."""
    return Operations(resource, path, key, wanted)


def nodes(*paths: str) -> Nodes:
    """Declare addresses of nodes."""
    return Nodes(paths)


def along(*paths: str, topics: Callable[[Any], bool] | None = None) -> Along:
    """Declare fields that are shown with the entry that they belong to."""
    return Along(paths, topics)


def refused(array: str, key: str, **fill: Any) -> Refusal:
    """Declare that an entry is refused by codes in its inner entries."""
    return Refusal(array, key, fill)
