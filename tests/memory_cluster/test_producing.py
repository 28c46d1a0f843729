"""Produce of a cluster in memory, as it is on the wire."""

import time
import uuid
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.memory.records import batch, changed
from tests.memory_cluster import raw
from tests.memory_cluster.raw import write
from tests.support.broker import Broker


def now() -> int:
    return int(time.time() * 1000)


def new_topic(client: Any, **configs: str) -> str:
    name = f"produce-{uuid.uuid4().hex}"
    given = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    topic = CreatableTopic(name, 1, 1, configs=given)
    answer = client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 1000))
    assert answer.topics[0].error_code == 0
    return name


@pytest.mark.parametrize("version", range(3, 14))
def test_a_batch_is_written_in_every_version(node: Broker, version: int):
    client = raw.admin(node)
    topic = new_topic(client)
    for number in range(3):
        answer = write(client, topic, batch(b"a", b"b", time_ms=now()), version=version)
        assert (answer.error_code, answer.base_offset) == (0, 2 * number)


def test_a_batch_that_comes_again_gets_its_first_offset(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client)
    first = batch(b"a", time_ms=now(), producer=(77, 0, 0))
    second = batch(b"b", time_ms=now(), producer=(77, 0, 1))
    gap = batch(b"c", time_ms=now(), producer=(77, 0, 9))
    answers = [write(client, topic, each) for each in (first, second, first, gap)]
    assert [(each.error_code, each.base_offset) for each in answers] == [
        (0, 0),
        (0, 1),
        (0, 0),
        (45, -1),
    ]


def test_what_a_broker_refuses_is_refused_with_the_reason(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client, max_message_bytes="1000")
    compacted = new_topic(client, cleanup_policy="compact")
    assert write(client, topic, batch(b"x" * 1000, time_ms=now())).error_code == 10
    assert write(client, topic, batch(b"x", time_ms=now())[:-1] + b"\1").error_code == 2
    assert write(client, topic, changed(batch(b"x"), 16, b"\1")).error_code == 87
    assert write(client, topic, batch(b"x", time_ms=now()), acks=7).error_code == 21
    assert write(client, topic, batch(b"x", time_ms=now()), index=5).error_code == 3
    late = write(client, topic, batch(b"x", time_ms=now() + 7_200_000))
    assert (late.error_code, late.record_errors[0].batch_index) == (32, 0)
    keyless = write(client, compacted, batch((b"k", b"a"), (None, b"b"), time_ms=now()))
    assert keyless.error_code == 87
    assert [each.batch_index for each in keyless.record_errors] == [1]


def test_the_time_of_writing_is_told_where_it_counts(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client, message_timestamp_type="LogAppendTime")
    begun = now()
    answer = write(client, topic, batch(b"a", time_ms=5))
    assert begun - 1000 <= answer.log_append_time_ms <= now() + 1000


def test_another_node_names_the_leader_and_where_it_is(nodes: Broker):
    client = raw.admin(nodes)
    topic = new_topic(client)
    codes = []
    for number in range(3):
        with raw.admin(nodes, number) as each:
            data = [p.PartitionProduceData(0, batch(b"a", time_ms=now()))]
            entry = p.TopicProduceData(topic, partition_data=data)
            answer = each.ask(ApiKey.PRODUCE, 12, p.ProduceRequest(None, -1, 1000, [entry]))
            told = answer.responses[0].partition_responses[0]
            codes.append(told.error_code)
            if told.error_code:
                [endpoint] = answer.node_endpoints
                assert endpoint.node_id == told.current_leader.leader_id
    assert sorted(codes) == [0, 6, 6]


def test_without_acknowledgement_an_error_closes_the_connection(node: Broker):
    client, silent = raw.admin(node), raw.admin(node)
    topic = new_topic(client)

    def send(records: bytes) -> None:
        data = [p.PartitionProduceData(0, records)]
        entry = p.TopicProduceData(topic, partition_data=data)
        silent.request(ApiKey.PRODUCE, 12, p.ProduceRequest(None, 0, 1000, [entry]))

    send(batch(b"a", time_ms=now()))
    send(batch(b"b", time_ms=now())[:-1] + b"\1")
    assert silent.is_closed()
    assert write(client, topic, batch(b"c", time_ms=now())).base_offset == 1


def test_a_full_memory_forgets_the_oldest_records_or_refuses_new_ones(
    tmp_path_factory: pytest.TempPathFactory,
):
    for full in ("delete", "refuse"):
        broker = Broker(
            tmp_path_factory.mktemp(full),
            {
                "aclbroker.cluster": "memory",
                "aclbroker.memory.max.bytes": "1048576",
                "aclbroker.memory.full": full,
            },
        )
        broker.start()
        try:
            client = raw.admin(broker)
            topic = new_topic(client)
            data = batch(b"x" * 10_000, time_ms=now())
            answers = [write(client, topic, data) for _ in range(200)]
            codes = {each.error_code for each in answers}
            assert codes == ({0} if full == "delete" else {0, 56})
            assert (answers[-1].log_start_offset > 0) == (full == "delete")
        finally:
            broker.terminate()
