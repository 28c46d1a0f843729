"""What a broker for tests notes of each decision: denials with what would allow them, and use."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.authorizer import (
    ANY_RESOURCE,
    Decision,
    Position,
    RequestContext,
    Rule,
    RuleKind,
)
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclOperation,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY, bit_field, supported_operations
from aclbroker.acl.reasons import OF_ANY_TOPIC, AclChange
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.broker.gate.need import Broader, Keep, Need
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.observability.audit import Audit, Decided
from aclbroker.protocol.messages import APIS

MOST_DENIALS: Final = 10_000
"""How many denials a broker keeps of those that differ."""

_TEST: Final = "PYTEST_CURRENT_TEST"
_ANY_TOPIC: Final = (AclOperation.WRITE, ResourceType.TOPIC, None)
_ALLOWED: Final = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))


class Question(NamedTuple):
    """What was asked of an authorizer. A ``name`` of None is any resource of the type."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


class Denial(NamedTuple):
    """Something that was denied.

    ``test`` is the test that ran then, "" if none did. ``request`` is the name of the API key, with
    ``client_id`` as the client says. ``change`` is the smallest change of ACLs that allows it; None
    if none would, such as for a resource that no ACL can name. ``times`` is how often it was.
    """

    test: str
    request: str
    client_id: str | None
    question: Question
    rule: str
    change: AclChange | None
    times: int = 1

    def __str__(self) -> str:
        asked = self.question
        kind = asked.resource_type.name
        resource = f"any {kind}" if asked.name is None else f"{kind} {asked.name}"
        what = f"{asked.principal} from {asked.host}: {self.request} needs {asked.operation.name}"
        fix = f"; to allow it: {self.fix}" if self.fix else ""
        return f"{what} on {resource}{fix}"

    @property
    def fix(self) -> str:
        """The change in words, with the operations that would do as well; "" for none.

        Most clients ask for DESCRIBE before they read or write, and stop if it is denied. The words
        begin with the operation that the client needs next, which gives DESCRIBE as well.
        """
        if self.change is None:
            is_of_any = self.question[2:] == _ANY_TOPIC and self.rule == RuleKind.DEFAULT_DENY.value
            return f"add {OF_ANY_TOPIC}, to {self.question.principal}" if is_of_any else ""
        aims = _aims(self) if self.question.operation is AclOperation.DESCRIBE else ()
        if aims and len(self.change.add) == 1 and not self.change.remove:
            return _aimed(self.change.add[0], aims)
        implying = _implying(self.change)
        return f"{self.change}, or {implying}" if implying else str(self.change)


def in_words(denials: Iterable[Denial], left_out: int) -> list[str]:
    """Return denials in words, each once, and how many more were left out."""
    lines = list(dict.fromkeys(map(str, denials)))
    if left_out:
        lines.append(f"{left_out} more denials, beyond the first {MOST_DENIALS} that differ")
    return lines


_AIMS: Final[Mapping[tuple[str, ResourceType], tuple[AclOperation, ...]]] = {
    ("FindCoordinator", ResourceType.GROUP): (AclOperation.READ,),
    ("FindCoordinator", ResourceType.TRANSACTIONAL_ID): (AclOperation.WRITE,),
    ("ListOffsets", ResourceType.TOPIC): (AclOperation.READ,),
    ("Metadata", ResourceType.TOPIC): (AclOperation.WRITE, AclOperation.READ),
    ("OffsetFetch", ResourceType.GROUP): (AclOperation.READ,),
    ("OffsetForLeaderEpoch", ResourceType.TOPIC): (AclOperation.READ,),
}
"""The operations that clients need next, after they were allowed DESCRIBE for a request."""

_BY_CLIENT_ID: Final = {
    "admin": (),
    "producer": (AclOperation.WRITE,),
    "consumer": (AclOperation.READ,),
}
"""The same for Metadata, by the names that Kafka's own clients give themselves."""


def _aims(denial: Denial) -> tuple[AclOperation, ...]:
    aims = _AIMS.get((denial.request, denial.question.resource_type), ())
    if len(aims) > 1:
        client_id = (denial.client_id or "").lower()
        return next((own for word, own in _BY_CLIENT_ID.items() if word in client_id), aims)
    return aims


def _aimed(acl: AclBinding, aims: tuple[AclOperation, ...]) -> str:
    """Return in words an ACL with one of the operations in place of DESCRIBE."""
    first = f"add {acl_text(acl._replace(operation=aims[0]))}"
    if len(aims) == 1:
        return f"{first}, which also gives DESCRIBE"
    return (
        f"{first} to produce, or {aims[1].name} to consume; each also gives DESCRIBE, "
        "which alone is enough to look at the topic"
    )


def _implying(change: AclChange) -> str:
    """Return in words which operations, allowed instead of the one that is added, would do."""
    if len(change.add) != 1:
        return ""
    [acl] = change.add
    granting = GRANTED_BY[acl.operation] & ~(1 << acl.operation)
    found = [each.name for each in supported_operations(acl.resource_type) if granting >> each & 1]
    if len(found) < 2:
        return "".join(f"{name}, which implies it" for name in found)
    return f"{', '.join(found[:-1])} or {found[-1]}, which imply it"


