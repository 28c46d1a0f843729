"""The state of one partition for one share group: what is in flight, and who has it.

The rules are those of Kafka 4.3's SharePartition: which records are acquired together, when a
record that was delivered often is delivered alone, and how far the start goes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Clock, Timer
from aclbroker.broker.memory.groups.group import Account
from aclbroker.broker.memory.share.bounds import (
    Bounds,
    last_of_batch_with,
    outside,
    overlapping_bounds,
    parted,
)
from aclbroker.broker.memory.share.delivering import ShareSettings, is_throttled, take
from aclbroker.broker.memory.share.in_flight import (
    DONE,
    Acquired,
    Batch,
    Run,
    State,
)

_RUN_BYTES: Final = 200


class Wanted(NamedTuple):
    """What a member asks for: at most so many records, in batches of about ``batch_size``.

    With ``strict`` there are never more; else a batch of the log is acquired as a whole.
    """

    member: str
    most: int
    batch_size: int
    strict: bool = False


class SharePartition:
    """Records from ``start`` to before ``end`` are in flight or done with; later ones are new.

    ``settings`` returns those of the group. ``written`` is the start that is known beyond those who
    read now: as in Kafka, where the start was before the last records were given back or done with;
    None before any were. ``on_change`` has the functions that are called when there is more to
    acquire.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Callable[[], ShareSettings],
        start: int,
        account: Account | None = None,
    ) -> None:
        self.start = start
        self.end = start
        self.batches: list[Batch] = []
        self.written: int | None = None
        self.on_change: set[Callable[[], None]] = set()
        self._clock = clock
        self._settings = settings
        self._timer: Timer | None = None
        self._is_closed = False
        self._account = account
        self._counted = 0

    @property
    def in_flight(self) -> int:
        """How many records are in flight, with those done with among them."""
        return self.end - self.start if self.batches else 0

    @property
    def next_offset(self) -> int:
        """The offset of the first record that can be acquired, which may not be there yet."""
        for run in self.runs():
            if run.state is State.AVAILABLE:
                return run.first
        return self.end

    @property
    def can_acquire(self) -> bool:
        """Whether records may be acquired: new ones only if not too many are in flight."""
        return self.next_offset < self.end or self.in_flight < self._settings().most_in_flight

    @property
    def _is_full(self) -> bool:
        return self._account is not None and self._account.taken >= self._account.limit

    @property
    def done(self) -> int:
        """How many of the records in flight are done with."""
        return sum(len(run) for run in self.runs() if run.state in DONE)

    def runs(self) -> Iterator[Run]:
        """Return all runs, in order."""
        for batch in self.batches:
            yield from batch.runs

    def acquire(
        self, wanted: Wanted, fetched: int, bounds: Bounds, aborted: Bounds = ()
    ) -> list[Acquired]:
        """Let a member have records of batches that were read from the offset ``fetched`` on.

        Those of ``aborted`` batches are nobody's: they are given up.
        """
        most, last = self._most(wanted.most, fetched, bounds)
        if most <= 0 or self._is_closed:
            return []
        first, settings = bounds[0][0], self._settings()
        self._give_up_missing(fetched, first)
        taken: list[Acquired] = []
        count = 0
        for batch in self.overlapping(first, last):
            if count >= most:
                break
            throttles = is_throttled(batch, first, last, settings)
            if throttles and count:
                break
            left = most - count if wanted.strict else None
            some = take(batch, (first, last), wanted.member, self.lock_until(), settings, left)
            taken += some
            count += _count(some)
            if throttles and some:
                break
        else:
            if count < most and self.end <= last:
                taken += self._new(wanted, most - count, max(first, self.end), last, bounds)
        if aborted:
            taken = self._without(taken, aborted)
        self._arm()
        self._count_runs()
        return taken

    def end_of_acquirable(self, first: int, wanted: int) -> int:
        """Return the offset from which on no batch is acquired if so many records are wanted.

        ``first`` is the first offset of the first batch.
        """
        return max(first, self.end) + max(1, min(wanted, self._settings().most_in_flight))

    def release(self, member: str) -> None:
        """Take all that a member has away from it."""
        held = [run for run in self.runs() if run.state is State.ACQUIRED and run.member == member]
        for run in held:
            self.give_back(run)
        if held:
            self.settle()

    def settle(self) -> None:
        """Move the start as far as it goes, and tell those who wait; the group has progressed."""
        self.written = self.start
        for batch in self.batches:
            batch.join()
        self._advance()
        self._count_runs()
        for function in list(self.on_change):
            function()

    def begins(self, log_start: int) -> None:
        """Forget records before an offset, which are no longer in the log."""
        if log_start <= self.start:
            return
        for batch in self.batches:
            batch.cut(log_start)
            batch.runs = [run for run in batch.runs if run.first >= log_start]
        self.batches = [batch for batch in self.batches if batch.runs]
        self.start = log_start
        self.end = max(self.end, log_start)

    def close(self) -> None:
        """Let no time run out and nothing be acquired any more, and wake those who wait."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.batches.clear()
        self._count_runs()
        for function in list(self.on_change):
            function()

    def give_back(self, run: Run) -> None:
        """Let a run that a member had be delivered again, unless it was delivered too often."""
        is_last = run.count >= self._settings().deliveries
        run.become(State.ARCHIVED if is_last else State.AVAILABLE)

    def lock_until(self) -> int:
        """Return until when a record that is acquired now is its member's."""
        return self._clock.now_ms() + self._settings().lock_ms

    def _count_runs(self) -> None:
        """Count the memory that records in flight take."""
        if self._account is not None:
            count = sum(len(batch.runs) for batch in self.batches)
            self._account.give((self._counted - count) * _RUN_BYTES)
            self._counted = count

    def _most(self, wanted: int, fetched: int, bounds: Bounds) -> tuple[int, int]:
        """Return how many records may be acquired, and up to which offset."""
        if wanted <= 0 or not bounds:
            return 0, 0
        last = bounds[-1][1]
        most = min(wanted, self._settings().most_in_flight - self.in_flight)
        if most > 0 and not self._is_full:
            return most, last
        # There is room for none that are new, but some may have been given back.
        return min(wanted, self.end - fetched), min(last, self.end - 1)

    def overlapping(self, first: int, last: int) -> list[Batch]:
        """Return the batches that have records between two offsets, both included."""
        begin = max(0, bisect_right(self.batches, first, key=first_of) - 1)
        end = bisect_right(self.batches, last, key=first_of)
        return [each for each in self.batches[begin:end] if each.last >= first]

    def _give_up_missing(self, fetched: int, first: int) -> None:
        """Give up what was asked for before the first record that was found: it was compacted."""
        for batch in self.overlapping(fetched, first - 1) if fetched < first else ():
            batch.cut(fetched, first)
            for run in batch.between(fetched, first - 1):
                if run.state is State.AVAILABLE:
                    run.become(State.ARCHIVED)
        if fetched < first:
            self._advance()

    def _new(
        self, wanted: Wanted, most: int, first: int, last: int, bounds: Bounds
    ) -> list[Acquired]:
        """Acquire records that nobody has had before."""
        if most < last - first + 1:
            last = last_of_batch_with(bounds, first + most - 1)
        due = self.lock_until()
        if not self.batches:
            self.start = first
        self.end = last + 1
        if wanted.strict:
            until = min(last, first + most - 1)
            runs = [Run(first, until, State.ACQUIRED, 1, wanted.member, due)]
            if until < last:
                runs.append(Run(until + 1, last, State.AVAILABLE, 0))
            self.batches.append(Batch(runs))
            return [Acquired(first, until, 1)]
        parts = parted(bounds, first, last, wanted.batch_size)
        taken = [Acquired(begin, end, 1) for begin, end in parts]
        for each in taken:
            run = Run(each.first, each.last, State.ACQUIRED, 1, wanted.member, due)
            self.batches.append(Batch([run]))
        return taken

    def _without(self, taken: list[Acquired], aborted: Bounds) -> list[Acquired]:
        """Give up what of the acquired records was aborted; returns the others."""
        kept: list[Acquired] = []
        for each in taken:
            among = overlapping_bounds(aborted, each.first, each.last)
            for begin, end in among:
                self._give_up(max(begin, each.first), min(end, each.last))
            kept += outside(each, among)
        self._advance()
        return kept

    def _give_up(self, first: int, last: int) -> None:
        """Give up acquired records from one offset to another."""
        for batch in self.overlapping(first, last):
            batch.cut(first, last + 1)
            for run in batch.between(first, last):
                run.become(State.ARCHIVED)

    def _advance(self) -> None:
        """Move the start past all that is done with, and forget it."""
        begun = 0
        for batch in self.batches:
            done = 0
            while done < len(batch.runs) and batch.runs[done].state in DONE:
                done += 1
            if done < len(batch.runs):
                del batch.runs[:done]
                break
            begun += 1
        del self.batches[:begun]
        self.start = self.batches[0].runs[0].first if self.batches else self.end

    def _arm(self) -> None:
        """Set the timer to when the first record is no longer its member's."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min((run.due_ms for run in self.runs() if run.state is State.ACQUIRED), default=None)
        if due is not None:
            self._timer = self._clock.call_later(due - self._clock.now_ms(), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.now_ms()
        due = [run for run in self.runs() if run.state is State.ACQUIRED and run.due_ms <= now]
        for run in due:
            self.give_back(run)
        # What was acknowledged or renewed meanwhile is not due: then the group has not progressed.
        if due:
            self.settle()
        self._arm()


def _count(taken: Iterable[Acquired]) -> int:
    return sum(each.last - each.first + 1 for each in taken)


def first_of(batch: Batch) -> int:
    """Return the first offset of a batch, by which batches are in order."""
    return batch.first
