"""The audit log: a record of who was allowed or denied what and why, and of who changed what.

Levels are those of Kafka's StandardAuthorizer: a denial is info and an allowed action debug, but
what only filters an answer or fills an authorized-operations field is trace.

Equal decisions are put together (`rollups`), and of what is written at once there is a limit a
second, so that nobody can fill a disk by being denied. What is left out is counted.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import time
from typing import Any, Final

from aclbroker.acl.authorizer import Decision, Position, RequestContext, RuleKind
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.broker.config.model import Config
from aclbroker.broker.observability.allowance import Allowance
from aclbroker.broker.observability.audit_changes import (
    Change,
    asked_by,
    event_of,
    is_short,
    own_json,
)
from aclbroker.broker.observability.audit_file import AuditFile
from aclbroker.broker.observability.audit_forms import (
    Level,
    Line,
    Node,
    kafka_lines,
    kafka_other_line,
    level_of,
)
from aclbroker.broker.observability.audit_record import Asked, Record, name_of, request_of
from aclbroker.broker.observability.audit_rotation import Rotation
from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.logs import LogOutput, json_line
from aclbroker.broker.observability.rollups import RollUps, Single

Decided = tuple[str | None, int, Decision]
"""A resource's name, how often the request names it, and what was decided."""

Explain = Callable[
    [RequestContext, RuleKind, AclOperation, tuple[ResourceType, str | None]], WhyDenied
]
"""Returns why a rule denied an operation on a resource; a name of None is any of its type."""

# A request may name a million topics: their records are not all held in memory at once.
_RECORDS_AT_ONCE: Final = 500

_PORTION: Final = 100
"""How many lines are written before other tasks get their turn: about two milliseconds."""

_WORK_SECONDS: Final = 1.0
"""How often it is looked for what waits, and told what was left out."""

_REMARK_SECONDS: Final = 30.0
"""How long it is said that something was left out."""

_BURST_SECONDS: Final = 10
"""How long what was not written may be saved up for later."""

_LEAST_ROOM: Final = 4096
"""How many bytes must be left for lines to be made: nearly all of them are shorter."""

_NEAREST_A_SECOND: Final = 50
_NEAREST_AT_ONCE: Final = 20
"""How many denials are explained; each takes 0.4 ms at most."""

_KINDS: Final = ("denied", "allowed", "failed_changes")
"""What is left out, as it is told."""

_LEAST = {"off": Level.OFF, "denied": Level.INFO, "all": Level.DEBUG, "trace": Level.TRACE}


def nowhere() -> None:
    """Where ACLs are that have no position."""


