"""Topics and offsets of a cluster in memory, as they are on the wire."""

import time
import uuid
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import alter_configs as replaced
from aclbroker.protocol.messages import alter_partition_reassignments as moved
from aclbroker.protocol.messages import create_partitions as grown
from aclbroker.protocol.messages import create_topics as made
from aclbroker.protocol.messages import delete_records as emptied
from aclbroker.protocol.messages import delete_topics as deleted
from aclbroker.protocol.messages import describe_configs as described
from aclbroker.protocol.messages import describe_topic_partitions as partitions
from aclbroker.protocol.messages import incremental_alter_configs as altered
from aclbroker.protocol.messages import list_config_resources as resources
from aclbroker.protocol.messages import list_offsets as listed
from aclbroker.protocol.messages import offset_for_leader_epoch as epochs
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.raw import write
from tests.support.broker import Broker

TOPIC, BROKER = 2, 4


def name() -> str:
    return f"topics-{uuid.uuid4().hex}"


def create(client: Any, *topics: Any, tried: bool = False) -> list[Any]:
    request = made.CreateTopicsRequest(topics, 1000, tried)
    return list(client.ask(ApiKey.CREATE_TOPICS, 7, request).topics)


def leader(broker: Broker, topic: str) -> Any:
    """Return a connection to the node that leads partition 0 of a topic."""
    request = partitions.DescribeTopicPartitionsRequest([partitions.TopicRequest(topic)])
    answer = raw.admin(broker).ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    return raw.admin(broker, answer.topics[0].partitions[0].leader_id - 1)


def test_a_trial_creates_nothing_and_says_what_would_be(node: Broker):
    client, topic = raw.admin(node), name()
    [answer] = create(client, made.CreatableTopic(topic, -1, -1), tried=True)
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 1, 1)
    assert {each.name: each.value for each in answer.configs}["cleanup.policy"] == "delete"
    [answer] = create(client, made.CreatableTopic(topic, 2, 1))
    assert answer.error_code == 0
    assert create(client, made.CreatableTopic(topic, 2, 1), tried=True)[0].error_code == 36


def test_topics_that_cannot_be_are_refused_and_the_others_created(nodes: Broker):
    client, topic = raw.admin(nodes), name()
    config = made.CreatableTopicConfig
    node = made.CreatableReplicaAssignment
    answers = create(
        client,
        made.CreatableTopic("no good", 1, 1),
        made.CreatableTopic(name(), 0, 1),
        made.CreatableTopic(name(), 1, 4),
        made.CreatableTopic(name(), 1, 1, configs=[config("unknown", "1")]),
        made.CreatableTopic(name(), 1, 1, configs=[config("retention.ms", None)]),
        made.CreatableTopic(name(), 1, -1, [node(0, [1])]),
        made.CreatableTopic(name(), -1, -1, [node(0, [9])]),
        made.CreatableTopic(topic, -1, -1, [node(1, [3, 2]), node(0, [2, 1])]),
    )
    codes = {answer.name: answer.error_code for answer in answers}
    assert list(codes.values()) == [17, 37, 38, 40, 40, 42, 39, 0]
    request = partitions.DescribeTopicPartitionsRequest([partitions.TopicRequest(topic)])
    answer = client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert [(each.leader_id, list(each.replica_nodes)) for each in answer.topics[0].partitions] == [
        (2, [2, 1]),
        (3, [3, 2]),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 2000])
