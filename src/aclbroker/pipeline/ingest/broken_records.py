"""Find the lines of a broken record in Kafka's log, because a client may have written them.

A client that asks for a name with line breaks splits a record into several lines. The first line is
cut off, and the last line ends with the record's rest. Usually the last line is no record. But the
client can begin a record on it, so that the rest completes that record. The rest names the request
and the rule, and the rule shows the outcome. So a record can be the last line only if these agree
with the first line.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclbroker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL
from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.kafka_apis import may_ask
from aclbroker.pipeline.ingest.kafka_line import LONGEST_RECORD, KafkaReason
from aclbroker.pipeline.ingest.printed_acls import rule_acl
from aclbroker.pipeline.ingest.record import Record

LONGEST_NAME: Final = (1 << 15) - 1
"""The longest name that a client can ask for, in bytes."""

_RESOURCE: Final = kafka_line.RESOURCE.encode()


class _Asked(NamedTuple):
    """The fields of a broken record that its first line has; the name is not among them."""

    allowed: bool
    operation: str
    resource_type: str
    principal: str
    is_old: bool


class Marks(NamedTuple):
    """Consecutive lines, with the marks of broken records.

    ``starts`` has the first byte of each line, and ``size`` is the number of bytes of all lines.
    Both are sums of `Layout.size`, which leaves out the envelopes of a collector.
    ``cuts`` are the lines that begin as a record and are cut off. ``ends`` are the lines that are
    no record but end as one. ``records`` are the lines that are records. ``text`` returns a line in
    Kafka's own layout.
    """

    starts: NDArray[np.int64]
    size: int
    cuts: list[int]
    ends: list[int]
    records: NDArray[np.int64]
    text: Callable[[int], bytes]

    @property
    def begin_broken(self) -> bool:
        """Whether the first lines may be between the pieces of a record that began before them."""
        if not self.ends or self.starts[self.ends[0]] > LONGEST_RECORD:
            return False
        return not self.cuts or self.ends[0] < self.cuts[0]

    @property
    def settle(self) -> bool:
        """Whether `begin_broken` is final, so that no later line can change it."""
        return bool(self.ends or self.cuts) or self.size > LONGEST_RECORD

    @property
    def first_open(self) -> int | None:
        """The first cut-off line whose rest may come after all these lines."""
        near = bisect_left(self.cuts, int(np.searchsorted(self.starts, self.size - LONGEST_RECORD)))
        return next((cut for cut in self.cuts[near:] if self._own_end(cut) is None), None)

    def _own_end(self, cut: int) -> int | None:
        """Return the next line of ``ends`` behind a cut-off line.

        None if there is none, or if another cut-off line comes first.
        """
        at = bisect_right(self.ends, cut)
        end = self.ends[at] if at < len(self.ends) else None
        behind = bisect_right(self.cuts, cut)
        following = self.cuts[behind] if behind < len(self.cuts) else len(self.starts)
        return end if end is not None and end < following else None

    def between(self, count: int) -> Iterator[range]:
        """Yield the ranges of lines that may be between the pieces of a broken record.

        Only records that are cut off in the first ``count`` lines are considered.
        """
        completed = _Completed(self)
        done = 0
        for cut in self.cuts[: bisect_left(self.cuts, count)]:
            until = self._until(cut, completed)
            if until > max(done, cut + 1):
                yield range(max(done, cut + 1), until)
            done = max(done, until)

    def _until(self, cut: int, completed: _Completed) -> int:
        """Return the first line behind a cut-off line that cannot be the text of a client."""
        text = self.text(cut)
        asked = _asked(text)
        start = int(self.starts[cut])
        own = self._own_end(cut)
        if asked is None:
            # The line ends before the name: the broker was killed, or the principal has the break.
            is_near = own is not None and self.starts[own] <= start + LONGEST_RECORD
            return own + 1 if own is not None and is_near else cut + 1
        # A layout may have more before the name than Kafka's own, so the line's end counts.
        begun = text.partition(_RESOURCE)[2].removesuffix(kafka_line.NO_END)
        after = int(self.starts[cut + 1]) if cut + 1 < len(self.starts) else self.size
        reach = after - 1 - kafka_line.sent_size(begun) + LONGEST_NAME
        at = bisect_right(self.ends, cut)
        if at < len(self.ends) and self.starts[self.ends[at]] <= reach:
            return self.ends[at] + 1
        return completed.behind(cut, asked, reach) or cut + 1


def _asked(line: bytes) -> _Asked | None:
    """Return the fields before the name of a cut-off line; None if it ends before the name."""
    before, found, resource = line[kafka_line.TIME_LENGTH :].partition(_RESOURCE)
    asker_part, has_host, _ = before.partition(kafka_line.HOST.encode())
    asker = kafka_line.asker_of(asker_part) if found and has_host else KafkaReason.WORDS
    # The cut may be inside a character of the name.
    part = kafka_line.resource_of(
        resource.split(b" for request =")[0].decode(errors="replace").encode()
    )
    if isinstance(asker, KafkaReason) or isinstance(part, KafkaReason):
        return None
    return _Asked(asker.allowed, asker.operation, part.resource_type, asker.principal, asker.is_old)


class _Completed:
    """Finds whole records that may have the rest of a broken one, and caches the results."""

    def __init__(self, lines: Marks) -> None:
        self._lines = lines
        self._records: dict[int, tuple[Record, bytes] | None] = {}
        self._known: dict[tuple[_Asked, object], bool] = {}

    def behind(self, cut: int, asked: _Asked, reach: int) -> int | None:
        """Return the line behind the record that may complete a broken one; None if none may.

        Among several such records the last one counts. If the request was allowed, the first one
        counts, because then the client has rights, and a killed broker is the likelier reason for
        the cut.
        """
        last = np.searchsorted(self._lines.starts, reach, "right")
        records = self._lines.records
        near = records[np.searchsorted(records, cut) : np.searchsorted(records, last)]
        rows = (near if asked.allowed else near[::-1]).tolist()
        found = next((row for row in rows if self._may_end(row, asked)), None)
        return None if found is None else found + 1

    def _may_end(self, row: int, asked: _Asked) -> bool:
        if row not in self._records:
            line = self._lines.text(row)
            found = kafka_line.parse(line, "")
            self._records[row] = (found[1], _rule_in(line)) if isinstance(found, tuple) else None
        known = self._records[row]
        if known is None:
            return False
        record, rule = known
        key = asked, (record.allowed, record.api, record.rule, rule)
        if key not in self._known:
            self._known[key] = _fits(asked, record, rule)
        return self._known[key]


def _rule_in(line: bytes) -> bytes:
    return line.rpartition(kafka_line.RULE.encode())[2]


def _fits(asked: _Asked, record: Record, rule: bytes) -> bool:
    """Tell whether a record may end with the rest of a broken one."""
    if asked.is_old != (record.rule is None):
        return False
    if record.api is not None and not may_ask(record.api, asked.resource_type, asked.operation):
        return False
    if asked.is_old:
        # The rest of an old record does not show the outcome.
        return True
    if record.allowed != asked.allowed:
        return False
    acl = rule_acl(rule.decode())
    if acl is None:
        return True
    if acl.resource_type != asked.resource_type:
        return False
    if acl.pattern == "LITERAL" and acl.name != WILDCARD:
        # The rule repeats the whole name, and this name has no line break.
        return False
    kind = asked.principal.partition(":")[0]
    is_anothers = acl.principal.partition(":")[0] == kind
    return acl.principal in (asked.principal, WILDCARD_PRINCIPAL) or not is_anothers