class Audit:
    """Records decisions and changes in the form and at the place that the configuration names.

    Without `aclbroker.audit.file` records go to the log's output, whatever the log's level.
    ``explain`` tells why something is denied. ``clock`` returns seconds since the epoch, and
    ``position`` that of the ACLs which decide now. What is not written at once waits for `start`,
    `reopen` or `close`. Raises OSError if the file cannot be opened. With ``main`` it is one of
    `of_cluster`, whose file is that one's. Other processes that write to the file have the same
    ``lock``.
    """

    def __init__(
        self,
        config: Config,
        cluster_id: str,
        output: LogOutput,
        explain: Explain | None = None,
        clock: Callable[[], float] = time,
        main: Audit | None = None,
        position: Callable[[], Position | None] = nowhere,
        lock: LineLock | None = None,
    ) -> None:
        self._config = config
        self._lock = lock
        self._main = main
        self._others: list[Audit] = []
        self._is_kafka = config.audit_format == "kafka"
        self._node = Node(cluster_id, config.node_id)
        self._output = output
        self._clock = clock
        self.position = position
        """Returns the position of the ACLs that decide now, None if they have none."""

        self._path = config.audit_file
        self._rotation = Rotation(
            config.audit_file_max_bytes,
            config.audit_file_max_seconds,
            config.audit_files_max_total_bytes,
        )
        self._file: AuditFile | None = None
        self.set_level(config.audit_level)
        # Kafka's text has no place for a count and a second time.
        seconds = 0 if self._is_kafka else config.audit_rollup_seconds
        self._rollups = RollUps(seconds) if seconds else None
        rate = config.audit_max_bytes_per_second
        self._bytes = Allowance(rate, rate * _BURST_SECONDS, clock) if rate else None
        self._explain = None if self._is_kafka else explain
        self._explained = Allowance(_NEAREST_A_SECOND, _NEAREST_AT_ONCE, clock)
        # Of the denied (0) and the allowed (1) decisions, from the beginning on, as what was told.
        self._left_out = [0, 0] if self._rollups is None else self._rollups.unfit
        self._told = dict.fromkeys(_KINDS, 0)
        self._changes: deque[tuple[dict[str, Any], Iterator[Change]]] = deque()
        self._changes_left_out = 0
        self._told_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._is_reopening = self._is_closing = False

    def of_cluster(
        self, cluster_id: str, explain: Explain | None, position: Callable[[], Position | None]
    ) -> Audit:
        """Return one for the decisions and changes of another cluster.

        It has the same place, form and level, and starts, reopens, changes its level and closes
        with this one, whether that has started or not; the limits of what is kept and written are
        its own.
        """
        made = Audit(
            *(self._config, cluster_id, self._output, explain, self._clock),
            main=self,
            position=position,
        )
        made.set_level(self._level)
        if self._timer is not None:
            made.start()
        self._others.append(made)
        return made

    def set_level(self, level: str) -> None:
        """Change which decisions are recorded: off, denied, all or trace. Raises OSError."""
        self._level = level
        least = _LEAST[level]
        if self._main is not None:
            self._file = self._main._file
        elif self._path is not None and self._file is None and least is not Level.OFF:
            self._file = AuditFile(self._path, self._rotation, clock=self._clock, lock=self._lock)
        self._is_off = least is Level.OFF
        self._wanted = tuple(
            tuple(allowed for allowed in (False, True) if level_of(allowed, log_if_denied) >= least)
            for log_if_denied in (False, True)
        )
        for other in self._others:
            other.set_level(level)

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        """Return which decisions are recorded: of the denied (False) and the allowed ones (True).

        Without ``log_if_denied`` the decisions only filter an answer.
        """
        return self._wanted[log_if_denied]

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
        """Record decisions that are `wanted`. If they cannot be written it does not raise.

        ``acls`` is the position of the ACLs that decided.
        """
        if self._rollups is not None:
            asked_for = context, operation, resource_type
            now = self._clock()
            singles = self._rollups.add(*asked_for, decided, log_if_denied, now, acls)
            if singles:
                self._write_singles(self._rollups, context, singles)
            return
        asked = Asked(context.session, context.api_key, operation, resource_type, log_if_denied)
        request = request_of(context)
        for first in range(0, len(decided), _RECORDS_AT_ONCE):
            some = decided[first : first + _RECORDS_AT_ONCE]
            written = 0
            if self._has_room():
                now = self._clock()
                records = [
                    Record(asked, request, name_of(each[0]), *each[1:], now, acls) for each in some
                ]
                written = self._write_records(context, records)
            for _, _, decision in some[written:]:
                self._left_out[decision.allowed] += 1

    def changed(self, context: RequestContext, changes: Iterable[Change]) -> None:
        """Record the changes that a request asked for, once it is known how they ended.

        They are recorded at every level but OFF: those that were made in any case, others as far as
        the limit of bytes leaves room. Many are written in turns with other tasks.
        """
        if not self._is_off:
            self._add_changes(asked_by(context), changes)

    def changed_by(self, what: str, changes: Iterable[Change]) -> None:
        """Record changes as `changed` does that no request asked for; ``what`` made them."""
        if not self._is_off:
            self._add_changes({"by": what}, changes)

    def _add_changes(self, asked: dict[str, Any], changes: Iterable[Change]) -> None:
        head = self._node.other_event(self._clock(), "info", "change") | asked
        self._changes.append((head, iter(changes)))
        if len(self._changes) == 1:
            self._write_changes()
        if self._timer is None:
            self._work_off()
        elif self._changes:
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(0, self._tick)

    def start(self) -> None:
        """Begin to write what is not written at once, from the running event loop."""
        self._timer = asyncio.get_running_loop().call_later(_WORK_SECONDS, self._tick)
        for other in self._others:
            other.start()

    def problem(self) -> str:
        """Return why records are lost just now; "" if none are."""
        if self._file is not None:
            return self._file.problem()
        return (
            "lines of the log are lost: nobody reads it, or it cannot be written"
            if self._output.is_losing
            else ""
        )

    def remark(self) -> str:
        """Return that records are left out, or were a moment ago; "" if none are.

        This is no `problem`: whoever is denied very often could make it one for everybody.
        """
        told_at = max(each._told_at for each in (self, *self._others))
        if not 0 <= self._clock() - told_at < _REMARK_SECONDS:
            return ""
        return (
            "the audit log leaves records out: there are more than "
            "aclbroker.audit.max.bytes.per.second allows, or more kinds of them than are kept"
        )

    def left_out(self) -> dict[str, int]:
        """Return how many records were left out so far: denied, allowed, failed_changes."""
        found = Counter(self._own_left_out())
        for other in self._others:
            found.update(other._own_left_out())
        return dict(found)

    def _own_left_out(self) -> dict[str, int]:
        return dict(zip(_KINDS, (*self._left_out, self._changes_left_out), strict=True))

    @property
    def lost(self) -> int:
        """How many lines could not be written to the file so far."""
        return 0 if self._file is None else self._file.lost_lines

    def reopen(self) -> None:
        """Write all that waits, then open the file anew, after a log rotation."""
        for other in self._others:
            other.reopen()
        self._is_reopening = True
        if self._rollups is not None:
            self._rollups.end_period(self._clock(), at_once=True)
        if self._timer is None:
            self._work_off()
        else:
            self._timer.cancel()
            self._tick()

    def close(self) -> None:
        """Write all that waits, and close the file. What is recorded later is written at once."""
        for other in self._others:
            other.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._rollups is not None:
            self._rollups.end_period(self._clock(), at_once=True)
        self._is_closing = True
        self._work_off()
        self._rollups = None
        if self._file is not None and self._main is None:
            self._file.close()

    # -- what is written at once

    def _write_singles(
        self, rollups: RollUps, context: RequestContext, singles: Sequence[Single]
    ) -> None:
        """Write decisions at once; those that the limit leaves no room for are rolled up."""
        written = 0
        # Half of what is saved up is kept for roll-ups, so that these never wait for long.
        reserve = 0.0 if self._bytes is None else self._bytes.most / 2
        if self._has_room(reserve):
            records = [record for record, _ in singles]
            written = self._write_records(context, records, reserve)
        for single in singles[written:]:
            rollups.unwritten(single)

    def _write_records(
        self, context: RequestContext, records: Sequence[Record], reserve: float = 0.0
    ) -> int:
        """Write as many of the records as the limit leaves room for; return how many."""
        lines = self._lines([Line(each, self._why_denied(context, each)) for each in records])
        if self._bytes is not None:
            lines = lines[: _fitting(lines, self._bytes, reserve)]
        self._write(lines)
        return len(lines)

    def _has_room(self, reserve: float = 0.0) -> bool:
        """Tell whether the limit leaves room for lines."""
        return self._bytes is None or self._bytes.left() >= reserve + _LEAST_ROOM

    def _why_denied(self, context: RequestContext, record: Record) -> WhyDenied | None:
        """Return why something was denied; None if that is not looked up."""
        if self._explain is None or record.allowed or not self._explained.admits():
            return None
        asked = record.asked
        name = None if asked.is_of_any_topic else record.text or ""
        resource = asked.resource_type, name
        return self._explain(context, record.rule.kind, asked.operation, resource)

    # -- what waits

    def _tick(self) -> None:
        seconds = _WORK_SECONDS
        try:
            seconds = 0.0 if self._work() else _WORK_SECONDS
        finally:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _work_off(self) -> None:
        while self._work():
            pass

    def _work(self) -> bool:
        """Write a portion of what waits; return whether there is more to be written now."""
        if self._changes:
            self._write_changes()
            return True
        self._tell_left_out()
        rollups = self._rollups
        if rollups is not None:
            rollups.end_period(self._clock())
            at_once = self._is_reopening or self._is_closing
            if rollups.ended and (at_once or self._has_room()):
                lines = self._lines([Line(record) for record in rollups.take(_PORTION)])
                if self._bytes is not None:
                    self._bytes.take(sum(map(_size, lines)))
                self._write(lines)
                return True
        if self._is_reopening:
            self._is_reopening = False
            if self._file is not None and self._main is None:
                self._file.reopen()
        return False

    def _write_changes(self) -> None:
        lines: list[str] = []
        room = _PORTION
        while self._changes and room:
            head, changes = self._changes[0]
            some = list(islice(changes, room))
            room -= len(some)
            if room:
                self._changes.popleft()
            # A change costs its store a commit. An attempt costs nobody anything.
            wanted = [each for each in some if each.error == "NONE" or self._has_room()]
            self._changes_left_out += len(some) - len(wanted)
            lines += self._change_lines(head, wanted)
        if self._bytes is not None:
            self._bytes.take(sum(map(_size, lines)))
        self._write(lines)

    def _tell_left_out(self) -> None:
        now = self._clock()
        if 0 <= now - self._told_at < _WORK_SECONDS and not self._is_closing:
            return
        left_out = self._own_left_out()
        counts = {kind: count - self._told[kind] for kind, count in left_out.items()}
        if any(counts.values()):
            self._told = left_out
            self._told_at = now
            event = self._node.other_event(now, "warning", "left_out")
            self._write([self._event_line(event | counts)])

    def _lines(self, lines: Sequence[Line]) -> list[str]:
        if self._is_kafka:
            return kafka_lines(lines)
        if self._file is None and not self._output.is_json:
            return [self._output.rendered(event) for event in self._node.events(lines)]
        return self._node.json_lines(lines)

    def _change_lines(self, head: dict[str, Any], changes: Sequence[Change]) -> list[str]:
        """Return the lines of changes of one request; what they have in common is encoded once."""
        as_json = not self._is_kafka and (self._file is not None or self._output.is_json)
        common = json_line(head)[:-1] if as_json and is_short(head) else ""
        lines = []
        for change in changes:
            if common and (own := own_json(change)):
                lines.append(f"{common},{own}}}")
            else:
                lines.append(self._event_line(event_of(head, change)))
        return lines

    def _event_line(self, event: dict[str, Any]) -> str:
        """Return the line of an event that is no decision."""
        if self._is_kafka:
            return kafka_other_line(self._clock(), event["level"], event)
        return json_line(event) if self._file else self._output.rendered(event)

    def _write(self, lines: Sequence[str]) -> None:
        if not lines:
            return
        if self._file is None:
            self._output.write_lines(lines)
        else:
            self._file.write(lines)


def _fitting(lines: Iterable[str], allowance: Allowance, reserve: float) -> int:
    """Take what lines need from an allowance down to a reserve; return how many of them fit."""
    room = allowance.left() - reserve
    used = fitting = 0
    for line in lines:
        size = _size(line)
        if used + size > room:
            break
        used += size
        fitting += 1
    allowance.take(used)
    return fitting


def _size(line: str) -> int:
    """Return how many bytes a line takes."""
    return 1 + (len(line) if line.isascii() else len(line.encode(errors="backslashreplace")))
