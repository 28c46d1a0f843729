"""Requests that cost a broker far more than their size: well formed, repetitive, as long as may be.

Each is what one client may send, and `benchmarks.intruder` sends it over and over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
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
from aclbroker.protocol.primitives import UnsignedVarint
from tests.support.client import ALL_ACLS, request_frame

WIDE_TOPIC: Final = "wide"
WIDE_PARTITIONS: Final = 1_000
"""The topic that is named over and over, and how many partitions it has."""

MANY: Final = 99_000
"""Entries of a request: about as many as aclbroker answers; Kafka takes any number."""

MEGABYTE: Final = 1_000_000
TAGS: Final = 261_000
"""Empty tagged fields of two bytes: as many as fit into the largest request before login."""

_TAG: Final = b"\x7f\x00"
"""A tagged field, of number 127, without a value."""

_TOPIC_TYPE, _BROKER_TYPE = 2, 4
"""Types of resources in requests of configurations."""


class Unkind(NamedTuple):
    """A request: what it is, its frame, who sends it ("" for nobody), on how many connections.

    ``frame`` makes it with so many entries; it has ``entries`` of them unless one wants fewer.
    ``reads`` is False if the answers stay unread. ``once`` is True if the request is sent only
    once. ``answered`` tells whether aclbroker answers it; else it closes the connection.
    """

    title: str
    frame: Callable[[int], bytes]
    entries: int = MANY
    user: str = "alice"
    connections: int = 1
    reads: bool = True
    once: bool = False
    answered: bool = True


def _tags(entries: int) -> bytes:
    """Return an ApiVersions request, whose last byte counts its tagged fields: none."""
    bare = request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("n", "1"))[4:-1]
    request = bare + UnsignedVarint.encode(entries) + _TAG * entries
    return len(request).to_bytes(4) + request


def _frame(key: ApiKey, version: int, request: Any) -> bytes:
    return request_frame(key, version, request)


def _names(entries: int, characters: int) -> list[str]:
    """Return names that differ at their beginning, each as long as that."""
    return [str(number).ljust(characters, "x") for number in range(entries)]


def _delete_topics(characters: int, entries: int) -> bytes:
    request = DeleteTopicsRequest(topic_names=_names(entries, characters))
    return _frame(ApiKey.DELETE_TOPICS, 4, request)


def _describe_groups(characters: int, entries: int) -> bytes:
    request = DescribeGroupsRequest(_names(entries, characters))
    return _frame(ApiKey.DESCRIBE_GROUPS, 5, request)


def _coordinators(characters: int, entries: int) -> bytes:
    request = FindCoordinatorRequest(coordinator_keys=_names(entries, characters))
    return _frame(ApiKey.FIND_COORDINATOR, 4, request)


def _list_offsets(characters: int, entries: int) -> bytes:
    partitions = [ListOffsetsPartition(0, 0, 0)]
    # A topic and its partition are two entries.
    topics = [ListOffsetsTopic(name, partitions) for name in _names(entries // 2, characters)]
    return _frame(ApiKey.LIST_OFFSETS, 6, ListOffsetsRequest(topics=topics))


def _configs(characters: int, entries: int) -> bytes:
    names = _names(entries, characters)
    resources = [DescribeConfigsResource(_TOPIC_TYPE, name) for name in names]
    return _frame(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))


def _metadata(characters: int, entries: int) -> bytes:
    topics = [MetadataRequestTopic(name=name) for name in _names(entries, characters)]
    return _frame(ApiKey.METADATA, 9, MetadataRequest(topics, False))


def _broker_configs(entries: int) -> bytes:
    resources = [DescribeConfigsResource(_BROKER_TYPE, "1")] * entries
    return _frame(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))


def _empty_names(entries: int) -> bytes:
    request = DeleteTopicsRequest(topic_names=[""] * entries)
    return _frame(ApiKey.DELETE_TOPICS, 4, request)


def _partitions(entries: int) -> bytes:
    request = DescribeTopicPartitionsRequest([TopicRequest(WIDE_TOPIC)] * entries)
    return _frame(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)


def _resource_types(entries: int) -> bytes:
    types = [_TOPIC_TYPE, _BROKER_TYPE] * (entries // 2)
    return _frame(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest(types))


def _delete_acls(entries: int) -> bytes:
    everything = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
    return _frame(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([everything] * entries))


_OF_NAMES: Final[Mapping[str, tuple[str, Callable[[int, int], bytes], int, int]]] = {
    "delete-topics": ("DeleteTopics v4", _delete_topics, 9, 200),
    "describe-groups": ("DescribeGroups v5", _describe_groups, 9, 200),
    "coordinators": ("FindCoordinator v4", _coordinators, 9, 200),
    "list-offsets": ("ListOffsets v6", _list_offsets, 5, 385),
    "configs": ("DescribeConfigs v4", _configs, 6, 198),
    "metadata": ("Metadata v9", _metadata, 8, 199),
}
"""What names many resources: its title, its frame, and the lengths of names that make it as large
as 1 and 20 MB.
"""


def _of_names() -> dict[str, Unkind]:
    found = {}
    for megabytes, suffix in ((1, ""), (20, "-20mb")):
        for kind, (title, frame, *characters) in _OF_NAMES.items():
            found[kind + suffix] = Unkind(
                f"a user without rights sends {title} of {megabytes} MB",
                partial(frame, characters[megabytes > 1]),
            )
    return found


def _of_strangers() -> dict[str, Unkind]:
    title = f"strangers send ApiVersions v3 with {TAGS:,} empty tagged fields on"
    return {
        f"tags-{count}": Unkind(
            f"{title} {count} connection{'s' * (count > 1)}",
            _tags,
            TAGS,
            user="",
            connections=count,
            answered=False,
        )
        for count in (1, 8, 50)
    }


UNKIND: Final[Mapping[str, Unkind]] = {
    **_of_strangers(),
    **_of_names(),
    "too-many": Unkind(
        "a user without rights sends DeleteTopics v4 of 1,000,000 empty names",
        _empty_names,
        1_000_000,
    ),
    "broker-configs": Unkind(
        f"an admin sends DescribeConfigs v4 of one broker {MANY:,} times",
        _broker_configs,
        user="admin",
    ),
    "partitions": Unkind(
        f"an admin names a topic of {WIDE_PARTITIONS:,} partitions 3,000 times in "
        "DescribeTopicPartitions",
        _partitions,
        3_000,
        user="admin",
    ),
    "resources": Unkind(
        f"an admin sends ListConfigResources of {MANY:,} repeated types",
        _resource_types,
        user="admin",
    ),
    "unread": Unkind(
        "an admin asks 150 times for all of 200,000 ACLs and reads no answer",
        lambda _: _frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS),
        user="admin",
        connections=150,
        reads=False,
    ),
    "delete-acls": Unkind(
        "an admin deletes all of 200,000 ACLs with 20 filters in one request",
        _delete_acls,
        20,
        user="admin",
        once=True,
    ),
}
"""What may be sent, by a short name."""
