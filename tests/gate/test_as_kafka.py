"""What a real Kafka 4.3.0 was seen to answer in single cases; the corpus asks it again."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from aclbroker.acl.authorizer import Position, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import (
    APIS,
    ApiKey,
    add_partitions_to_txn,
    alter_configs,
    create_topics,
    delete_groups,
    delete_topics,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_fetch,
    produce,
    share_fetch,
    share_group_heartbeat,
    streams_group_heartbeat,
    sync_group,
)
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.asking import AUDIT, allowing, ask
from tests.gate.requests import filled, filled_class
from tests.gate.rights import Rights, context, everything, names_that_begin_with, nothing, services

CATALOG = Catalog({"may-1": 2, "not-1": 1, "not-2": 1}, ["group"])
UNKNOWN_ID = b"not a known id.."
HALF = names_that_begin_with("may")
TOPIC, GROUP, TXN = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
DESCRIBE, DELETE, READ, WRITE = (
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.READ,
    AclOperation.WRITE,
)


def batch(attributes: int, producer_id: int) -> bytes:
    """Return the head of a record batch: as much as tells what a producer means."""
    head = struct.pack(">qiibIhiqqqhii", 0, 49, 0, 2, 0, attributes, 0, 0, 0, producer_id, 0, 0, 0)
    return head


def produced(records: bytes, transactional_id: str | None = None) -> produce.ProduceRequest:
    partition = produce.PartitionProduceData(0, records)
    return produce.ProduceRequest(
        transactional_id, 1, 1000, [produce.TopicProduceData("may-1", ZERO_UUID, [partition])]
    )


@pytest.mark.parametrize("topic_id", [ZERO_UUID, UNKNOWN_ID], ids=["zero", "unknown"])
@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.PRODUCE, 13),
        (ApiKey.FETCH, 13),
        (ApiKey.OFFSET_COMMIT, 10),
        (ApiKey.OFFSET_FETCH, 10),
    ],
)
async def test_an_id_that_no_topic_has_gets_100_whatever_the_acls(
    key: int, version: int, topic_id: bytes
) -> None:
    request = filled(key, ["may-1"])
    owner = request.groups[0] if key == ApiKey.OFFSET_FETCH else request
    [topic] = getattr(owner, "topic_data", None) or owner.topics
    topic.topic_id = topic_id
    if key == ApiKey.FETCH:
        request.replica_state.replica_id = -1
    group_alone = allowing({(READ, GROUP): {"may-1"}, (DESCRIBE, GROUP): {"may-1"}})
    for rights in (everything, group_alone):
        response = await ask(key, version, request, rights, CATALOG)
        answered = response.groups[0] if key == ApiKey.OFFSET_FETCH else response
        [entry] = getattr(answered, "topics", None) or answered.responses
        partitions = getattr(entry, "partitions", None) or entry.partition_responses
        assert [each.error_code for each in partitions] == [100]


async def test_a_follower_is_told_of_unknown_ids_once_it_may_act_for_the_cluster() -> None:
    request = filled(ApiKey.FETCH, ["may-1"])
    request.replica_state.replica_id = 1
    refused = await ask(ApiKey.FETCH, 16, request, nothing, CATALOG)
    assert refused.responses[0].partitions[0].error_code == 29
    allowed = await ask(ApiKey.FETCH, 16, request, everything, CATALOG)
    assert allowed.responses[0].partitions[0].error_code == 100


async def test_no_message_tells_the_name_of_a_topic_that_was_given_by_its_id() -> None:
    topic_id = CATALOG.id_of("not-1")
    by_id = delete_topics.DeleteTopicsRequest([delete_topics.DeleteTopicState(None, topic_id)])
    response = await ask(ApiKey.DELETE_TOPICS, 6, by_id, HALF, CATALOG)
    [entry] = response.responses
    assert (entry.error_code, entry.name, entry.topic_id) == (29, None, topic_id)
    assert "not-1" not in entry.error_message

    request = filled(ApiKey.SHARE_FETCH, ["may-1"])
    request.topics[0].topic_id = topic_id
    response = await ask(ApiKey.SHARE_FETCH, 1, request, HALF, CATALOG)
    assert response.responses[0].partitions[0].error_code == 29
    assert "not-1" not in str(response)

    partition = produce.PartitionProduceData(0, b"")
    sent = produce.ProduceRequest(None, 1, 0, [produce.TopicProduceData("", topic_id, [partition])])
    response = await ask(ApiKey.PRODUCE, 13, sent, HALF, CATALOG)
    assert response.responses[0].partition_responses[0].error_code == 29
    assert "not-1" not in str(response)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_refused_group_has_committed_nothing(version: int) -> None:
    topic = offset_fetch.OffsetFetchRequestTopic("may-1", [0, 1])
    request = offset_fetch.OffsetFetchRequest("group", [topic])
    response = await ask(ApiKey.OFFSET_FETCH, version, request, nothing, CATALOG)
    partitions = response.topics[0].partitions
    assert [(each.error_code, each.committed_offset) for each in partitions] == [(30, -1)] * 2


def altered(kind: int, name: str, *values: tuple[str, int, str | None]) -> Any:
    configs = [incremental_alter_configs.AlterableConfig(*each) for each in values]
    return incremental_alter_configs.AlterConfigsResource(kind, name, configs)


def replaced(kind: int, name: str, *values: tuple[str, str | None]) -> Any:
    configs = [alter_configs.AlterableConfig(*each) for each in values]
    return alter_configs.AlterConfigsResource(kind, name, configs)


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        (altered(2, "not-1", ("k", 0, "v"), ("k", 0, "w")), 42),
        (altered(2, "not-1", ("k", 0, None)), 42),
        (altered(2, "not-1", ("k", 1, None)), 29),
        (altered(8, "1", ("k", 0, "v")), 31),
        (altered(8, "1", ("k", 0, None)), 42),
        (altered(4, "77", ("k", 0, "v")), 42),
        (altered(4, "1", ("k", 0, "v")), 31),
        (altered(16, "m", ("k", 0, "v")), 31),
        (altered(32, "group", ("k", 0, "v")), 30),
        (altered(127, "x", ("k", 0, "v")), 42),
    ],
)
async def test_what_is_wrong_with_a_configuration_comes_before_rights(
    resource: Any, code: int
) -> None:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    response = await ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, nothing, CATALOG)
    assert [each.error_code for each in response.responses] == [code]


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        (replaced(2, "not-1", ("k", "v"), ("k", "w")), 42),
        (replaced(2, "not-1", ("k", None)), 42),
        (replaced(2, "not-1", ("k", "v")), 29),
        (replaced(8, "1", ("k", "v")), 42),
        (replaced(4, "77", ("k", "v")), 42),
        (replaced(4, "", ("k", "v")), 31),
    ],
)
async def test_log_levels_cannot_be_replaced_and_the_rest_is_as_when_altered(
    resource: Any, code: int
) -> None:
    request = alter_configs.AlterConfigsRequest([resource])
    response = await ask(ApiKey.ALTER_CONFIGS, 2, request, nothing, CATALOG)
    assert [each.error_code for each in response.responses] == [code]


async def test_a_resource_that_is_altered_twice_is_refused_each_time() -> None:
    resources = [replaced(2, "not-1", ("a", "b")), replaced(2, "not-1", ("c", "d"))]
    request = alter_configs.AlterConfigsRequest(resources)
    response = await ask(ApiKey.ALTER_CONFIGS, 2, request, nothing, CATALOG)
    assert [each.error_code for each in response.responses] == [42, 42]


async def test_one_unknown_type_refuses_all_descriptions_of_configurations() -> None:
    resources = [
        describe_configs.DescribeConfigsResource(2, "may-1"),
        describe_configs.DescribeConfigsResource(127, "x"),
    ]
    request = describe_configs.DescribeConfigsRequest(resources)
    response = await ask(ApiKey.DESCRIBE_CONFIGS, 4, request, everything, CATALOG)
    assert [(each.resource_name, each.error_code) for each in response.results] == [
        ("may-1", 42),
        ("x", 42),
    ]


async def test_a_name_that_is_created_twice_has_one_entry() -> None:
    topics = [create_topics.CreatableTopic(name, 1, 1) for name in ("may-2", "not-3", "may-2")]
    request = create_topics.CreateTopicsRequest(topics, validate_only=True)
    response = await ask(ApiKey.CREATE_TOPICS, 7, request, HALF, CATALOG)
    assert [(each.name, each.error_code) for each in response.topics] == [
        ("may-2", 42),
        ("not-3", 29),
    ]


async def test_the_topic_of_the_clusters_metadata_cannot_be_created() -> None:
    topics = [create_topics.CreatableTopic("__cluster_metadata", 1, 1)]
    request = create_topics.CreateTopicsRequest(topics, validate_only=True)
    for rights in (everything, nothing):
        response = await ask(ApiKey.CREATE_TOPICS, 7, request, rights, CATALOG)
        assert [each.error_code for each in response.topics] == [42]


@pytest.mark.parametrize(("version", "standalone"), [(1, 44), (5, 73)])
async def test_a_name_that_is_deleted_twice_has_one_entry(version: int, standalone: int) -> None:
    request = delete_topics.DeleteTopicsRequest(topic_names=["not-1", "may-1", "not-1"])
    response = await ask(ApiKey.DELETE_TOPICS, version, request, HALF, CATALOG)
    assert [(each.name, each.error_code) for each in response.responses] == [
        ("not-1", 42),
        ("may-1", standalone),
    ]


async def test_a_group_that_is_deleted_twice_has_one_entry() -> None:
    request = delete_groups.DeleteGroupsRequest(["group", "other", "group"])
    response = await ask(ApiKey.DELETE_GROUPS, 2, request, nothing, CATALOG)
    assert [(each.group_id, each.error_code) for each in response.results] == [
        ("group", 30),
        ("other", 30),
    ]


def deletions(*topics: tuple[str | None, bytes]) -> delete_topics.DeleteTopicsRequest:
    return delete_topics.DeleteTopicsRequest(
        [delete_topics.DeleteTopicState(*each) for each in topics]
    )


async def test_by_id_the_right_to_delete_is_enough() -> None:
    delete_alone = allowing({(DELETE, TOPIC): {"not-1"}})
    by_id = deletions((None, CATALOG.id_of("not-1")))
    response = await ask(ApiKey.DELETE_TOPICS, 6, by_id, delete_alone, CATALOG)
    assert [each.error_code for each in response.responses] == [73]  # standalone: it would be
    by_name = deletions(("not-1", ZERO_UUID))
    response = await ask(ApiKey.DELETE_TOPICS, 6, by_name, delete_alone, CATALOG)
    assert [each.error_code for each in response.responses] == [29]


async def test_who_may_describe_a_topic_is_told_its_name_and_its_absence() -> None:
    describe_alone = allowing({(DESCRIBE, TOPIC): {"not-1", "absent"}})
    topic_id = CATALOG.id_of("not-1")
    request = deletions(
        (None, topic_id),
        ("not-1", ZERO_UUID),
        ("absent", ZERO_UUID),
        ("hidden", ZERO_UUID),
        (None, UNKNOWN_ID),
        (None, ZERO_UUID),
        ("not-1", topic_id),
    )
    response = await ask(ApiKey.DELETE_TOPICS, 6, request, describe_alone, CATALOG)
    assert [(each.name, each.error_code) for each in response.responses] == [
        ("not-1", 29),
        ("not-1", 29),
        ("absent", 3),
        ("hidden", 29),
        (None, 100),
        (None, 42),
        ("not-1", 42),
    ]


async def test_that_a_topic_is_said_to_exist_or_not_deletes_nothing() -> None:
    describe_alone = allowing({(DESCRIBE, TOPIC): {"may-1"}})
    for catalog, code in ((CATALOG, 29), (Catalog(), 3)):
        request = deletions(("may-1", ZERO_UUID))
        response = await ask(ApiKey.DELETE_TOPICS, 6, request, describe_alone, catalog)
        assert [each.error_code for each in response.responses] == [code]


async def test_by_the_documentation_only_the_right_to_delete_counts() -> None:
    request = deletions(("absent", ZERO_UUID), ("may-1", ZERO_UUID))
    delete = allowing({(DELETE, TOPIC): {"may-1"}})
    response = await ask(
        ApiKey.DELETE_TOPICS, 6, request, delete, CATALOG, profile=Profile.DOCUMENTED
    )
    assert [each.error_code for each in response.responses] == [29, 73]


async def test_partitions_that_do_not_exist_are_told_beside_refused_ones() -> None:
    def added(*topics: tuple[str, list[int]]) -> add_partitions_to_txn.AddPartitionsToTxnRequest:
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="may-t",
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(*each) for each in topics
            ],
        )

    async def codes(request: Any) -> list[list[int]]:
        response = await ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, HALF, CATALOG)
        return [
            [each.partition_error_code for each in topic.results_by_partition]
            for topic in response.results_by_topic_v3_and_below
        ]

    mixed = added(("may-1", [0, 5]), ("may-absent", [0]), ("not-1", [0]))
    assert await codes(mixed) == [[55, 3], [3], [29]]
    assert await codes(added(("may-1", [0]), ("__consumer_offsets", [0]))) == [[55], [29]]
    assert await codes(added(("may-1", [0, 5]))) == [[55, 3]]
    assert await codes(added(("may-1", [0, 1]))) == [[15, 15]]


@pytest.mark.parametrize(
    "member", ["", "m" * 37, "\U0001d11e" * 19], ids=["empty", "long", "pairs"]
)
@pytest.mark.parametrize(
    "key", [ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE]
)
async def test_a_share_groups_member_id_is_looked_at_after_the_group_and_before_topics(
    key: int, member: str
) -> None:
    request = filled(key, ["group"])
    request.member_id = member
    refused = await ask(key, APIS[key].versions[-1], request, nothing, CATALOG)
    assert refused.error_code == 30
    group_alone = allowing({(READ, GROUP): {"group"}})
    response = await ask(key, APIS[key].versions[-1], request, group_alone, CATALOG)
    assert response.error_code == 42
    assert not getattr(response, "responses", ())


async def test_a_member_id_of_36_characters_is_valid() -> None:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest("group", "\U0001d11e" * 18)
    response = await ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request, everything, CATALOG)
    assert response.error_code == 15


async def test_a_share_request_without_a_group_is_invalid_before_anything_else() -> None:
    request = share_fetch.ShareFetchRequest(None, "m")
    response = await ask(ApiKey.SHARE_FETCH, 1, request, nothing, CATALOG)
    assert response.error_code == 42


async def test_refused_reassignments_repeat_the_topics_that_were_asked_for() -> None:
    topic = list_partition_reassignments.ListPartitionReassignmentsTopics("may-1", [0, 1])
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(1000, [topic])
    response = await ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request, nothing, CATALOG)
    assert response.error_code == 31
    assert [
        (each.name, [partition.partition_index for partition in each.partitions])
        for each in response.topics
    ] == [("may-1", [0, 1])]


def descriptions(
    *names: str, cursor: tuple[str, int] | None = None
) -> describe_topic_partitions.DescribeTopicPartitionsRequest:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        [describe_topic_partitions.TopicRequest(name) for name in names],
        cursor=None if cursor is None else describe_topic_partitions.Cursor(*cursor),
    )


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (descriptions("may-1", "not-1", cursor=("not-1", 0)), [("not-1", 29)]),
        (descriptions("may-1", "not-1", cursor=("may-1", 0)), [("may-1", 0), ("not-1", 29)]),
        (descriptions("may-1", "not-1", cursor=("may-2", 0)), [("may-1", 42), ("not-1", 42)]),
        (descriptions("may-1", cursor=("may-1", -1)), [("may-1", 42)]),
        (descriptions(cursor=("may-0", 0)), [("may-1", 0)]),
        (descriptions(cursor=("may-2", 0)), []),
        (descriptions(cursor=("may-1", -1)), []),
    ],
)
async def test_topics_are_described_from_the_cursor_on(
    request_: Any, expected: list[tuple[str, int]]
) -> None:
    response = await ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request_, HALF, CATALOG)
    assert [(each.name, each.error_code) for each in response.topics] == expected


async def test_partitions_before_the_cursors_are_left_out() -> None:
    request = descriptions("may-1", cursor=("may-1", 1))
    response = await ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request, HALF, CATALOG)
    assert [each.partition_index for each in response.topics[0].partitions] == [1]


@pytest.mark.parametrize(
    ("records", "transactional_id", "code"),
    [
        (batch(0x10, 7), None, 53),
        (batch(0x10, 7), "not-t", 53),
        (batch(0, 7), "not-t", 44),
        (batch(0, 7)[:16] + b"\1" + bytes(60), "not-t", 44),
        (batch(0, 7)[:8] + bytes(4) + batch(0, 7)[12:] + batch(0x10, 7), None, 44),
    ],
    ids=["no id", "refused id", "the id alone", "an old format", "behind a bad length"],
)
async def test_a_transactional_batch_decides_and_not_the_id(
    records: bytes, transactional_id: str | None, code: int
) -> None:
    response = await ask(ApiKey.PRODUCE, 9, produced(records, transactional_id), HALF, CATALOG)
    assert response.responses[0].partition_responses[0].error_code == code


async def test_metadata_by_a_null_name_is_malformed() -> None:
    by_id = metadata.MetadataRequestTopic(CATALOG.id_of("may-1"), None)
    neither = metadata.MetadataRequestTopic(ZERO_UUID, None)
    request = metadata.MetadataRequest([neither])
    response = await ask(ApiKey.METADATA, 12, request, everything, CATALOG)
    assert {each.error_code for each in response.topics} == {42}
    beside_an_id = metadata.MetadataRequest([by_id, neither])
    response = await ask(ApiKey.METADATA, 12, beside_an_id, everything, CATALOG)
    assert [(each.name, each.error_code) for each in response.topics] == [("may-1", 0)]
    early = metadata.MetadataRequest([by_id])
    response = await ask(ApiKey.METADATA, 10, early, everything, CATALOG)
    assert {each.error_code for each in response.topics} == {42}


async def test_a_sync_that_names_no_protocol_is_inconsistent_from_version_5_on() -> None:
    request = sync_group.SyncGroupRequest("group", 1, "m", None)
    for version, code in ((4, 15), (5, 23)):
        response = await ask(ApiKey.SYNC_GROUP, version, request, everything, CATALOG)
        assert response.error_code == code


async def test_a_fetch_session_that_is_not_kept_is_not_found() -> None:
    request = fetch.FetchRequest(session_id=7, session_epoch=1)
    response = await ask(ApiKey.FETCH, 12, request, nothing, CATALOG)
    assert (response.error_code, response.responses) == (70, [])


@pytest.mark.parametrize(
    ("topics", "code"),
    [(["may-1"], 15), (["not-1"], 29), (["__consumer_offsets"], 130), (["a b"], 130)],
)
async def test_a_topology_names_topics_that_may_be_described(topics: list[str], code: int) -> None:
    part = streams_group_heartbeat.Subtopology("1", topics)
    request = streams_group_heartbeat.StreamsGroupHeartbeatRequest(
        "may-g", "m", topology=streams_group_heartbeat.Topology(1, [part])
    )
    response = await ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request, HALF, CATALOG)
    assert response.error_code == code


async def test_a_consumer_that_waits_for_topics_it_may_not_read_is_told_which() -> None:
    topic = offset_commit.OffsetCommitRequestTopic
    partition = offset_commit.OffsetCommitRequestPartition(0, 1)
    request = offset_commit.OffsetCommitRequest(
        "may-g",
        topics=[topic("not-1", ZERO_UUID, [partition]), topic("may-1", ZERO_UUID, [partition])],
    )
    response = await ask(ApiKey.OFFSET_COMMIT, 9, request, HALF, CATALOG)
    assert [(each.name, each.partitions[0].error_code) for each in response.topics] == [
        ("not-1", 29),
        ("may-1", 15),
    ]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
async def test_tokens_are_for_sessions_that_have_authenticated(protocol: str) -> None:
    anonymous = Session(("User:ANONYMOUS",), "127.0.0.1", "SASL_PLAINTEXT", protocol)
    request = filled(ApiKey.CREATE_DELEGATION_TOKEN, ["User"])
    response = await ask(
        ApiKey.CREATE_DELEGATION_TOKEN, 3, request, everything, CATALOG, session=anonymous
    )
    assert response.error_code == 64


async def test_an_answer_that_says_at_the_top_why_it_is_empty_stays_empty() -> None:
    request = filled(ApiKey.OFFSET_DELETE, ["may-1", "not-1"])
    request.group_id = "may-absent"
    response = await ask(ApiKey.OFFSET_DELETE, 0, request, HALF, CATALOG)
    assert (response.error_code, response.topics) == (69, [])


async def test_a_group_that_is_in_error_tells_nothing_of_its_topics() -> None:
    request = filled(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ["not-1"])
    request.groups[0].group_id = ""
    group_alone = allowing({(DESCRIBE, GROUP): {""}})
    response = await ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, request, group_alone, CATALOG)
    [group] = response.groups
    assert (group.error_code, group.topics) == (24, [])


def test_what_was_not_asked_for_is_not_in_an_answer_that_somebody_else_made() -> None:
    request = filled(ApiKey.OFFSET_FETCH, ["may-1"])
    rights = services(HALF, CATALOG, AUDIT).rights(
        GATE[ApiKey.OFFSET_FETCH], context(ApiKey.OFFSET_FETCH, 9)
    )
    verdict = check(request, rights, CATALOG)
    answer = filled_class(APIS[ApiKey.OFFSET_FETCH].response, ["may-1", "not-1"])
    [group] = verdict.complete(answer).groups
    assert group.group_id == "may-1"
    assert [topic.name for topic in group.topics] == ["may-1"]


async def test_what_is_no_topics_name_has_no_producers() -> None:
    topics = [describe_producers.TopicRequest(name, [0]) for name in ("a b", "not-1")]
    request = describe_producers.DescribeProducersRequest(topics)
    response = await ask(ApiKey.DESCRIBE_PRODUCERS, 0, request, nothing, CATALOG)
    assert [each.partitions[0].error_code for each in response.topics] == [17, 29]


def test_a_group_that_was_not_answered_is_not_made_up() -> None:
    request = filled(ApiKey.OFFSET_FETCH, ["may-1"])
    rights = services(HALF, CATALOG, AUDIT).rights(
        GATE[ApiKey.OFFSET_FETCH], context(ApiKey.OFFSET_FETCH, 9)
    )
    answer = offset_fetch.OffsetFetchResponse()
    assert check(request, rights, CATALOG).complete(answer).groups == []


async def test_by_the_documentation_who_may_describe_a_topic_is_told_its_name() -> None:
    by_id = deletions((None, CATALOG.id_of("not-1")))
    for rights, name in ((nothing, None), (allowing({(DESCRIBE, TOPIC): {"not-1"}}), "not-1")):
        response = await ask(
            ApiKey.DELETE_TOPICS, 6, by_id, rights, CATALOG, profile=Profile.DOCUMENTED
        )
        assert [(each.name, each.error_code) for each in response.responses] == [(name, 29)]


async def test_a_fetch_that_ends_a_session_is_answered_as_a_full_one() -> None:
    for epoch, code in ((0, 0), (-1, 0), (5, 70)):
        request = fetch.FetchRequest(session_id=7, session_epoch=epoch)
        response = await ask(ApiKey.FETCH, 12, request, nothing, CATALOG)
        assert response.error_code == code


@pytest.mark.parametrize(
    ("version", "types", "code", "listed"),
    [(1, [2, 2], 0, 3), (1, [99], 35, 0), (1, [], 0, 6), (0, [], 0, 0)],
)
async def test_configurations_of_a_type_are_listed_once(
    version: int, types: list[int], code: int, listed: int
) -> None:
    request = list_config_resources.ListConfigResourcesRequest(types)
    response = await ask(ApiKey.LIST_CONFIG_RESOURCES, version, request, everything, CATALOG)
    assert (response.error_code, len(response.config_resources)) == (code, listed)


async def test_an_owner_without_a_type_gets_no_token() -> None:
    request = filled(ApiKey.CREATE_DELEGATION_TOKEN, ["alice"])
    request.owner_principal_type = None
    response = await ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request, everything, CATALOG)
    assert response.error_code == 67


def recorded(key: int, version: int, request: Any, rights: Rights) -> list[Any]:
    """Return what is recorded: operation, name, count, allowed, whether a denial is logged."""
    notes = []

    class Notes:
        def wanted(self, *, log_if_denied: bool) -> tuple[bool, bool]:
            return False, True

        def position(self) -> None:
            return None

        def record(
            self,
            context: Any,
            operation: AclOperation,
            resource_type: ResourceType,
            decided: Any,
            *,
            log_if_denied: bool = True,
            acls: Position | None = None,
        ) -> None:
            for name, count, decision in decided:
                notes.append((operation.name, name, count, decision.allowed, log_if_denied))

    parts = services(rights, CATALOG, AUDIT)
    row = GATE[key]
    asked = RequestRights(row, context(key, version), parts.authorizer, Notes(), Profile.KAFKA)
    verdict = check(request, asked, CATALOG)
    if verdict.request is not None:
        verdict.complete(filled_class(APIS[key].response, ["may-1"]))
    return notes


def test_each_right_of_a_request_is_recorded_once() -> None:
    request = filled(ApiKey.LIST_GROUPS, ["g"])
    assert recorded(ApiKey.LIST_GROUPS, 5, request, HALF) == [
        ("DESCRIBE", "kafka-cluster", 1, False, False),
        ("DESCRIBE", "may-1", 1, True, False),
    ]
    found = recorded(ApiKey.DELETE_TOPICS, 5, filled(ApiKey.DELETE_TOPICS, ["may-1"]), HALF)
    assert [each[:2] for each in found] == [
        ("DELETE", "kafka-cluster"),
        ("DESCRIBE", "may-1"),
        ("DELETE", "may-1"),
    ]


def test_an_idempotent_producer_that_is_allowed_leaves_no_denial() -> None:
    request = init_producer_id.InitProducerIdRequest(None)

    def cluster_alone(operation: AclOperation, kind: ResourceType, _name: str | None) -> bool:
        return kind is ResourceType.CLUSTER

    found = recorded(ApiKey.INIT_PRODUCER_ID, 5, request, cluster_alone)
    assert found == [("IDEMPOTENT_WRITE", "kafka-cluster", 1, True, False)]
    refused = recorded(ApiKey.INIT_PRODUCER_ID, 5, request, nothing)
    assert refused == [
        ("IDEMPOTENT_WRITE", "kafka-cluster", 1, False, False),
        ("WRITE", "(any)", 1, False, True),
    ]


def test_partitions_are_counted_where_kafka_asks_for_each() -> None:
    partitions = [produce.PartitionProduceData(index, b"") for index in range(3)]
    topic = produce.TopicProduceData("may-1", ZERO_UUID, partitions)
    request = produce.ProduceRequest(None, 1, 0, [topic])
    assert recorded(ApiKey.PRODUCE, 9, request, HALF) == [("WRITE", "may-1", 3, True, True)]


def test_nobody_is_asked_about_a_null_name() -> None:
    assert recorded(ApiKey.PRODUCE, 9, produced(batch(0x10, 7)), everything) == []


async def test_who_may_write_any_topic_may_have_a_producer_id() -> None:
    def writer(operation: AclOperation, kind: ResourceType, _name: str | None) -> bool:
        return (operation, kind) == (WRITE, TOPIC)

    request = init_producer_id.InitProducerIdRequest(None)
    for rights, code in ((writer, 0), (nothing, 31)):
        response = await ask(ApiKey.INIT_PRODUCER_ID, 5, request, rights, CATALOG)
        assert response.error_code == code
