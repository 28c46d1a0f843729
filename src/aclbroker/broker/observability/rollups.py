"""Equal decisions of a period, put together: what repeats costs one line, however often it comes.

Periods begin at whole multiples of their length since midnight in UTC, so that none has decisions
of two days.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from aclbroker.acl.authorizer import Decision, Position, RequestContext
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.observability.audit_record import (
    Asked,
    Name,
    Record,
    Request,
    name_of,
    request_of,
    shortened,
)

_DAY: Final = 86_400
_COUNT: Final = attrgetter("count")

_MOST_RECORDS: Final = 20_000
"""How many are kept, open or waiting to be written; each takes 3 KB at most.

Half of them may be of one principal in one period, so that nobody leaves no room for others.
"""

_MOST_SINGLES: Final = 500
"""How many a call of `RollUps.add` returns to be written at once: some milliseconds of work."""

Single = tuple[Record, Record | None]
"""A decision to be written at once, and the record of what repeats it, if there is room for one."""

_Key = tuple[tuple[str, ...], str, str, int, AclOperation, ResourceType, bool]
"""What `Asked` is made of: principals, host, listener, request, operation, type, log_if_denied."""


class _Group(dict[Name, Record]):
    """The records of the same `Asked`, by name."""

    __slots__ = ("asked",)

    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked = asked


class RollUps:
    """The records of the present period, and those of earlier ones that are to be written.

    ``seconds`` is the length of a period. ``unfit`` counts the denied (0) and the allowed (1)
    decisions for which no record could be kept or returned.
    """

    def __init__(self, seconds: int, most: int = _MOST_RECORDS) -> None:
        self.unfit = [0, 0]
        self._seconds = seconds
        self._most = most
        self._open: dict[_Key, _Group] = {}
        self._ended: deque[Record] = deque()
        self._kept = 0  # open or ended
        self._of_principal: Counter[str] = Counter()  # open
        self._begins_at = self._ends_at = 0.0

    def __len__(self) -> int:
        return self._kept

    def add(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        log_if_denied: bool,
        now: float,
        acls: Position | None = None,
    ) -> list[Single]:
        """Count decisions, which were made by the ACLs of a position.

        Return those that should be written at once, each for itself.
        These are the first denials of their kind in this period, and what there is no room for.
        """
        self.end_period(now)
        key, group = self._group(context, operation, resource_type, log_if_denied)
        client_id = shortened(context.client_id)
        request: Request | None = None
        singles: list[Single] = []
        for name, references, decision in decided:
            kept_name = name_of(name)
            record = group.get(kept_name)
            if record is not None and record.takes(decision, references):
                record.repeat(references, client_id, now, acls)
            elif len(singles) < _MOST_SINGLES or self._has_room(context.session.principals[0]):
                request = request or request_of(context)
                new = Record(group.asked, request, kept_name, references, decision, now, acls)
                self._begin(group, new, singles)
            else:
                self.unfit[decision.allowed] += 1
        if group:
            self._open[key] = group
        return singles

    def _group(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        log_if_denied: bool,
    ) -> tuple[_Key, _Group]:
        """Return the records of what is asked for, and their key; a new group is not kept yet."""
        session = context.session
        asked_by = (session.principals, session.host, session.listener, context.api_key)
        key = (*asked_by, operation, resource_type, log_if_denied)
        group = self._open.get(key)
        if group is None:
            asked = Asked(session, context.api_key, operation, resource_type, log_if_denied)
            group = _Group(asked)
        return key, group

    def _begin(self, group: _Group, new: Record, singles: list[Single]) -> None:
        """Keep a record if there is room, and have it written at once if need be."""
        principal = group.asked.session.principals[0]
        if not self._has_room(principal):
            singles.append((new, None))
            return
        before = group.get(new.name)
        if before is not None and before.count:
            self._ended.append(before)
        if before is None or before.count:
            self._kept += 1
            self._of_principal[principal] += 1
        repeats = new
        if not new.allowed and len(singles) < _MOST_SINGLES:
            repeats = new.repeats()
            singles.append((new, repeats))
        else:
            new.count = 1
        group[new.name] = repeats

    def _has_room(self, principal: str) -> bool:
        """Tell whether a record of a principal can be kept."""
        return self._kept < self._most and self._of_principal[principal] < self._most // 2

    def unwritten(self, single: Single) -> None:
        """Count a decision that `add` returned and that could not be written at once."""
        record, repeats = single
        if repeats is None:
            self.unfit[record.allowed] += 1
        else:
            repeats.count += 1
            repeats.references += record.references
            repeats.first = min(repeats.first, record.first)
            repeats.first_acls = record.first_acls
            repeats.last = max(repeats.last, record.last)

    def end_period(self, now: float, *, at_once: bool = False) -> None:
        """Make the records ready for writing if their period is over, or ``at_once``."""
        if self._begins_at <= now < self._ends_at and not at_once:
            return
        for group in self._open.values():
            # It comes in the midst of a decision, so no Python runs for each of thousands.
            self._ended.extend(filter(_COUNT, group.values()))
        self._open = {}
        self._kept = len(self._ended)
        self._of_principal.clear()
        midnight = now - now % _DAY
        periods = (now - midnight) // self._seconds
        self._begins_at = midnight + periods * self._seconds
        self._ends_at = min(self._begins_at + self._seconds, midnight + _DAY)

    @property
    def ended(self) -> int:
        """How many records are ready for writing."""
        return len(self._ended)

    def take(self, count: int) -> list[Record]:
        """Return so many records that are ready for writing, the oldest first."""
        taken = [self._ended.popleft() for _ in range(min(count, len(self._ended)))]
        self._kept -= len(taken)
        return taken
