"""The records of a share partition that are in flight, in runs of neighbours that are alike."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import Final, NamedTuple

from aclbroker.protocol.errors import ErrorCode


class State(Enum):
    """What has become of a record that was delivered once."""

    AVAILABLE = "to be delivered again"
    ACQUIRED = "a member's for a time"
    ACKNOWLEDGED = "done with"
    ARCHIVED = "given up"


DONE: Final = (State.ACKNOWLEDGED, State.ARCHIVED)


class ShareError(Exception):
    """What is asked of a share partition is refused with an error code and maybe a message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class Acquired(NamedTuple):
    """Records that are now a member's, from the first offset to the last, and how often delivered.

    ``deliveries`` is how often they have been delivered, with this time.
    """

    first: int
    last: int
    deliveries: int


class Run:
    """Records next to each other that are alike: their state, whose they are, and until when.

    ``count`` is how often they were delivered, ``due_ms`` when they are no longer ``member``'s.
    """

    __slots__ = ("count", "due_ms", "first", "last", "member", "state")

    def __init__(
        self, first: int, last: int, state: State, count: int, member: str = "", due_ms: int = 0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member = member
        self.due_ms = due_ms

    def __len__(self) -> int:
        return self.last - self.first + 1

    def become(self, state: State) -> None:
        """Go over into a state in which it is nobody's."""
        self.state = state
        self.member = ""

    def acquire(self, member: str, due_ms: int) -> None:
        """Be a member's until a time; that is one delivery more."""
        self.state = State.ACQUIRED
        self.member = member
        self.due_ms = due_ms
        self.count += 1

    def cut(self, offset: int) -> Run:
        """End before an offset within; returns the rest."""
        rest = Run(offset, self.last, self.state, self.count, self.member, self.due_ms)
        self.last = offset - 1
        return rest


class Batch:
    """Records that were acquired together first, from one offset to another, as runs in order.

    Runs that are done with at its beginning may be left out.
    """

    __slots__ = ("first", "last", "runs")

    def __init__(self, runs: list[Run]) -> None:
        self.first = runs[0].first
        self.last = runs[-1].last
        self.runs = runs

    def __len__(self) -> int:
        return self.last - self.first + 1

    def between(self, first: int, last: int) -> list[Run]:
        """Return the runs that have records between two offsets, both included."""
        begin = max(0, bisect_right(self.runs, first, key=_first_of) - 1)
        found = []
        for number in range(begin, len(self.runs)):
            run = self.runs[number]
            if run.first > last:
                break
            if run.last >= first:
                found.append(run)
        return found

    def cut(self, *offsets: int) -> None:
        """Let runs begin at these offsets, each of which is looked for: there must be few."""
        for offset in offsets:
            number = bisect_right(self.runs, offset, key=_first_of) - 1
            if number >= 0 and self.runs[number].first < offset <= self.runs[number].last:
                self.runs.insert(number + 1, self.runs[number].cut(offset))

    def join(self) -> None:
        """Make one run of neighbours that have become alike."""
        joined = [self.runs[0]]
        for run in self.runs[1:]:
            before = joined[-1]
            if before.last + 1 == run.first and _alike(before, run):
                before.last = run.last
            else:
                joined.append(run)
        self.runs = joined


def _alike(one: Run, other: Run) -> bool:
    if one.state is not other.state or one.count != other.count:
        return False
    if one.state is State.ACQUIRED:
        return one.member == other.member and one.due_ms == other.due_ms
    return True


def _first_of(run: Run) -> int:
    return run.first
