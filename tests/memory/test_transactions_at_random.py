"""Transactions in random order, with faults, against a plain model of what may be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from aiokafka.record.memory_records import MemoryRecords

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.memory.batch import Batch, LogError
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.transaction import Outcome, Producer
from aclbroker.protocol.errors import ErrorCode
from tests.memory.records import NOW, batch
from tests.support.tables import check_each

TIMEOUT_MS = 60_000
PARTITIONS = 2
STEPS = 400


@dataclass
class Writer:
    """A client with a transactional id, and what it thinks."""

    name: str
    by_second: bool
    producer: Producer | None = None
    sequences: dict[int, int] = field(default_factory=dict)
    in_transaction: bool = False
    last: tuple[int, bytes] | None = None


@dataclass
class Model:
    """What was written to each partition, and to which transaction it belongs."""

    written: list[list[tuple[bytes, int]]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    state: dict[int, str] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    pending: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    asked: int = 0

    def transaction(self, name: str) -> int:
        """Return the number of a writer's transaction, a new one if it has none."""
        if name not in self.current:
            self.current[name] = len(self.state)
            self.state[self.current[name]] = "open"
        return self.current[name]

    def end(self, name: str, *, commits: bool) -> None:
        """End a writer's transaction, if it has one."""
        pending = self.pending.pop(name, {})
        number = self.current.pop(name, None)
        if number is not None:
            self.state[number] = "committed" if commits else "aborted"
        for partition, asked in pending.items():
            # Whatever the order of their ends, what was asked for later holds.
            if commits and asked > self.offsets.get(partition, (0, 0)):
                self.offsets[partition] = asked

    def pend(self, name: str, partition: int, offset: int) -> None:
        """Note an offset that a writer's transaction is to commit."""
        self.asked += 1
        self.pending.setdefault(name, {})[partition] = self.asked, offset

    def visible(self, partition: int) -> list[bytes]:
        """Return what who reads only what is committed sees, up to the first open transaction."""
        found = []
        for value, number in self.written[partition]:
            if self.state[number] == "open":
                break
            if self.state[number] == "committed":
                found.append(value)
        return found


