"""The rights of a request's session: the gate's only access to the authorizer.

The engine asks for the needs of the request's row; the API's own function and its handler ask for
them by name. Nothing that the row does not declare can be asked, so the table of needs is complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, cast

from aclbroker.acl.authorizer import (
    ANY_RESOURCE,
    Authorizer,
    Decision,
    Position,
    RequestContext,
    Rule,
    RuleKind,
    deciding_by_name,
)
from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.acl.operations import bit_field, supported_operations
from aclbroker.broker.gate.need import Broader, Need, Profile, Row
from aclbroker.protocol.primitives import Frame
from aclbroker.turns import in_turns, pause

_NAMES_AT_ONCE: Final = 500
_RECORDS_AT_ONCE: Final = 20
_Part = tuple[Position | None, int, int]
"""The position of the ACLs that decided, and of which decisions: from the first up to the last."""

_NONE: Final[frozenset[str | None]] = frozenset()
_RESERVED: Final = Decision(False, Rule(RuleKind.RESERVED_TOPIC))


class Observer(Protocol):
    """Records decisions, for the audit log or for an explanation."""

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        """Return which decisions to record: False stands for denied and True for allowed ones.

        It is called before `record`, so that unwanted decisions cost nothing.
        """

    def position(self) -> Position | None:
        """Return the position of the ACLs that decide now, None if they have none.

        It is asked for when something was decided, before others can change the ACLs.
        """

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        *,
        log_if_denied: bool = True,
        acls: Position | None = None,
    ) -> None:
        """Record the wanted decisions.

        ``decided`` has the name of each resource, how often the request names it, and the decision.
        ``acls`` is the position of the ACLs that decided.
        """


class RequestRights:
    """The rights of one request's session, limited to those that the row of its API key declares.

    Without an ``authorizer`` everything is allowed, except on a resource whose name is null. The
    request as it came is ``asked``, refused parts included. The missing topics that it may create
    are ``creatable``. If the gate adds nothing to the answer, ``is_whole`` is true. The bytes of
    the request are ``frame``, which is empty if its header has undeclared tagged fields. All four
    are set by the check. For a request with a session ``checked_with`` is the `basis` of the check.
    No session has a right on ``reserved`` topics, even if the authorizer allows it.
    """

    __slots__ = (
        *("_authorizer", "_held", "_named", "_observer", "_seen"),
        *("asked", "checked_with", "context", "creatable", "frame", "is_whole"),
        *("profile", "reserved", "row"),
    )

    def __init__(
        self,
        row: Row,
        context: RequestContext,
        authorizer: Authorizer | None,
        observer: Observer,
        profile: Profile,
        reserved: Collection[str] = (),
    ) -> None:
        self.row = row
        self.context = context
        self.profile = profile
        self.reserved = reserved
        self._authorizer = authorizer
        self._observer = observer
        self._held: dict[Broader, bool] | None = None
        self._named: Mapping[str, Need] | None = None
        self._seen: dict[str, dict[str, bool]] = {}
        self.asked: Any = None
        self.creatable: frozenset[str | None] = _NONE
        self.is_whole = False
        self.frame: Frame = b""
        self.checked_with: object = None

    def ask(
        self,
        need: Need | Broader,
        resource_type: ResourceType,
        counts: Mapping[str | None, int],
    ) -> set[str | None]:
        """Return the names on which the operation of a need is allowed.

        ``counts`` has how often the request names each resource, for the audit log.
        """
        if None in counts:
            counts = {name: count for name, count in in_turns(counts.items()) if name is not None}
        if self.reserved:
            counts = self.unreserved(need, resource_type, counts)
        if self._authorizer is None or not counts:
            return set(counts)
        context = self.context
        operation = need.operation
        decisions, positions = self._decisions(operation, resource_type, list(counts))
        pairs = zip(in_turns(counts), decisions, strict=True)
        allowed = {name for name, each in pairs if each.allowed}
        loud = need.log_if_denied
        wanted = self._observer.wanted(log_if_denied=loud)
        # A shortcut: most requests are allowed as a whole, and most audit logs record only denials.
        if wanted and (True in wanted or len(allowed) < len(counts)):
            decided = [
                (name, count, decision)
                for (name, count), decision in zip(in_turns(counts.items()), decisions, strict=True)
            ]
            record = partial(self._observer.record, context, operation, resource_type)
            for position, begin, end in positions:
                recorded = [each for each in decided[begin:end] if each[2].allowed in wanted]
                for first in range(0, len(recorded), _RECORDS_AT_ONCE):
                    some = recorded[first : first + _RECORDS_AT_ONCE]
                    record(some, log_if_denied=loud, acls=position)
                    pause()
        return allowed

    def position(self) -> Position | None:
        """Return the position of the ACLs that decide now, None if they have none."""
        return self._observer.position()

    def basis(self, operation: AclOperation, resource_type: ResourceType) -> object:
        """Return what decides about an operation on resources of a type, for the session.

        It is another object after each change that may alter a decision, or a tuple that is not
        equal to the one before. It is None if the authorizer has no position of its ACLs.
        """
        by_name = deciding_by_name(self._authorizer)
        if by_name is not None:
            decisions = by_name.decisions(self.context.session, operation, resource_type)
            if decisions is not None:
                return decisions
        position = self.position()
        return None if position is None else (position, self.context.session.peer)

    def unreserved(
        self,
        need: Need | Broader,
        resource_type: ResourceType,
        counts: Mapping[str | None, int],
    ) -> Mapping[str | None, int]:
        """Return the resources that are no reserved topics; these are recorded as denied."""
        if resource_type is not ResourceType.TOPIC:
            return counts
        barred = [(name, counts[name], _RESERVED) for name in self.reserved if name in counts]
        if not barred:
            return counts
        loud = need.log_if_denied
        if False in self._observer.wanted(log_if_denied=loud):
            self._observer.record(
                self.context, need.operation, resource_type, barred, log_if_denied=loud
            )
        return {
            name: count for name, count in in_turns(counts.items()) if name not in self.reserved
        }

    def _decisions(
        self, operation: AclOperation, resource_type: ResourceType, names: Sequence[str | None]
    ) -> tuple[Sequence[Decision], list[_Part]]:
        """Ask the authorizer, which must exist; for many names in parts, with a pause between."""
        authorizer = cast(Authorizer, self._authorizer)
        if len(names) <= _NAMES_AT_ONCE:
            found = authorizer.authorize(self.context, operation, resource_type, names)
            return found, [(self._observer.position(), 0, len(names))]
        decisions: list[Decision] = []
        parts: list[_Part] = []
        for first in range(0, len(names), _NAMES_AT_ONCE):
            some = names[first : first + _NAMES_AT_ONCE]
            decisions += authorizer.authorize(self.context, operation, resource_type, some)
            parts.append((self._observer.position(), first, first + len(some)))
            pause()
        return decisions, parts

    def _ask_anywhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the operation is allowed on any resource of the type (KIP-679)."""
        if self._authorizer is None:
            return True
        context = self.context
        decision = self._authorizer.authorize_by_resource_type(context, operation, resource_type)
        if decision.allowed in self._observer.wanted(log_if_denied=True):
            decided = [(ANY_RESOURCE, 1, decision)]
            position = self._observer.position()
            self._observer.record(context, operation, resource_type, decided, acls=position)
        return decision.allowed

    def applying(self) -> tuple[Need, ...]:
        """Return the row's needs that hold in the request's version and in the profile."""
        return self.row.applying(self.context.api_version, self.profile)

    def need(self, name: str) -> Need | None:
        """Return the row's need with a name, None if it does not hold in this version and profile.

        Raises KeyError for a name that the row does not declare.
        """
        if self._named is None:
            self._named = self.row.named(self.context.api_version, self.profile)
        need = self._named.get(name)
        if need is None:
            self.declared(name)
        return need

    def declared(self, name: str) -> Need:
        """Return the row's first need with a name, whether or not it holds.

        Raises KeyError for a name that the row does not declare.
        """
        for need in self.row.needs:
            if need.name == name:
                return need
        raise KeyError(f"{self.row.key.name} declares no need {name!r}")

    def allowed(
        self, name: str, resources: Mapping[str | None, int] | Iterable[str | None]
    ) -> set[str | None]:
        """Return the resources on which the row's need with a name, or a broader right, is allowed.

        All are allowed if the need does not hold in this version and profile. ``resources`` has the
        names, or maps them to how often the request has each. Raises KeyError as `need` does.
        """
        need = self.need(name)
        # dict is listed first, since isinstance of an abstract type takes as long as a decision.
        counts = (
            resources if isinstance(resources, (dict, Mapping)) else dict.fromkeys(resources, 1)
        )
        if need is None or not counts or (need.unless is not None and self.is_moot(need)):
            if self.reserved:
                declared = self.declared(name)
                counts = self.unreserved(declared, declared.types[0], counts)
            return set(counts) - {None}
        return self.ask(need, need.types[0], counts)

    def visible(self, name: str, resources: Iterable[str]) -> list[str]:
        """Return the resources, in order, that the row's need with a name lets the session see.

        A handler that lists works with these alone, so neither its answer nor its time depends on
        hidden resources. The authorizer decides about each resource once a request. Raises KeyError
        as `need` does.
        """
        seen = self._seen.setdefault(name, {})
        listed = list(resources)
        new = [each for each in in_turns(listed) if each not in seen]
        if new:
            allowed = self.allowed(name, dict.fromkeys(new, 1))
            seen |= {each: each in allowed for each in in_turns(new)}
        return [each for each in in_turns(listed) if seen[each]]

    def holds(self, name: str) -> bool:
        """Return whether a need is allowed on the cluster. Raises KeyError as `need` does."""
        return bool(self.allowed(name, (CLUSTER_NAME,)))

    def is_moot(self, need: Need) -> bool:
        """Return whether the session has the broader right that makes a need unnecessary.

        The authorizer is asked once for each broader right of a request.
        """
        broader = need.unless
        if broader is None:
            return False
        if self._held is None:
            self._held = {}
        if broader not in self._held:
            self._held[broader] = self._holds(broader)
        return self._held[broader]

    def _holds(self, broader: Broader) -> bool:
        if broader.anywhere is not None:
            return self._ask_anywhere(broader.operation, broader.anywhere)
        return bool(self.ask(broader, ResourceType.CLUSTER, {CLUSTER_NAME: 1}))

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return the operations that the session may do on a resource, as a bit field (KIP-430).

        Raises KeyError if the row does not list the resource type in ``operations_of``.
        """
        if resource_type not in self.row.operations_of:
            raise KeyError(f"{self.row.key.name} shows no operations of {resource_type.name}")
        if resource_type is ResourceType.TOPIC and name in self.reserved:
            return 0
        if self._authorizer is None:
            return bit_field(supported_operations(resource_type))
        return self._authorizer.authorized_operations(self.context, resource_type, name)


def names_of(entries: Collection[object], field: str) -> dict[str | None, int]:
    """Return the different names in a field of entries, each with the count 1."""
    return dict.fromkeys((getattr(entry, field) for entry in in_turns(entries)), 1)
