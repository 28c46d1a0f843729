"""What is kept of an answer."""

from aclbroker.broker.conformance.outline import ANSWERED, outline
from aclbroker.broker.conformance.resources import TopicIds, group, made_up_id, topic
from aclbroker.protocol.messages import (
    ApiKey,
    create_acls,
    describe_cluster,
    describe_configs,
    fetch,
    list_groups,
    metadata,
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
