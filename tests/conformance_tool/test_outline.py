"""What is kept of an answer."""

import pytest

from aclbroker.conformance.outline import ANSWERED, outline
from aclbroker.conformance.resources import TopicIds, group, made_up_id, topic
from aclbroker.conformance.told import names_asked
from aclbroker.protocol.messages import (
    ApiKey,
    create_acls,
    delete_topics,
    describe_cluster,
    describe_configs,
    fetch,
    list_groups,
    list_partition_reassignments,
    metadata,
    offset_fetch,
    produce,
    write_txn_markers,
)
from aclbroker.protocol.primitives import ZERO_UUID

READ, CLOSED = topic("read"), topic("closed")
IDS = TopicIds({READ: b"r" * 16})


def metadata_of(*topics: metadata.MetadataResponseTopic, version: int = 12):
    answer = metadata.MetadataResponse(topics=topics)
    return outline(ApiKey.METADATA, version, answer, IDS)


def test_a_code_stands_at_a_path_of_names_and_not_of_positions():
    partition = metadata.MetadataResponsePartition(error_code=5, partition_index=3)
    made = metadata_of(
        metadata.MetadataResponseTopic(29, CLOSED),
        metadata.MetadataResponseTopic(0, READ, partitions=[partition]),
    )
    assert made.outcome == ANSWERED
    assert made.codes == {
        f"topics[{CLOSED}].error_code": 29,
        f"topics[{READ}].error_code": 0,
        f"topics[{READ}].partitions[3].error_code": 5,
    }


def test_a_topic_id_is_shown_as_the_topics_name():
    made = metadata_of(
        metadata.MetadataResponseTopic(0, READ, b"r" * 16),
        metadata.MetadataResponseTopic(100, None, made_up_id(CLOSED)),
        metadata.MetadataResponseTopic(100, None, b"x" * 16),
    )
    assert list(made.codes) == [
        f"topics[{READ}#{READ}].error_code",
        f"topics[#{CLOSED}].error_code",
        "topics[#?].error_code",
    ]


def test_an_id_that_the_version_does_not_have_is_not_shown():
    made = metadata_of(metadata.MetadataResponseTopic(0, READ, b"r" * 16), version=9)
    assert list(made.codes) == [f"topics[{READ}].error_code"]


def test_a_code_that_the_version_does_not_have_is_left_out():
    answer = fetch.FetchResponse(error_code=70)
    assert outline(ApiKey.FETCH, 6, answer, IDS).codes == {}
    assert outline(ApiKey.FETCH, 7, answer, IDS).codes == {"error_code": 70}


def test_entries_without_a_name_are_told_apart_by_position():
    answer = create_acls.CreateAclsResponse(
        results=[create_acls.AclCreationResult(0), create_acls.AclCreationResult(42)]
    )
    made = outline(ApiKey.CREATE_ACLS, 3, answer, IDS)
    assert made.codes == {"results[(0)].error_code": 0, "results[(1)].error_code": 42}


def test_entries_of_one_name_are_told_apart():
    made = metadata_of(*[metadata.MetadataResponseTopic(code, READ) for code in (0, 29)])
    assert made.codes == {
        f"topics[{READ}].error_code": 0,
        f"topics[{READ} again 2].error_code": 29,
    }


def test_resources_of_one_name_and_several_types_are_told_apart():
    results = [
        describe_configs.DescribeConfigsResult(29, "", 2, "x"),
        describe_configs.DescribeConfigsResult(30, "", 32, "x"),
    ]
    answer = describe_configs.DescribeConfigsResponse(results=results)
    made = outline(ApiKey.DESCRIBE_CONFIGS, 4, answer, IDS)
    assert made.codes == {"results[2:x].error_code": 29, "results[32:x].error_code": 30}


def test_a_code_inside_three_lists_is_found():
    partition = write_txn_markers.WritableTxnMarkerPartitionResult(0, 31)
    marker = write_txn_markers.WritableTxnMarkerResult(
        7, [write_txn_markers.WritableTxnMarkerTopicResult(READ, [partition])]
    )
    answer = write_txn_markers.WriteTxnMarkersResponse([marker])
    made = outline(ApiKey.WRITE_TXN_MARKERS, 1, answer, IDS)
    assert made.codes == {f"markers[7].topics[{READ}].partitions[0].error_code": 31}