_Asked = tuple[str, str, Question, Rule]
"""What makes a denial differ from others: the test, the request, the question and what decided."""


class Notes:
    """What was decided so far; the broker's thread adds to it, and tests read it.

    ``used`` has each question that was allowed, and ``denials`` each denial that counts: what only
    filters an answer is in neither. The same denial in the same test, as of a client that tries
    again, is there once. ``left_out`` counts those for which there was no room.
    """

    def __init__(self, is_recording: bool = False) -> None:
        self.is_recording = is_recording
        self.explain: Callable[..., WhyDenied] | None = None
        self.on_denial: Callable[[Denial], None] | None = None
        """Called in the broker's thread with each denial that differs; it must not wait."""
        self._lock = threading.Lock()
        self._denials: dict[_Asked, Denial] = {}
        self._counts: Counter[_Asked] = Counter()
        self._used: dict[Question, None] = {}
        self.left_out = 0

    def denials(self) -> list[Denial]:
        """Return the denials so far, in the order in which each was the first time."""
        with self._lock:
            found = list(self._denials.items())
            return [denial._replace(times=self._counts[asked]) for asked, denial in found]

    def used(self) -> list[Question]:
        """Return the questions that were allowed so far."""
        with self._lock:
            return list(self._used)

    def forget_denials(self) -> None:
        """Begin anew with denials."""
        with self._lock:
            self._denials.clear()
            self._counts.clear()
            self.left_out = 0

    def note(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[Decided],
    ) -> None:
        """Note decisions."""
        session = context.session
        for name, _, decision in decided:
            name = None if name is ANY_RESOURCE else name
            asked = Question(session.principals[0], session.address, operation, resource_type, name)
            if decision.allowed:
                with self._lock:
                    self._used[asked] = None
            else:
                self._note_denial(context, asked, decision)

    def _note_denial(self, context: RequestContext, asked: Question, decision: Decision) -> None:
        test = os.environ.get(_TEST, "").rpartition(" ")[0]
        request = APIS[context.api_key].name
        key = (test, request, asked, decision.rule)
        with self._lock:
            is_new = key not in self._counts
            if is_new and len(self._counts) >= MOST_DENIALS:
                self.left_out += 1
                return
            self._counts[key] += 1
            if not is_new:
                return
        change = None
        if self.explain is not None:
            resource = asked.resource_type, asked.name
            change = self.explain(context, decision.kind, asked.operation, resource).change
            change = None if change is None else _from_anywhere(change)
        rule = str(decision.kind.value)
        found = Denial(test, request, context.client_id, asked, rule, change)
        with self._lock:
            # They may have been forgotten meanwhile.
            if key in self._counts:
                self._denials[key] = found
        if self.on_denial is not None:
            self.on_denial(found)


def _from_anywhere(change: AclChange) -> AclChange:
    """Return a change whose new ACLs hold for all hosts: that of a test means nothing."""
    return change._replace(add=tuple(acl._replace(host=WILDCARD) for acl in change.add))


def auditing(notes: Notes) -> type[Audit]:
    """Return a class of audit logs that note each decision and write nothing of them."""

    class NotedAudit(Audit):
        def __init__(
            self, config: Any, cluster_id: str, output: Any, explain: Any = None, **others: Any
        ) -> None:
            super().__init__(config, cluster_id, output, explain, **others)
            notes.explain = explain

        def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
            return (False, True) if log_if_denied else ()

        def record(
            self,
            context: RequestContext,
            operation: AclOperation,
            resource_type: ResourceType,
            decided: Sequence[Decided],
            *,
            log_if_denied: bool = True,
            acls: Position | None = None,
        ) -> None:
            if log_if_denied:
                notes.note(context, operation, resource_type, decided)

    return NotedAudit


class EnforcingRights(RequestRights):
    """Asks an authorizer, and has a broader right noted as used if it stood in for a narrower one.

    A broader right that was found while an answer is filtered was no use.
    """

    __slots__ = ()

    def is_moot(self, need: Need) -> bool:
        """Return whether the session has the broader right that makes a need unnecessary."""
        held = super().is_moot(need)
        broader = need.unless
        if held and broader is not None and broader.anywhere is None and not isinstance(need, Keep):
            decided = [(CLUSTER_NAME, 1, _ALLOWED)]
            self._observer.record(self.context, broader.operation, ResourceType.CLUSTER, decided)
        return held


class RecordingRights(RequestRights):
    """Allows everything, and notes what would be needed, as narrowly as the gate asks for it.

    A broader right that would make a need unnecessary is never there: who creates a topic needs
    CREATE on the topic, and not on the cluster.
    """

    __slots__ = ()

    def ask(
        self,
        need: Need | Broader,
        resource_type: ResourceType,
        counts: Mapping[str | None, int],
    ) -> set[str | None]:
        """Return all names, and have those noted whose denial would be logged."""
        names = {name: count for name, count in counts.items() if name is not None}
        if need.log_if_denied and names:
            decided = [(name, count, _ALLOWED) for name, count in names.items()]
            self._observer.record(self.context, need.operation, resource_type, decided)
        return set(names)

    def is_moot(self, need: Need) -> bool:
        """Return that no broader right is there."""
        return False

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """Return all operations of the type."""
        return bit_field(supported_operations(resource_type))
