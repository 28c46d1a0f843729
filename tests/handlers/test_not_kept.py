"""What a broker without data cannot keep: the code that is true of it, before POLICY_VIOLATION."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_partitions import CreatePartitionsTopic
from aclbroker.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from aclbroker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestTopic,
)
from aclbroker.protocol.messages.delete_topics import DeleteTopicState
from aclbroker.protocol.messages.incremental_alter_configs import AlterConfigsResource
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client

TOPIC = 2


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    broker = ThreadBroker(
        tmp_path_factory.mktemp("broker"), {"aclbroker.catalog.topics": "orders:3"}
    )
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        yield client
    broker.terminate()


def asked(client: Client, key: ApiKey, version: int, **fields: Any) -> Any:
    return client.ask(key, version, APIS[key].request(**fields))


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.POLICY_VIOLATION), (5, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_topics_are_not_deleted_which_has_a_code_since_version_3(
    client: Client, version: int, code: ErrorCode
):
    names = ["orders", "absent"]
    answer = asked(client, ApiKey.DELETE_TOPICS, version, topic_names=names, timeout_ms=1)
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(each.name, each.error_code) for each in answer.responses] == [
        ("orders", code), ("absent", absent)
    ]  # fmt: skip


def test_the_message_says_what_holds_and_names_settings_that_exist(client: Client):
    topics = [DeleteTopicState("orders")]
    [topic] = asked(client, ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=1).responses
    assert topic.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert "aclbroker.catalog.topics" in topic.error_message


@pytest.mark.parametrize("topics", [[], ["orders"], ["absent"], ["orders", "absent"]])
def test_a_share_group_that_is_not_there_is_not_found_whatever_topics_are_named(
    client: Client, topics: list[str]
):
    # A real Kafka 4.3.0 answers the same.
    named = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
    key = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    answer = asked(client, key, 0, group_id="absent", topics=named)
    assert (answer.error_code, answer.responses) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    answer = asked(client, key, 0, group_id="", topics=named)
    assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_GROUP_ID, [])


def test_a_share_group_that_is_not_there_is_not_found_without_rights_on_its_topics(
    tmp_path: Path,
):
    broker = ThreadBroker(tmp_path, {"aclbroker.catalog.topics": "orders:3"})
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        assert admin.create(AclCreation(3, "absent", 3, "User:alice", "*", 6, 3)) == [0]
    with Client(broker.listeners["SASL_PLAINTEXT"]) as alice:
        alice.login("alice", "alice-secret")
        named = [DeleteShareGroupOffsetsRequestTopic(name) for name in ("orders", "absent")]
        key = ApiKey.DELETE_SHARE_GROUP_OFFSETS
        answer = asked(alice, key, 0, group_id="absent", topics=named)
        assert (answer.error_code, answer.responses) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    broker.terminate()


def test_a_group_that_is_not_there_is_named_in_the_message(client: Client):
    [group] = asked(client, ApiKey.DESCRIBE_GROUPS, 6, groups=["absent"]).groups
    assert (group.error_code, group.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group absent not found."
    )  # fmt: skip


def test_an_empty_partition_has_no_records_to_delete(client: Client):
    partitions = [DeleteRecordsPartition(0, 0), DeleteRecordsPartition(1, -1),
                  DeleteRecordsPartition(2, 7), DeleteRecordsPartition(3, 0)]  # fmt: skip
    topics = [DeleteRecordsTopic("orders", partitions)]
    [topic] = asked(client, ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=1).topics
    found = [(each.error_code, each.low_watermark) for each in topic.partitions]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [(0, 0), (0, 0), (ErrorCode.OFFSET_OUT_OF_RANGE, -1), (missing, -1)]


@pytest.mark.parametrize(
    ("validate_only", "last"), [(False, ErrorCode.POLICY_VIOLATION), (True, ErrorCode.NONE)]
)
def test_partitions_become_neither_fewer_nor_more(
    client: Client, validate_only: bool, last: ErrorCode
):
    def code(name: str, count: int) -> int:
        topics = [CreatePartitionsTopic(name, count, None)]
        fields = {"topics": topics, "timeout_ms": 1, "validate_only": validate_only}
        [topic] = asked(client, ApiKey.CREATE_PARTITIONS, 3, **fields).results
        found: int = topic.error_code
        return found

    assert code("absent", 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [code("orders", count) for count in (2, 3)] == [ErrorCode.INVALID_PARTITIONS] * 2
    assert code("orders", 4) == last


def test_the_settings_of_a_topic_that_is_not_there_are_not_there(client: Client):
    resources = [AlterConfigsResource(TOPIC, name, []) for name in ("orders", "absent")]
    fields = {"resources": resources, "validate_only": False}
    answer = asked(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **fields)
    codes = [each.error_code for each in answer.responses]
    assert codes == [ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