def test_hidden_topics_take_no_place_on_a_page_of_partitions(node: Broker, limit: int):
    client, alice = raw.admin(node), raw.logged_in(node, "alice")
    topics = [f"{name()}-{number}" for number in range(3)]
    hidden = [f"topics-{number}" for number in ("0", "f~", "g")]
    create(client, *[made.CreatableTopic(each, 2, 1) for each in (*topics, *hidden)])
    client.create(*[raw.acl("alice", raw.DESCRIBE, each) for each in topics])
    cursor, pages = None, list[list[tuple[str, int]]]()
    while not pages or cursor is not None:
        request = partitions.DescribeTopicPartitionsRequest([], limit, cursor)
        answer = alice.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        pages.append(
            [
                (topic.name, each.partition_index)
                for topic in answer.topics
                for each in topic.partitions
            ]
        )
        cursor = answer.next_cursor
    found = [each for page in pages for each in page if each[0] in topics]
    assert found == [(each, index) for each in sorted(topics) for index in (0, 1)]
    assert {len(page) for page in pages[:-1]} <= {limit}


def test_too_many_partitions_at_once_are_refused(node: Broker):
    client = raw.admin(node)
    answers = create(client, *[made.CreatableTopic(name(), 6000, 1) for _ in range(2)])
    assert [each.error_code for each in answers] == [44, 44]


def test_topics_are_deleted_by_name_and_by_id(node: Broker):
    client, first, second = raw.admin(node), name(), name()
    answers = create(client, *[made.CreatableTopic(each, 1, 1) for each in (first, second)])
    state = deleted.DeleteTopicState
    request = deleted.DeleteTopicsRequest(
        [state(first), state(None, answers[1].topic_id), state(name())], timeout_ms=1000
    )
    answer = client.ask(ApiKey.DELETE_TOPICS, 6, request)
    assert [(each.name, each.error_code) for each in answer.responses[:2]] == [
        (first, 0),
        (second, 0),
    ]
    assert answer.responses[2].error_code == 3
    again = client.ask(
        ApiKey.DELETE_TOPICS, 5, deleted.DeleteTopicsRequest(topic_names=[first], timeout_ms=1000)
    )
    assert again.responses[0].error_code == 3


def test_partitions_become_more_and_not_fewer(nodes: Broker):
    client, topic = raw.admin(nodes), name()
    create(client, made.CreatableTopic(topic, 2, 1))
    assignment = grown.CreatePartitionsAssignment
    codes = []
    for asked in (
        grown.CreatePartitionsTopic(topic, 2, None),
        grown.CreatePartitionsTopic(topic, 1, None),
        grown.CreatePartitionsTopic(name(), 3, None),
        grown.CreatePartitionsTopic(topic, 4, [assignment([1])]),
        grown.CreatePartitionsTopic(topic, 3, [assignment([1, 2])]),
        grown.CreatePartitionsTopic(topic, 3, [assignment([2])]),
        grown.CreatePartitionsTopic(topic, 5, None),
    ):
        request = grown.CreatePartitionsRequest([asked], 1000)
        codes.append(client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results[0].error_code)
    assert codes == [37, 37, 3, 39, 39, 0, 0]
    tried = grown.CreatePartitionsRequest(
        [grown.CreatePartitionsTopic(topic, 9, None)], 1000, validate_only=True
    )
    assert client.ask(ApiKey.CREATE_PARTITIONS, 3, tried).results[0].error_code == 0
    asking = partitions.DescribeTopicPartitionsRequest([partitions.TopicRequest(topic)])
    answer = client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, asking)
    assert len(answer.topics[0].partitions) == 5
    assert answer.topics[0].partitions[2].leader_id == 2


def configs_of(client: Any, topic: str, *names: str) -> dict[str, tuple[Any, int]]:
    resource = described.DescribeConfigsResource(TOPIC, topic, list(names) or None)
    request = described.DescribeConfigsRequest([resource], include_synonyms=True)
    [result] = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results
    assert result.error_code == 0
    return {each.name: (each.value, each.config_source) for each in result.configs}


