"""A share partition in random order, with faults and time, against a plain model of its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from aclbroker.broker.backends.memory.share.reading import Room, taken
from aclbroker.broker.memory import Clock
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import DELETE
from aclbroker.broker.memory.room import Room as Memory
from aclbroker.broker.memory.share import Acquired, ShareError, SharePartition
from aclbroker.broker.memory.share.acknowledging import Acknowledgement, Kind, acknowledge
from aclbroker.broker.memory.share.delivering import ShareSettings
from aclbroker.broker.memory.share.partition import Wanted
from tests.memory.records import NOW, batch
from tests.support.tables import check_each

LOCK_MS = 30_000
IN_FLIGHT = 40
STEPS = 300
MEMBERS = ("one", "two", "three")


@dataclass
class Record:
    """What a group should know of a record: ``owner`` is whose it is, until ``due``."""

    count: int = 0
    owner: str = ""
    due: int = 0
    is_done: bool = False
    is_aborted: bool = False


class World:
    """A log, a share partition of it and the model; each step does the same to both."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.committed = bool(seed % 2)
        self.limit = self.random.choice((2, 3, 5, 10))
        self.clock = Clock(source=lambda: NOW)
        self.log = PartitionLog("t-0", LogSettings(), Memory(1 << 24, DELETE))
        settings = ShareSettings(LOCK_MS, self.limit, IN_FLIGHT)
        self.shared = SharePartition(self.clock, lambda: settings, 0)
        self.records: list[Record] = []
        self.transaction: list[int] | None = None
        self.sequence = 0
        self.delivered = 0

    def step(self) -> None:
        actions: dict[Callable[[], object], int] = {
            self.write: 5,
            self.acquire: 8,
            self.acknowledge: 8,
            self.say_what_is_wrong: 2,
            self.leave: 1,
            self.pass_time: 1,
            self.delete: 1,
        }
        [action] = self.random.choices(list(actions), list(actions.values()))
        action()
        self.check()

    def write(self) -> None:
        """Write a batch, or the end of the transaction that is under way."""
        if self.transaction is not None and self.random.random() < 0.4:
            commits = self.random.random() < 0.5
            self.log.append_marker(7, 0, commits=commits, now_ms=NOW)
            self.records.append(Record())
            for offset in () if commits else self.transaction:
                self.records[offset].is_aborted = True
            self.transaction = None
            return
        values = [b"%d" % n for n in range(self.random.randint(1, 6))]
        first = self.log.end_offset
        if self.random.random() < 0.4:
            data = batch(*values, producer=(7, 0, self.sequence), transactional=True)
            self.sequence += len(values)
            self.transaction = self.transaction or []
            self.transaction += range(first, first + len(values))
        else:
            data = batch(*values)
        self.log.append(data, now_ms=NOW)
        self.records += [Record() for _ in values]

    def acquire(self, member: str = "") -> list[Acquired]:
        member = member or self.random.choice(MEMBERS)
        most = self.random.randint(1, 12)
        wanted = Wanted(member, most, self.random.randint(1, 8), self.random.random() < 0.5)
        room = Room(self.random.choice((1, 200, 1 << 20)), whole=True)
        found = taken(self.log, self.shared, wanted, room, committed=self.committed)
        if wanted.strict:
            assert sum(each.last - each.first + 1 for each in found.acquired) <= most
        for each in found.acquired:
            for offset in range(each.first, each.last + 1):
                self.deliver(member, offset, each.deliveries)
        return found.acquired

    def deliver(self, member: str, offset: int, deliveries: int) -> None:
        """Assert that a record may be delivered now, and note that it was."""
        record = self.records[offset]
        assert offset >= self.log.start_offset
        assert not record.owner, "delivered to two members at once"
        assert not record.is_done, "delivered after it was acknowledged"
        if self.committed:
            assert not record.is_aborted
            assert offset < self.log.last_stable_offset
        record.count += 1
        assert deliveries == record.count <= self.limit
        record.owner, record.due = member, self.clock.now_ms() + LOCK_MS
        self.delivered += 1

    def held(self, member: str) -> list[int]:
        """Return what a member has, by the model: nothing of what was deleted."""
        for record in self.records[: min(self.shared.start, self.log.start_offset)]:
            record.owner, record.is_done = "", True
        return [offset for offset, each in enumerate(self.records) if each.owner == member]

    def acknowledge(self, member: str = "", kinds: Sequence[Kind] = tuple(Kind)) -> None:
        """Say of some neighbours that a member has what becomes of them, of all or of each."""
        member = member or self.random.choice(MEMBERS)
        held = [offset for offset in self.held(member) if offset >= self.shared.start]
        if not held:
            return
        first = last = self.random.choice(held)
        while last + 1 in held and self.random.random() < 0.8:
            last += 1
        offsets = range(first, last + 1)
        said = self.random.choices(kinds, k=len(offsets))
        if self.random.random() < 0.5:
            said = said[:1]
        acknowledge(self.shared, member, [Acknowledgement(first, last, said)])
        for number, offset in enumerate(offsets):
            self.note(self.records[offset], said[number] if len(said) > 1 else said[0])

    def note(self, record: Record, kind: Kind) -> None:
        if kind is Kind.RENEW:
            record.due = self.clock.now_ms() + LOCK_MS
        elif kind is Kind.RELEASE:
            self.give_back(record)
        else:
            record.owner, record.is_done = "", True

    def give_back(self, record: Record) -> None:
        record.owner = ""
        record.is_done = record.count >= self.limit

    def say_what_is_wrong(self) -> None:
        """Say something of records of which one is not the member's: nothing of it counts."""
        member = self.random.choice(MEMBERS)
        first = self.random.randint(self.shared.start, self.log.end_offset + 3)
        last = first + self.random.randint(0, 5)
        held = self.held(member)
        if all(offset in held for offset in range(first, last + 1)):
            return
        good = [Acknowledgement(held[0], held[0], [1])] if held and held[0] < first else []
        before = self.told()
        try:
            acknowledge(self.shared, member, [*good, Acknowledgement(first, last, [1])])
        except ShareError:
            assert self.told() == before
        else:
            # Only where there are no records between what was delivered can there be none to have.
            pytest.fail("what another member has, or nobody, was acknowledged")

    def told(self) -> list[tuple[int, ...]]:
        """Return where the states of records begin and end."""
        changes: list[tuple[int, ...]] = [(self.shared.start, self.shared.end)]
        for run in self.shared.runs():
            if len(changes) > 1 and changes[-1][1] + 1 == run.first:
                before = changes[-1]
                if before[2:] == (hash((run.state, run.member)), run.count):
                    changes[-1] = (before[0], run.last, *before[2:])
                    continue
            changes.append((run.first, run.last, hash((run.state, run.member)), run.count))
        return changes

    def leave(self) -> None:
        """A member's session is over: what it has is others' again."""
        member = self.random.choice(MEMBERS)
        self.shared.release(member)
        for offset in self.held(member):
            self.give_back(self.records[offset])

    def pass_time(self) -> None:
        self.clock.advance(self.random.choice((1, LOCK_MS // 2, LOCK_MS)))
        for record in self.records:
            if record.owner and record.due <= self.clock.now_ms():
                self.give_back(record)

    def delete(self) -> None:
        """An administrator deletes records, and a member reads on."""
        if self.random.random() < 0.3:
            offset = self.random.randint(self.log.start_offset, self.log.end_offset)
            self.log.delete_before(offset)

    def check(self) -> None:
        self.held("")
        for run in self.shared.runs():
            for offset in range(run.first, run.last + 1):
                record = self.records[offset]
                assert run.member == record.owner
                if self.committed and record.is_aborted:
                    continue
                assert run.count == record.count
        assert all(each.is_done or self.is_given_up(n) for n, each in self.before_start())

    def before_start(self) -> list[tuple[int, Record]]:
        return list(enumerate(self.records[: self.shared.start]))

    def is_given_up(self, offset: int) -> bool:
        record = self.records[offset]
        return offset < self.log.start_offset or (self.committed and record.is_aborted)

    def drain(self) -> None:
        """Let all be read and accepted that there is."""
        if self.transaction is not None:
            self.log.append_marker(7, 0, commits=True, now_ms=NOW)
            self.records.append(Record())
        for _ in range(100 * len(self.records) + 100):
            for member in MEMBERS:
                self.acquire(member)
                while self.held(member):
                    self.acknowledge(member, (Kind.ACCEPT,))
            if self.shared.start == self.log.end_offset:
                return
        pytest.fail(f"records from {self.shared.start} on are not delivered")


def test_each_record_is_one_members_at_a_time_and_none_is_lost(every_case: bool) -> None:
    check_each(range(60 if every_case else 10), _check_one_world)


def _check_one_world(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.drain()
    for offset, record in enumerate(world.records):
        assert record.is_done or world.is_given_up(offset)
    assert world.delivered > 50
