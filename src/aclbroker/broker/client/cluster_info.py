"""What a cluster tells about itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.broker.catalog import METADATA_TOPIC
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import ClientSettings
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest

_NOT_SHOWN: Final = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def cluster_id(session: Session) -> str | None:
    """Return the id of the cluster, None if the broker does not tell it. Raises `ClientError`."""
    answer = session.ask(ApiKey.METADATA, MetadataRequest(topics=[]))
    found: str | None = answer.cluster_id
    return found


def metadata_marks(session: Session) -> dict[str, tuple[int, ...]]:
    """Return the numbers of a KRaft quorum that never decrease: its epoch and committed offset.

    The result is empty for a cluster without a quorum, and for one that hides it from the client.
    Raises `ClientError`.
    """
    from aclbroker.protocol.messages.describe_quorum import (
        DescribeQuorumRequest,
        RequestPartitionData,
        RequestTopicData,
    )

    topic = RequestTopicData(METADATA_TOPIC, [RequestPartitionData(0)])
    try:
        answer = session.ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest([topic]))
    except RequestRefused as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            return {}
        raise
    if answer.error_code in _NOT_SHOWN:
        return {}
    partition = next((each for topic in answer.topics for each in topic.partitions), None)
    code = answer.error_code or (partition.error_code if partition else ErrorCode.NONE)
    if code:
        raise RequestRefused(code, "The quorum of the cluster cannot be described.")
    # A newly elected leader does not know the committed offset yet, and answers -1.
    if partition is None or partition.high_watermark < 0:
        return {}
    return {
        "metadata epoch": (partition.leader_epoch,),
        "metadata offset": (partition.high_watermark,),
    }


def topic_names(session: Session) -> list[str]:
    """Return the topics that the client may describe; others are not told. Raises `ClientError`."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = session.ask(ApiKey.METADATA, request)
    return [each.name for each in answer.topics if each.name is not None]


def group_names(session: Session, settings: ClientSettings) -> list[str]:
    """Return the groups that the client may describe, of all brokers: each knows its own.

    Raises `ClientError`, also if one of the brokers cannot be reached.
    """
    brokers = session.ask(ApiKey.METADATA, MetadataRequest(topics=[])).brokers
    found: list[str] = []
    for each in brokers:
        with open_session([(each.host, each.port)], settings) as one:
            found.extend(_groups_of(one))
    return found


def _groups_of(session: Session) -> Iterator[str]:
    from aclbroker.protocol.messages.list_groups import ListGroupsRequest

    answer = session.ask(ApiKey.LIST_GROUPS, ListGroupsRequest([], []))
    if answer.error_code:
        raise RequestRefused(answer.error_code, "The groups cannot be listed.")
    return (each.group_id for each in answer.groups)