def test_settings_are_altered_one_by_one_or_all_at_once(node: Broker):
    client, topic = raw.admin(node), name()
    create(client, made.CreatableTopic(topic, 1, 1))
    assert len(configs_of(client, topic)) == 33

    def alter(*configs: tuple[str, int, str | None]) -> int:
        entries = [altered.AlterableConfig(*each) for each in configs]
        resource = altered.AlterConfigsResource(TOPIC, topic, entries)
        request = altered.IncrementalAlterConfigsRequest([resource])
        answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        return int(answer.responses[0].error_code)

    assert alter(("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact")) == 0
    assert configs_of(client, topic, "retention.ms", "cleanup.policy") == {
        "cleanup.policy": ("delete,compact", 1),
        "retention.ms": ("5", 1),
    }
    assert alter(("cleanup.policy", 3, "delete"), ("retention.ms", 1, None)) == 0
    assert configs_of(client, topic, "retention.ms", "cleanup.policy") == {
        "cleanup.policy": ("compact", 1),
        "retention.ms": ("604800000", 5),
    }
    assert alter(("retention.ms", 2, "5")) == 40
    assert alter(("retention.ms", 9, "5")) == 42
    assert alter(("unknown", 0, "5")) == 40
    whole = replaced.AlterConfigsRequest(
        [
            replaced.AlterConfigsResource(
                TOPIC, each, [replaced.AlterableConfig("retention.bytes", "7")]
            )
            for each in (topic, name())
        ]
    )
    codes = [each.error_code for each in client.ask(ApiKey.ALTER_CONFIGS, 2, whole).responses]
    assert codes == [0, 3]
    assert configs_of(client, topic, "retention.bytes", "cleanup.policy") == {
        "cleanup.policy": ("delete", 5),
        "retention.bytes": ("7", 1),
    }


def offset_of(client: Any, topic: str, timestamp: int, version: int = 11) -> tuple[int, int, int]:
    asked = listed.ListOffsetsPartition(0, timestamp=timestamp)
    request = listed.ListOffsetsRequest(-1, 0, [listed.ListOffsetsTopic(topic, [asked])])
    answer = client.ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]
    return answer.error_code, answer.timestamp, answer.offset


def test_all_nodes_are_told_as_what_has_settings_and_each_is_asked_for_its_own(nodes: Broker):
    node, logger = 4, 8
    client = raw.admin(nodes)
    request = resources.ListConfigResourcesRequest([node, logger])
    answer = client.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, request)
    found = [(each.resource_type, each.resource_name) for each in answer.config_resources]
    assert sorted(found) == [(kind, name) for kind in (node, logger) for name in "123"]
    asked = described.DescribeConfigsRequest([described.DescribeConfigsResource(node, "2")])
    [result] = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, asked).results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    [result] = raw.admin(nodes, 1).ask(ApiKey.DESCRIBE_CONFIGS, 4, asked).results
    assert result.error_code == 0


def test_offsets_are_found_by_time_and_by_what_numbers_stand_for(broker: Broker):
    topic = name()
    create(raw.admin(broker), made.CreatableTopic(topic, 1, 1))
    client, begun = leader(broker, topic), int(time.time() * 1000) - 1000
    for number in range(3):
        data = batch(b"a", b"b", time_ms=begun + 100 * number)
        assert write(client, topic, data).error_code == 0
    assert offset_of(client, topic, -1) == (0, -1, 6)
    assert offset_of(client, topic, -2) == (0, -1, 0)
    assert offset_of(client, topic, -3) == (0, begun + 201, 5)
    assert offset_of(client, topic, -4) == (0, -1, 0)
    assert offset_of(client, topic, -5) == (0, -1, -1)
    assert offset_of(client, topic, -6) == (0, -1, -1)
    assert offset_of(client, topic, begun + 101) == (0, begun + 101, 3)
    assert offset_of(client, topic, begun + 5000) == (0, -1, -1)
    assert offset_of(client, topic, -3, 6)[0] == 35
    assert offset_of(client, topic, -7)[0] == 35