class World:
    """A cluster, its writers and the model; each step does the same to both."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = Clock(source=lambda: NOW)
        self.cluster = MemoryCluster(self.clock, [1], MemorySettings())
        self.cluster.topics.create("t", PARTITIONS)
        self.model = Model()
        self.writers = [Writer(f"w{n}", by_second=bool(n % 2)) for n in range(4)]
        self.values = (b"%d" % n for n in range(1 << 30))
        self.seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    def step(self) -> None:
        writer = self.random.choice(self.writers)
        actions = [self.initialize, self.commit_offset, self.end, self.resend, self.pass_time]
        weights = [2, 4, 6, 2, 1]
        if writer.producer is None:
            self.initialize(writer)
        elif self.random.random() < 0.6:
            self.write(writer)
        else:
            [action] = self.random.choices(actions, weights)
            action(writer)

    def initialize(self, writer: Writer) -> None:
        """The client starts anew; whatever it had under way is aborted."""
        transactions = self.cluster.transactions
        outcome = transactions.initialize(writer.name, TIMEOUT_MS, None)
        if outcome.code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.model.end(writer.name, commits=False)
            outcome = transactions.initialize(writer.name, TIMEOUT_MS, None)
        assert outcome.code == ErrorCode.NONE
        assert writer.name not in self.model.current
        writer.producer, writer.sequences, writer.last = outcome.producer, {}, None

    def write(self, writer: Writer) -> None:
        assert writer.producer is not None
        partition = self.random.randrange(PARTITIONS)
        value = next(self.values)
        first = writer.sequences.get(partition, 0)
        data = batch(value, producer=(*writer.producer, first), transactional=True)
        if not writer.by_second:
            place = [("t", partition)]
            code = self.cluster.transactions.add(writer.name, writer.producer, place)
            if code:
                self.fenced(writer)
                return
        if self.append(writer, partition, data):
            number = self.model.transaction(writer.name)
            self.model.written[partition].append((value, number))
            writer.sequences[partition] = first + 1
            writer.last = partition, data

    def append(self, writer: Writer, partition: int, data: bytes) -> bool:
        found = self.cluster.topics.partition("t", partition)
        assert found is not None

        def verify(first: Batch) -> None:
            assert found is not None
            assert found.transactions is not None
            producer = first.producer_id, first.producer_epoch
            place = "t", partition
            code = found.transactions(writer.name, *producer, *place, writer.by_second)
            if code:
                raise LogError(code)

        try:
            found.log.append(data, now_ms=self.clock.now_ms(), verify=verify)
        except LogError:
            self.fenced(writer)
            return False
        return True

    def resend(self, writer: Writer) -> None:
        """The answer to the last write was lost, so that the client sends it again."""
        if writer.last is None or writer.name not in self.model.current:
            return
        partition, data = writer.last
        before = self.end_of(partition)
        if self.append(writer, partition, data):
            assert self.end_of(partition) == before, "written twice"

    def commit_offset(self, writer: Writer) -> None:
        assert writer.producer is not None
        transactions, offsets = self.cluster.transactions, self.cluster.groups.offsets
        code = transactions.add(
            writer.name, writer.producer, groups=["g"], by_second_version=writer.by_second
        )
        if code:
            self.fenced(writer)
            return
        self.model.transaction(writer.name)
        partition, offset = self.random.randrange(PARTITIONS), self.random.randrange(1000)
        assert offsets.check_txn_commit("g", "", -1, None) == ErrorCode.NONE
        new = [NewOffset("t", partition, offset)]
        assert offsets.pend(writer.producer.producer_id, "g", new) == [ErrorCode.NONE]
        self.model.pend(writer.name, partition, offset)

    def end(self, writer: Writer) -> None:
        assert writer.producer is not None
        if writer.name not in self.model.current:
            return
        commits = self.random.random() < 0.6
        outcome = self.ended(writer, commits=commits)
        if outcome.code:
            self.fenced(writer)
            return
        self.model.end(writer.name, commits=commits)
        if self.random.random() < 0.3:
            # The answer was lost: the same again changes nothing, and is answered alike.
            assert self.ended(writer, commits=commits) == outcome
        if writer.by_second:
            if outcome.producer.producer_id != writer.producer.producer_id:
                writer.sequences = {}
            writer.producer, writer.sequences = outcome.producer, {}
        writer.last = None

    def ended(self, writer: Writer, *, commits: bool) -> Outcome:
        assert writer.producer is not None
        return self.cluster.transactions.end(
            writer.name, writer.producer, commits=commits, by_second_version=writer.by_second
        )

    def pass_time(self, _writer: Writer) -> None:
        """Time passes, and what takes too long is aborted: its writers are fenced."""
        self.clock.advance(TIMEOUT_MS)
        for name in list(self.model.current):
            self.model.end(name, commits=False)
        for each in self.writers:
            found = self.cluster.transactions.find(each.name)
            if found is not None and each.producer is not None and found.producer != each.producer:
                each.last = None

    def fenced(self, writer: Writer) -> None:
        """A client that is told of an error starts anew."""
        self.initialize(writer)

    def end_of(self, partition: int) -> int:
        found = self.cluster.topics.partition("t", partition)
        assert found is not None
        return found.log.end_offset

    def read(self, partition: int) -> Iterator[bytes]:
        """Yield what a client sees that leaves out what was aborted, as the answer tells it."""
        found = self.cluster.topics.partition("t", partition)
        assert found is not None
        answer = found.log.read(0, 1 << 30, committed=True)
        aborted = sorted(answer.aborted or (), key=lambda each: each.first_offset)
        records = MemoryRecords(b"".join(answer.parts))
        passed: set[int] = set()
        while records.has_next():
            each = records.next_batch()
            while aborted and aborted[0].first_offset <= each.base_offset:
                passed.add(aborted.pop(0).producer_id)
            if each.is_control_batch:
                passed.discard(each.producer_id)
            elif not (each.is_transactional and each.producer_id in passed):
                yield from (record.value for record in each)

    def check(self) -> None:
        for partition in range(PARTITIONS):
            seen = list(self.read(partition))
            assert seen == self.model.visible(partition)
            before = self.seen[partition]
            assert seen[: len(before)] == before, "what was seen once has changed"
            self.seen[partition] = seen
            committed = self.cluster.groups.offsets.get("g", "t", partition)
            _, offset = self.model.offsets.get(partition, (0, None))
            assert (committed and committed.offset) == offset


def test_only_what_is_committed_is_seen_once_and_for_ever(every_case: bool):
    def check(seed: int) -> None:
        world = World(seed)
        for _ in range(STEPS):
            world.step()
            world.check()
        assert world.model.offsets
        assert sum(map(len, world.seen)) > 20

    check_each(range(40 if every_case else 4), check)
