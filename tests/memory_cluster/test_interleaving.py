"""Whatever changes while others have their turn, a long request is answered in its order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import aclbroker.turns
from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import add_partitions_to_txn as ap
from aclbroker.protocol.messages import create_partitions as cp
from aclbroker.protocol.messages import delete_records as dr
from aclbroker.protocol.messages import delete_topics as dt
from aclbroker.protocol.messages import describe_configs as dc
from aclbroker.protocol.messages import describe_producers as dp
from aclbroker.protocol.messages import describe_topic_partitions as dtp
from aclbroker.protocol.messages import elect_leaders as el
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import list_offsets as lo
from aclbroker.protocol.messages import metadata as m
from aclbroker.protocol.messages import offset_commit as oc
from aclbroker.protocol.messages import offset_delete as od
from aclbroker.protocol.messages import offset_fetch as of
from aclbroker.protocol.messages import offset_for_leader_epoch as ofe
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages import txn_offset_commit as toc
from aclbroker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from aclbroker.testing import AclBroker
from tests.memory.records import batch

TOPICS = ("gone", "stays")
COUNT = 40
EACH = range(COUNT)
UNKNOWN_SERVER_ERROR = -1


def _fetch() -> Any:
    topics = [
        f.FetchTopic(
            name, partitions=[f.FetchPartition(each, partition_max_bytes=99) for each in EACH]
        )
        for name in TOPICS
    ]
    return f.FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=topics)


def _produce() -> Any:
    data = [p.PartitionProduceData(each, batch(b"a")) for each in EACH]
    topics = [p.TopicProduceData(name, partition_data=data) for name in TOPICS]
    return p.ProduceRequest(None, -1, 1000, topics)


def _offsets(group: str) -> Any:
    partitions = [oc.OffsetCommitRequestPartition(each, 5) for each in EACH]
    topics = [oc.OffsetCommitRequestTopic(name, partitions=partitions) for name in TOPICS]
    return oc.OffsetCommitRequest(group, topics=topics)


def _txn_offsets() -> Any:
    partitions = [toc.TxnOffsetCommitRequestPartition(each, 5) for each in EACH]
    topics = [toc.TxnOffsetCommitRequestTopic(name, partitions) for name in TOPICS]
    return toc.TxnOffsetCommitRequest("txn", "group", 0, 0, topics=topics)


def _named(topic: Any, partition: Any) -> Any:
    """Return both topics, each with all partitions."""
    return [topic(name, [partition(each) for each in EACH]) for name in TOPICS]


REQUESTS: dict[str, tuple[ApiKey, int, Callable[[], Any]]] = {
    "produce": (ApiKey.PRODUCE, 9, _produce),
    "fetch": (ApiKey.FETCH, 12, _fetch),
    "list-offsets": (
        ApiKey.LIST_OFFSETS,
        7,
        lambda: lo.ListOffsetsRequest(
            topics=_named(lo.ListOffsetsTopic, lambda each: lo.ListOffsetsPartition(each, -1, 0))
        ),
    ),
    "metadata": (ApiKey.METADATA, 12, lambda: m.MetadataRequest(None)),
    "topic-partitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda: dtp.DescribeTopicPartitionsRequest([dtp.TopicRequest(name) for name in TOPICS]),
    ),
    "delete-records": (
        ApiKey.DELETE_RECORDS,
        1,
        lambda: dr.DeleteRecordsRequest(
            _named(dr.DeleteRecordsTopic, lambda each: dr.DeleteRecordsPartition(each, -1)), 1000
        ),
    ),
    "epochs": (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda: ofe.OffsetForLeaderEpochRequest(
            topics=_named(
                ofe.OffsetForLeaderTopic, lambda each: ofe.OffsetForLeaderPartition(each, -1, 0)
            )
        ),
    ),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: dc.DescribeConfigsRequest(
            [dc.DescribeConfigsResource(2, name) for name in TOPICS * 10]
        ),
    ),
    "log-dirs": (ApiKey.DESCRIBE_LOG_DIRS, 2, lambda: DescribeLogDirsRequest(None)),
    "producers": (
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda: dp.DescribeProducersRequest([dp.TopicRequest(name, list(EACH)) for name in TOPICS]),
    ),
    "elect": (ApiKey.ELECT_LEADERS, 2, lambda: el.ElectLeadersRequest(0, None)),
    "create-partitions": (
        ApiKey.CREATE_PARTITIONS,
        1,
        lambda: cp.CreatePartitionsRequest(
            [cp.CreatePartitionsTopic(name, COUNT + 30) for name in TOPICS], 1000
        ),
    ),
    "delete-topics": (
        ApiKey.DELETE_TOPICS,
        5,
        lambda: dt.DeleteTopicsRequest(topic_names=list(TOPICS), timeout_ms=1000),
    ),
    "commit": (ApiKey.OFFSET_COMMIT, 8, lambda: _offsets("group")),
    "offsets": (
        ApiKey.OFFSET_FETCH,
        8,
        lambda: of.OffsetFetchRequest(groups=[of.OffsetFetchRequestGroup("old", topics=None)]),
    ),
    "delete-offsets": (
        ApiKey.OFFSET_DELETE,
        0,
        lambda: od.OffsetDeleteRequest(
            "old", _named(od.OffsetDeleteRequestTopic, od.OffsetDeleteRequestPartition)
        ),
    ),
    "add-partitions": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        lambda: ap.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="txn",
            v3_and_below_topics=[ap.AddPartitionsToTxnTopic(name, list(EACH)) for name in TOPICS],
        ),
    ),
    "txn-offsets": (ApiKey.TXN_OFFSET_COMMIT, 3, _txn_offsets),
}


class Pauses:
    """Does something in the broker's thread at one of the places where a request may pause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.do: Callable[[], None] = lambda: None
        pause = aclbroker.turns._pause

        def counted() -> None:
            # The client of this test pauses, too.
            if threading.current_thread() is not threading.main_thread():
                self.left -= 1
                if self.left == 0:
                    self.do()
            pause()

        monkeypatch.setattr("aclbroker.turns._pause", counted)