def test_authorized_operations_are_kept_if_they_are_told():
    told = describe_cluster.DescribeClusterResponse(cluster_authorized_operations=0x100)
    not_told = describe_cluster.DescribeClusterResponse(cluster_authorized_operations=-(2**31))
    made = [outline(ApiKey.DESCRIBE_CLUSTER, 0, answer, IDS) for answer in (told, not_told)]
    assert made[0].operations == {"cluster_authorized_operations": 0x100}
    assert made[1].operations == {}


def test_of_a_filtered_list_the_names_of_the_suite_are_kept():
    names = ("b", group("read"), group("closed"), "conformance-created-topic-all")
    answer = list_groups.ListGroupsResponse(groups=[list_groups.ListedGroup(n) for n in names])
    made = outline(ApiKey.LIST_GROUPS, 4, answer, IDS)
    assert made.names == {"groups": [group("closed"), group("read")]}


def test_a_listed_topic_without_a_name_is_known_by_its_id():
    made = metadata_of(metadata.MetadataResponseTopic(0, None, b"r" * 16))
    assert made.names == {"topics": [READ]}
    assert metadata_of(metadata.MetadataResponseTopic(0, None, ZERO_UUID)).names == {"topics": []}


def test_fields_beside_a_refusal_and_inside_of_it_are_kept():
    partition = offset_fetch.OffsetFetchResponsePartition(0, -1, -1, "", 30)
    allowed = offset_fetch.OffsetFetchResponsePartition(1, 7, 3, "mine", 0)
    topic_ = offset_fetch.OffsetFetchResponseTopic(READ, [partition, allowed])
    made = outline(ApiKey.OFFSET_FETCH, 5, offset_fetch.OffsetFetchResponse(topics=[topic_]), IDS)
    path = f"topics[{READ}].partitions[0]"
    assert made.fields == {
        f"{path}.committed_offset": -1,
        f"{path}.committed_leader_epoch": -1,
        f"{path}.metadata": "",
    }


def test_what_a_refusal_repeats_of_its_request_is_kept():
    m = list_partition_reassignments
    topic_ = m.OngoingTopicReassignment(READ, [m.OngoingPartitionReassignment(3, replicas=())])
    answer = m.ListPartitionReassignmentsResponse(error_code=31, topics=[topic_])
    made = outline(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, answer, IDS)
    assert made.fields[f"topics[{READ}].partitions[3].replicas"] == []


def test_fields_beside_a_code_that_the_case_names_are_kept():
    topic_ = metadata.MetadataResponseTopic(42, READ, b"x" * 16)
    answer = metadata.MetadataResponse(topics=[topic_])
    assert outline(ApiKey.METADATA, 12, answer, IDS).fields == {}
    made = outline(ApiKey.METADATA, 12, answer, IDS, codes=[42])
    assert made.fields == {f"topics[{READ}#?].is_internal": False}
    assert made.named == [42]


def test_an_id_that_is_zero_and_alone_is_shown_so():
    made = metadata_of(metadata.MetadataResponseTopic(100, None, ZERO_UUID))
    assert list(made.codes) == ["topics[#zero].error_code"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"Not allowed to read {READ} and {CLOSED}.", [READ]),
        (f"{READ}-0 has moved", [READ]),
        (f"{topic('prefixed-denied')}", [topic("prefixed-denied")]),
        (f"{CLOSED} and conformance-whatever", None),
        ("Topic authorization failed.", None),
        (None, None),
    ],
)
def test_names_in_a_message_that_the_request_does_not_have_are_kept(text: str, told: list[str]):
    result = delete_topics.DeletableTopicResult(None, b"r" * 16, 29, text)
    answer = delete_topics.DeleteTopicsResponse(responses=[result])
    made = outline(ApiKey.DELETE_TOPICS, 6, answer, IDS, asked={CLOSED})
    assert made.told == ({f"responses[#{READ}].error_message": told} if told else {})


def test_a_request_has_the_names_that_its_version_sends():
    named = produce.TopicProduceData(READ, b"r" * 16, [])
    request = produce.ProduceRequest(topic_data=[named], acks=1, timeout_ms=1)
    assert names_asked(ApiKey.PRODUCE, 12, request) == {READ}
    assert names_asked(ApiKey.PRODUCE, 13, request) == set()
