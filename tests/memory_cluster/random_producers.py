"""Producers that go on in random order: idempotent ones, and transactional ones."""

from __future__ import annotations

from typing import Final

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import add_offsets_to_txn as ao
from aclbroker.protocol.messages import add_partitions_to_txn as ap
from aclbroker.protocol.messages import end_txn as et
from aclbroker.protocol.messages import init_producer_id as ip
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages import txn_offset_commit as toc
from tests.memory.records import batch
from tests.memory_cluster.at_random import Actor, Ask
from tests.memory_cluster.random_world import (
    AGAIN,
    FED,
    PARTITIONS,
    TOPIC,
    Part,
    World,
    until_done,
)

_IN_FLIGHT: Final = 5


class Batches:
    """The batches of a producer that are to be written; several connections may write them."""

    def __init__(
        self, world: World, producer: tuple[int, int], *, version: int, name: str | None = None
    ) -> None:
        self._world, self._producer, self._version, self._name = world, producer, version, name
        self._left: dict[int, list[tuple[int, bytes]]] = {}
        self._written: dict[int, dict[int, int]] = {}
        self.next: dict[int, int] = {}

    def add(self, partition: int, value: bytes) -> None:
        """Have one more batch."""
        sequence = self.next.get(partition, 0)
        self.next[partition] = sequence + 1
        self._left.setdefault(partition, []).append((sequence, value))

    def write(self) -> Part:
        """Send what is left, a few batches of a partition in any order, now and then one again."""
        random = self._world.random
        while left := [index for index, each in self._left.items() if each]:
            index = random.choice(left)
            window = self._left[index][:_IN_FLIGHT]
            # A broker takes any number from a producer that it does not know.
            is_first = random.random() < 0.5 or not self._written.get(index)
            each = window[0] if is_first else random.choice(window)
            if (offset := (yield from self._sent(index, *each))) is None:
                continue
            known = self._written.setdefault(index, {}).setdefault(each[0], offset)
            assert known == offset, "written twice"
            if each in self._left[index]:
                self._left[index].remove(each)
            if random.random() < 0.2:
                again = yield from self._sent(index, *each)
                assert again in (None, offset), "written twice"

    def _sent(self, index: int, sequence: int, value: bytes) -> Part:
        """Send a batch; returns its offset, None if it is to be sent again."""
        is_transactional = self._name is not None
        data = batch(value, producer=(*self._producer, sequence), transactional=is_transactional)
        topic = p.TopicProduceData(TOPIC, partition_data=[p.PartitionProduceData(index, data)])
        request = p.ProduceRequest(self._name, -1, 1000, [topic])
        answer = yield Ask(ApiKey.PRODUCE, self._version, request)
        if answer is None:
            return None
        [told] = answer.responses[0].partition_responses
        self._world.refused += told.error_code == 45
        assert told.error_code == 0 or told.error_code in AGAIN, told
        return None if told.error_code else told.base_offset


def idempotent(world: World, name: str, count: int, others: list[Batches]) -> Actor:
    """Write batches by an idempotent producer, which is noted in ``others``."""
    request = ip.InitProducerIdRequest(None, 60_000)
    answer = yield from until_done(Ask(ApiKey.INIT_PRODUCER_ID, 4, request))
    batches = Batches(world, (answer.producer_id, answer.producer_epoch), version=11)
    others.append(batches)
    for number in range(count):
        value = f"{name}-{number}".encode()
        world.fates[value] = "committed"
        batches.add(world.random.randrange(PARTITIONS), value)
    yield from batches.write()


def helping(others: list[Batches]) -> Actor:
    """Write the batches of another producer, too, on a connection of its own."""
    while not others:
        yield None
    yield from others[0].write()


class Transactional:
    """A producer with a transactional id, by the first or the second version of transactions."""

    def __init__(self, world: World, name: str, *, by_second: bool, feeds: int) -> None:
        self._world, self._name, self._by_second, self._feeds = world, name, by_second, feeds
        self._producer = (-1, -1)
        self._next: dict[int, int] = {}

    def write(self, count: int) -> Actor:
        """Write transactions, of which some are aborted, by the client or since it begins anew."""
        random = self._world.random
        yield from self._begin()
        for number in range(count):
            values = yield from self._transaction(number)
            fate = random.choice(["committed", "committed", "aborted", "aborted"])
            if fate == "aborted" and random.random() < 0.5:
                yield from self._begin()
            else:
                yield from self._end(commits=fate == "committed")
            self._world.fates.update(dict.fromkeys(values, fate))
            if fate == "committed":
                self._world.accept(FED, self._feeds, number)

    def _begin(self) -> Part:
        request = ip.InitProducerIdRequest(self._name, 900_000)
        answer = yield from until_done(Ask(ApiKey.INIT_PRODUCER_ID, 4, request))
        assert answer.error_code == 0
        self._producer, self._next = (answer.producer_id, answer.producer_epoch), {}

    def _transaction(self, number: int) -> Part:
        version = 12 if self._by_second else 11
        batches = Batches(self._world, self._producer, version=version, name=self._name)
        batches.next = self._next
        values = [
            f"{self._name}-{number}-{each}".encode()
            for each in range(self._world.random.randrange(1, 8))
        ]
        for value in values:
            self._world.fates[value] = "open"
            batches.add(self._world.random.randrange(PARTITIONS), value)
        if not self._by_second:
            yield from self._added()
        yield from batches.write()
        yield from self._fed(number)
        return values

    def _added(self) -> Part:
        topics = [ap.AddPartitionsToTxnTopic(TOPIC, list(range(PARTITIONS)))]
        request = ap.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        codes = {-1}
        while codes != {0}:
            answer = yield Ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
            if answer is not None:
                parts = answer.results_by_topic_v3_and_below[0].results_by_partition
                codes = {each.partition_error_code for each in parts}
                assert codes <= {0, *AGAIN}, codes
        of_group = ao.AddOffsetsToTxnRequest(self._name, *self._producer, FED)
        answer = yield from until_done(Ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, of_group))
        assert answer.error_code == 0

    def _fed(self, offset: int) -> Part:
        partition = toc.TxnOffsetCommitRequestPartition(self._feeds, offset, committed_metadata="")
        topics = [toc.TxnOffsetCommitRequestTopic(TOPIC, [partition])]
        request = toc.TxnOffsetCommitRequest(self._name, FED, *self._producer, topics=topics)
        code = -1
        while code:
            answer = yield Ask(ApiKey.TXN_OFFSET_COMMIT, 5 if self._by_second else 3, request)
            if answer is not None:
                code = answer.topics[0].partitions[0].error_code
                assert code == 0 or code in AGAIN, code

    def _end(self, *, commits: bool) -> Part:
        request = et.EndTxnRequest(self._name, *self._producer, commits)
        ask = Ask(ApiKey.END_TXN, 5 if self._by_second else 4, request)
        answer = yield from until_done(ask)
        assert answer.error_code == 0, answer
        if self._by_second:
            self._producer, self._next = (answer.producer_id, answer.producer_epoch), {}
