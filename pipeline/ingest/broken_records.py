"""Which lines of Kafka's log may be the text of a client, since they stand in a broken record.

A client that asks for a name with line breaks breaks a record into several lines: the first is cut
off, and the last ends with the record's rest. That one is no record, as a rule. A client can also
have the rest complete a record that it began itself. Then the rest tells of which request, of which
outcome and by which rule it is, and only lines that agree in these with the first line can have it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aclbroker.broker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL
from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.kafka_apis import may_ask
from aclbroker.pipeline.ingest.kafka_line import KafkaReason
from aclbroker.pipeline.ingest.record import Record

LONGEST_RECORD: Final = kafka_line.LONGEST_RECORD
"""In bytes: how far apart the pieces of one record can be, since Kafka's texts have 32,767 each."""

LONGEST_NAME: Final = (1 << 15) - 1
"""In bytes: how long a name that a client asks for can be."""

_RESOURCE: Final = kafka_line.RESOURCE.encode()
_ACL: Final = re.compile(
    r"acl=StandardAcl[(\[]resourceType=(?P<type>\w+), resourceName=(?P<name>.*), "
    r"patternType=(?P<pattern>\w+), principal=(?P<principal>.*), host=.*",
    re.DOTALL,
)


class _Asked(NamedTuple):
    """What is known of a broken record, but for its name."""

    allowed: bool
    operation: str
    resource_type: str
    principal: str
    is_old: bool


class Marks(NamedTuple):
    """Lines that come one after the other, and what tells where records are broken.

    ``starts`` has the byte at which each begins, and ``size`` is that of all of them. ``cuts`` are
    the lines that begin a record and are cut off, ``ends`` those that are no record and end as one.
    ``records`` are those that are records. ``text`` returns a line in Kafka's own layout.
    """

    starts: NDArray[np.int64]
    size: int
    cuts: list[int]
    ends: list[int]
    records: NDArray[np.int64]
    text: Callable[[int], bytes]

    @property
    def begin_broken(self) -> bool:
        """Whether the lines may begin between the pieces of a record, if a piece begins here."""
        if not self.ends or self.starts[self.ends[0]] > LONGEST_RECORD:
            return False
        return not self.cuts or self.ends[0] < self.cuts[0]

    @property
    def settle(self) -> bool:
        """Whether no later line can change `begin_broken`."""
        return bool(self.ends or self.cuts) or self.size > LONGEST_RECORD

    @property
    def first_open(self) -> int | None:
        """The first cut-off line of which the rest may be among the lines that follow all these."""
        near = bisect_left(self.cuts, int(np.searchsorted(self.starts, self.size - LONGEST_RECORD)))
        return next((cut for cut in self.cuts[near:] if self._own_end(cut) is None), None)

    def _own_end(self, cut: int) -> int | None:
        """Return the line that ends a record, if no other record is cut off before it."""
        at = bisect_right(self.ends, cut)
        end = self.ends[at] if at < len(self.ends) else None
        behind = bisect_right(self.cuts, cut)
        following = self.cuts[behind] if behind < len(self.cuts) else len(self.starts)
        return end if end is not None and end < following else None

    def between(self, count: int) -> Iterator[range]:
        """Yield the lines that may stand between the pieces of records broken in the first ones.

        ``count``: how many these are.
        """
        completed = _Completed(self)
        done = 0
        for cut in self.cuts[: bisect_left(self.cuts, count)]:
            until = self._until(cut, completed)
            if until > max(done, cut + 1):
                yield range(max(done, cut + 1), until)
            done = max(done, until)

    def _until(self, cut: int, completed: _Completed) -> int:
        """Return the line before which the text of a client may go on behind a line cut off."""
        text = self.text(cut)
        asked = _asked(text)
        start = int(self.starts[cut])
        own = self._own_end(cut)
        if asked is None:
            # A name is not reached: a broker that was killed left it, or a principal has the break.
            is_near = own is not None and self.starts[own] <= start + LONGEST_RECORD
            return own + 1 if own is not None and is_near else cut + 1
        reach = start + text.index(_RESOURCE) + len(_RESOURCE) + LONGEST_NAME
        at = bisect_right(self.ends, cut)
        if at < len(self.ends) and self.starts[self.ends[at]] <= reach:
            return self.ends[at] + 1
        return completed.behind(cut, asked, reach) or cut + 1


def _asked(line: bytes) -> _Asked | None:
    """Return what a line that is cut off says before the name; None if it does not come so far."""
    before, found, resource = line[kafka_line.TIME_LENGTH :].partition(_RESOURCE)
    asker_part, has_host, _ = before.partition(kafka_line.HOST.encode())
    asker = kafka_line.asker_of(asker_part) if found and has_host else KafkaReason.WORDS
    # The name may be cut off within a character.
    part = kafka_line.resource_of(
        resource.split(b" for request =")[0].decode(errors="replace").encode()
    )
    if isinstance(asker, KafkaReason) or isinstance(part, KafkaReason):
        return None
    return _Asked(asker.allowed, asker.operation, part.resource_type, asker.principal, asker.is_old)


class _Completed:
    """Whole records whose rest may be that of a broken one, looked at once for each kind of it."""

    def __init__(self, lines: Marks) -> None:
        self._lines = lines
        self._records: dict[int, tuple[Record, bytes] | None] = {}
        self._known: dict[tuple[_Asked, object], bool] = {}

    def behind(self, cut: int, asked: _Asked, reach: int) -> int | None:
        """Return the line behind the one that may complete a record; None if none may.

        That is the last one. Where the request was allowed, it is the first: that client has
        rights, and a broker that was killed is the likelier reason for a line that is cut off.
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
    """Tell whether the end of a record may be that of a broken one."""
    if asked.is_old != (record.rule is None):
        return False
    if record.api is not None and not may_ask(record.api, asked.resource_type, asked.operation):
        return False
    if asked.is_old:
        # The end has no outcome.
        return True
    if record.allowed != asked.allowed:
        return False
    acl = _ACL.search(rule.decode())
    if acl is None:
        return True
    if acl["type"] != asked.resource_type:
        return False
    if acl["pattern"] == "LITERAL" and acl["name"] != WILDCARD:
        # It is the whole name, and has no line break.
        return False
    kind = asked.principal.partition(":")[0]
    is_anothers = acl["principal"].partition(":")[0] == kind
    return acl["principal"] in (asked.principal, WILDCARD_PRINCIPAL) or not is_anothers