def test_records_are_deleted_up_to_an_offset_but_not_beyond_the_end(broker: Broker):
    topic, compacted = name(), name()
    policy = [made.CreatableTopicConfig("cleanup.policy", "compact")]
    create(raw.admin(broker), made.CreatableTopic(topic, 1, 1))
    create(raw.admin(broker), made.CreatableTopic(compacted, 1, 1, configs=policy))
    client = leader(broker, topic)
    write(client, topic, batch(b"a", b"b", b"c", time_ms=int(time.time() * 1000)))

    def delete(client: Any, topic: str, offset: int) -> tuple[int, int]:
        asked = emptied.DeleteRecordsTopic(topic, [emptied.DeleteRecordsPartition(0, offset)])
        request = emptied.DeleteRecordsRequest([asked], 1000)
        answer = client.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]
        return answer.error_code, answer.low_watermark

    assert [delete(client, topic, offset) for offset in (2, 1, 4, -1)] == [
        (0, 2),
        (0, 2),
        (1, -1),
        (0, 3),
    ]
    assert delete(client, name(), 0) == (3, -1)
    assert delete(leader(broker, compacted), compacted, 0) == (44, -1)


@pytest.mark.parametrize(("current", "asked", "told"), [(-1, 0, (0, 0, 1)), (5, 0, (75, -1, -1))])
def test_the_end_of_a_leader_epoch_is_told(
    node: Broker, current: int, asked: int, told: tuple[int, int, int]
):
    client, topic = raw.admin(node), name()
    create(client, made.CreatableTopic(topic, 1, 1))
    write(client, topic, batch(b"a", time_ms=int(time.time() * 1000)))
    entry = epochs.OffsetForLeaderPartition(0, current, asked)
    request = epochs.OffsetForLeaderEpochRequest(-2, [epochs.OffsetForLeaderTopic(topic, [entry])])
    answer = client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0]
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == told


def test_partitions_do_not_move(nodes: Broker):
    client, topic = raw.admin(nodes), name()
    node = made.CreatableReplicaAssignment
    create(client, made.CreatableTopic(topic, -1, -1, [node(0, [2])]))
    entries = [
        moved.ReassignablePartition(0, [1]),
        moved.ReassignablePartition(0, [2]),
        moved.ReassignablePartition(0, None),
        moved.ReassignablePartition(7, [2]),
    ]
    request = moved.AlterPartitionReassignmentsRequest(
        topics=[moved.ReassignableTopic(topic, entries)]
    )
    answer = client.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    assert [each.error_code for each in answer.responses[0].partitions] == [39, 0, 85, 3]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_settings_of_a_node_can_be_deleted_at_that_node_and_not_set(nodes: Broker, number: int):
    client = raw.admin(nodes, number - 1)

    def alter(node: str, *configs: tuple[str, int, str | None]) -> tuple[int, str | None]:
        entries = [altered.AlterableConfig(*each) for each in configs]
        resource = altered.AlterConfigsResource(BROKER, node, entries)
        request = altered.IncrementalAlterConfigsRequest([resource])
        [told] = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
        return told.error_code, told.error_message

    rate = "leader.replication.throttled.rate"
    for node in ("", str(number)):
        assert alter(node, (rate, 1, None), ("unknown", 1, None)) == (0, None)
        message = "In a cluster in memory only the settings of topics and groups can be altered."
        assert alter(node, ("unknown", 1, None), (rate, 0, "1000")) == (44, message)
    other = str(number % 3 + 1)
    assert alter(other, (rate, 1, None))[0] == 42


def test_a_nodes_settings_cannot_be_replaced_but_by_none(node: Broker):
    def replace(*configs: tuple[str, str]) -> int:
        entries = [replaced.AlterableConfig(*each) for each in configs]
        request = replaced.AlterConfigsRequest(
            [replaced.AlterConfigsResource(BROKER, "1", entries)]
        )
        [told] = raw.admin(node).ask(ApiKey.ALTER_CONFIGS, 2, request).responses
        return int(told.error_code)

    assert (replace(), replace(("log.retention.ms", "5"))) == (0, 44)