@pytest.fixture(scope="module")
def broker() -> Iterator[AclBroker]:
    with AclBroker() as started:
        yield started


@pytest.fixture
def client(broker: AclBroker) -> Iterator[BlockingClient]:
    host, _, port = broker.bootstrap_servers.partition(":")
    with BlockingClient(connect(host, int(port), timeout=30), "test") as found:
        found.login("admin", broker.password("admin"))
        yield found


def _codes(answer: Any) -> Iterator[int]:
    """All error codes of an answer."""
    for name, value in vars(answer).items() if hasattr(answer, "__dict__") else _slots(answer):
        if name == "error_code":
            yield value
        elif isinstance(value, list | tuple):
            for each in value:
                yield from _codes(each)


def _slots(item: Any) -> Iterator[tuple[str, Any]]:
    for name in getattr(type(item), "__slots__", ()):
        yield name, getattr(item, name)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("comes", [False, True], ids=["goes", "comes"])
def test_a_topic_that_comes_or_goes_during_a_request_leaves_all_others_in_order(
    broker: AclBroker,
    client: BlockingClient,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    comes: bool,
):
    key, version, make = REQUESTS[name]
    pauses = Pauses(monkeypatch)
    topics = broker._broker.cluster.topics
    changed = []

    def prepare() -> None:
        for each in TOPICS:
            if (topic := topics.by_name.get(each)) is not None:
                topics.delete(topic)
        for each in TOPICS[comes:]:
            topics.create(each, COUNT)

    def change() -> None:
        changed.append(1)
        if comes:
            topics.create("gone", COUNT)
        elif (topic := topics.by_name.get("gone")) is not None:
            topics.delete(topic)

    pauses.do = change
    for number in range(1, 40):
        broker._broker.call(prepare)
        client.ask(ApiKey.OFFSET_COMMIT, 8, _offsets("old"))
        pauses.left = number
        answer = client.ask(key, version, make())
        pauses.left = -1
        assert UNKNOWN_SERVER_ERROR not in list(_codes(answer))
        if name == "commit":
            [stays] = [each for each in answer.topics if each.name == "stays"]
            assert [each.error_code for each in stays.partitions] == [0] * COUNT
    assert changed
    assert "Traceback" not in broker.log()
