"""Requests that cost a broker far more than their size: well formed, repetitive, as long as may be.

Each is what one client may send, and `benchmarks.intruder` sends it over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from aclbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.servers import TOPIC
from tests.support.client import ALL_ACLS, request_frame

MEGABYTE: Final = 1 << 20
MANY: Final = 99_000
"""Entries of a request: about as many as aclbroker answers; Kafka takes any number."""


class Unkind(NamedTuple):
    """A request: what it is, its frame, who sends it ("" for nobody), on how many connections.

    ``reads`` is False if the answers stay unread.
    """

    title: str
    frame: Callable[[], bytes]
    user: str = "alice"
    connections: int = 1
    reads: bool = True


def _tags() -> bytes:
    message: Any = ApiVersionsRequest()
    message.unknown_tags = tuple((number, b"") for number in range(150_000))
    return request_frame(ApiKey.API_VERSIONS, 3, message)


def _frame(key: ApiKey, version: int, request: Any) -> bytes:
    return request_frame(key, version, request)


def _list_offsets() -> bytes:
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, 0, 0)])] * (MANY // 2)
    return _frame(ApiKey.LIST_OFFSETS, 6, ListOffsetsRequest(topics=topics))


def _configs() -> bytes:
    resources = [DescribeConfigsResource(4, "1")] * MANY
    return _frame(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))


def _partitions() -> bytes:
    topics = [TopicRequest(TOPIC)] * 3000
    return _frame(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest(topics))


def _metadata() -> bytes:
    topics = [MetadataRequestTopic(name=f"t{number}") for number in range(MANY)]
    return _frame(ApiKey.METADATA, 9, MetadataRequest(topics, False))


UNKIND: Final[Mapping[str, Unkind]] = {
    "tags": Unkind(
        "strangers on 8 connections send ApiVersions with 150,000 tagged fields", _tags, "", 8
    ),
    "delete-topics": Unkind(
        f"a user without rights sends DeleteTopics of {MANY:,} empty names",
        lambda: _frame(ApiKey.DELETE_TOPICS, 4, DeleteTopicsRequest(topic_names=[""] * MANY)),
    ),
    "describe-groups": Unkind(
        f"a user without rights sends DescribeGroups of {MANY:,} empty names",
        lambda: _frame(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest([""] * MANY)),
    ),
    "coordinators": Unkind(
        f"a user without rights sends FindCoordinator of {MANY:,} names",
        lambda: _frame(
            ApiKey.FIND_COORDINATOR,
            4,
            FindCoordinatorRequest(coordinator_keys=[f"g{n}" for n in range(MANY)]),
        ),
    ),
    "list-offsets": Unkind(
        "a user without rights sends ListOffsets of 50,000 topics", _list_offsets
    ),
    "configs": Unkind(f"a user without rights sends DescribeConfigs of {MANY:,} brokers", _configs),
    "metadata": Unkind(f"a user without rights sends Metadata of {MANY:,} topics", _metadata),
    "partitions": Unkind(
        "a user names a topic 3,000 times in DescribeTopicPartitions", _partitions
    ),
    "resources": Unkind(
        "an admin sends ListConfigResources of 50,000 repeated types",
        lambda: _frame(
            ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([2, 4] * 25_000)
        ),
        "admin",
    ),
    "unread": Unkind(
        "an admin asks 150 times for all ACLs and reads no answer",
        lambda: _frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS),
        "admin",
        150,
        reads=False,
    ),
}
"""What may be sent, by a short name."""
