"""Producers and readers: topics, fetch sessions, waiting fetches and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.protocol.messages import ApiKey as Key
from aclbroker.protocol.messages import add_offsets_to_txn as ao
from aclbroker.protocol.messages import add_partitions_to_txn as ap
from aclbroker.protocol.messages import create_topics as ct
from aclbroker.protocol.messages import describe_transactions as dt
from aclbroker.protocol.messages import end_txn as et
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import init_producer_id as ip
from aclbroker.protocol.messages import list_offsets as lo
from aclbroker.protocol.messages import metadata as m
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages import txn_offset_commit as toc
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gateway.twins.sides import CLOSED, SUPER, Place
from tests.gateway.twins.world import World

Story = Iterator[None]
"""The steps of a client. Each `yield` lets other requests come between."""


_BY_IDS: Final = 13
"""The first version of Produce and Fetch that names topics by their ids."""


_WAIT_MS: Final = 2_000
"""How long a Fetch waits if the record that it waits for is refused."""


def produced(
    world: World, user: str, topic: str, *, acks: int = -1, name: str | None = None, **batch: Any
) -> Any:
    """Write a batch to a partition at its leader; return the answer."""
    index = world.random.choice((0, 0, 1))
    version = world.version(Key.PRODUCE, 3)
    data = [p.PartitionProduceData(index, world.names.batch(**batch))]
    entry = p.TopicProduceData(topic, ZERO_UUID, data)
    if version >= _BY_IDS:
        entry = p.TopicProduceData("", world.names.ids.get(topic, ZERO_UUID), data)
    request = p.ProduceRequest(name, acks, 1000, [entry])
    place = Place(user, world.leader(topic, index))
    if acks:
        return world.ask(place, Key.PRODUCE, version, request)
    world.twins.send(place, Key.PRODUCE, version, request)
    # No answer comes. The next one shows whether the broker has closed the connection.
    return world.ask(
        place, Key.METADATA, 12, m.MetadataRequest([m.MetadataRequestTopic(name=topic)])
    )


def topics(world: World) -> Story:
    """Create a topic, write to it, and read from it."""
    user, topic = world.user(), world.names.topic()
    configs = [ct.CreatableTopicConfig("retention.ms", "-1")] * world.random.randrange(2)
    created = ct.CreatableTopic(topic, world.random.choice((1, 3)), 1, [], configs)
    request = ct.CreateTopicsRequest([created], 1000)
    world.ask(
        Place(user, world.node()), Key.CREATE_TOPICS, world.version(Key.CREATE_TOPICS), request
    )
    world.look()
    for _ in range(3):
        yield
        produced(world, world.user(), topic, acks=world.random.choice((-1, 1, -1, 0)))
        yield
        fetched(world, user, topic)
        yield
        place = Place(user, world.leader(topic, 0))
        for timestamp in (-2, -1):
            parts = [lo.ListOffsetsPartition(0, timestamp=timestamp)]
            asked = lo.ListOffsetsRequest(-1, topics=[lo.ListOffsetsTopic(topic, parts)])
            world.ask(place, Key.LIST_OFFSETS, world.version(Key.LIST_OFFSETS), asked)


def fetched(world: World, user: str, topic: str) -> None:
    """Read a partition at its leader without a session."""
    version, part = world.version(Key.FETCH), f.FetchPartition(0, partition_max_bytes=1 << 20)
    request = f.FetchRequest(topics=[_fetch_topic(world, version, topic, [part])])
    world.ask(Place(user, world.leader(topic, 0)), Key.FETCH, version, request)


def _fetch_topic(
    world: World, version: int, topic: str, parts: Any, cls: Any = f.FetchTopic
) -> Any:
    topic_id = world.names.ids.get(topic, ZERO_UUID)
    return cls("", topic_id, parts) if version >= _BY_IDS else cls(topic, ZERO_UUID, parts)


def fetch_session(world: World) -> Story:
    """Read in a fetch session, while records come and topics are added and forgotten."""
    version = world.version(Key.FETCH, 7)
    # Other requests may close their connections, and a gateway's session ends with its connection.
    place = Place(world.user(), world.leader("t1", 0), number=world.names.new_number())
    session, epoch = 0, 0
    for _ in range(world.random.randint(3, 8)):
        request = _in_session(world, version, session, epoch)
        answer = world.ask(place, Key.FETCH, version, request)
        if answer is CLOSED:
            return
        session, epoch = answer.session_id, epoch + 1
        if answer.error_code or not session:
            session, epoch = 0, 0
        yield
        produced(world, SUPER, world.names.topic())
        yield


def _in_session(world: World, version: int, session: int, epoch: int) -> Any:
    """Return a Fetch that begins or continues a session."""
    random, names = world.random, world.names
    count = random.choice((0, 1, 2)) if session else 2
    chosen = {names.topic() for _ in range(count)}
    asked = [_fetch_topic(world, version, topic, _parts(random)) for topic in sorted(chosen)]
    forgotten = [
        _fetch_topic(world, version, names.topic(), [0], f.ForgottenTopic)
        for _ in range(random.choice((0, 0, 1)))
    ]
    by_ids = {(topic.topic, topic.topic_id): topic for topic in asked}
    return f.FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=list(by_ids.values()),
        forgotten_topics_data=forgotten,
    )


def _parts(random: Random) -> list[Any]:
    return [
        f.FetchPartition(index, fetch_offset=random.randrange(3), partition_max_bytes=9999)
        for index in random.sample(range(3), 2)
    ]


def waiting_fetch(world: World) -> Story:
    """Let a Fetch wait until a record comes; the right to read may be revoked meanwhile."""
    user, topic = world.user(), world.random.choice(sorted(world.names.ids) or ["missing"])
    leader, end = world.leader(topic, 0, exact=True), world.end(topic)
    version = world.version(Key.FETCH)
    part = f.FetchPartition(0, fetch_offset=end, partition_max_bytes=1 << 20)
    entry = _fetch_topic(world, version, topic, [part])
    request = f.FetchRequest(max_wait_ms=_WAIT_MS, min_bytes=1, topics=[entry])
    # A connection that waits answers nothing else.
    place = Place(user, leader, number=1)
    world.twins.send(place, Key.FETCH, version, request)
    if world.random.random() < 0.5:
        # The sides may have looked at the rights already, or not yet. Both must refuse it.
        world.rights.deny(user, topic, Op.READ)
    data = [p.PartitionProduceData(0, world.names.batch())]
    written = p.ProduceRequest(None, -1, 1000, [p.TopicProduceData(topic, ZERO_UUID, data)])
    world.ask(Place(SUPER, leader), Key.PRODUCE, 12, written)
    world.twins.answer(place, Key.FETCH, version, request)
    yield


class _Transaction:
    """A transaction of a producer, which continues also after an error."""

    def __init__(self, world: World, user: str, name: str, producer: tuple[int, int]) -> None:
        self.world, self.user, self.name, self.producer = world, user, name, producer
        self.place = Place(user, world.coordinator(name, 1))

    def add(self, topic: str) -> None:
        """Add partitions of a topic."""
        parts = ap.AddPartitionsToTxnTopic(topic, [0, 1])
        request = ap.AddPartitionsToTxnRequest([], self.name, *self.producer, [parts])
        version = self.world.random.choice((0, 1, 2, 3))
        self.world.ask(self.place, Key.ADD_PARTITIONS_TO_TXN, version, request)

    def add_offsets(self, group: str) -> None:
        """Add the offsets of a group."""
        request = ao.AddOffsetsToTxnRequest(self.name, *self.producer, group)
        version = self.world.version(Key.ADD_OFFSETS_TO_TXN)
        self.world.ask(self.place, Key.ADD_OFFSETS_TO_TXN, version, request)

    def commit_offsets(self, group: str) -> None:
        """Commit offsets of a group as part of the transaction."""
        part = toc.TxnOffsetCommitRequestPartition(0, 5, committed_metadata="")
        topics = [toc.TxnOffsetCommitRequestTopic(topic, [part]) for topic in ("t1", "u1")]
        request = toc.TxnOffsetCommitRequest(self.name, group, *self.producer, topics=topics)
        version = self.world.version(Key.TXN_OFFSET_COMMIT)
        place = Place(self.user, self.world.coordinator(group))
        self.world.ask(place, Key.TXN_OFFSET_COMMIT, version, request)

    def end(self) -> None:
        """Commit or abort it."""
        request = et.EndTxnRequest(self.name, *self.producer, self.world.random.random() < 0.6)
        self.world.ask(self.place, Key.END_TXN, self.world.version(Key.END_TXN), request)


def transaction(world: World) -> Story:
    """Write records and offsets in a transaction, and end it."""
    user, name = world.user(), world.names.transactional_id()
    topic, group = world.names.topic(), world.names.group()
    request = ip.InitProducerIdRequest(name, 600_000)
    place = Place(user, world.coordinator(name, 1))
    answer = world.ask(place, Key.INIT_PRODUCER_ID, world.version(Key.INIT_PRODUCER_ID), request)
    if answer is CLOSED or answer.error_code:
        return
    running = _Transaction(world, user, name, (answer.producer_id, answer.producer_epoch))
    yield
    running.add(topic)
    yield
    for number in range(2):
        producer = (*running.producer, number)
        produced(world, user, topic, name=name, producer=producer, transactional=True)
        yield
    running.add_offsets(group)
    yield
    running.commit_offsets(group)
    yield
    described = dt.DescribeTransactionsRequest([name])
    world.ask(Place(world.user(), place.node), Key.DESCRIBE_TRANSACTIONS, 0, described)
    yield
    running.end()
    yield
    fetched(world, world.user(), topic)
