"""Metadata and DescribeCluster of a broker without topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from broker.acl.authorizer import RequestContext
from broker.acl.bindings import AclOperation, ResourceType
from broker.handlers.services import Services
from protocol.errors import ErrorCode
from protocol.leaves import ZERO_UUID
from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_FIRST_VERSION_WITH_TOPIC_IDS: Final = 12
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
_INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def metadata(
    services: Services, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Answer with this node, and with why each topic that was asked for is not there.

    A topic that the principal may not describe is answered as denied whether it exists or not. A
    request without a list of topics asks for all of them, of which there are none.
    """
    topics = request.topics or ()
    if any(_is_malformed(topic, context.api_version) for topic in topics):
        return _invalid(topics)
    node = services.advertised[context.session.listener]
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node.node_id, node.host, node.port)],
        cluster_id=services.cluster_id,
        controller_id=node.node_id,
        topics=_topics(services, context, request),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = services.cluster_operations(context)
    return response


def describe_cluster(
    services: Services, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer with this node as the whole cluster (KIP-700); it has no controllers to tell of."""
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if request.endpoint_type == _CONTROLLERS
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            ),
            error_message=f"Endpoint type {request.endpoint_type} is not here; {_BROKERS} is.",
        )
    node = services.advertised[context.session.listener]
    response = DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(node.node_id, node.host, node.port)],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = services.cluster_operations(context)
    return response


def _is_malformed(topic: MetadataRequestTopic, version: int) -> bool:
    has_id = topic.topic_id != ZERO_UUID
    if version < _FIRST_VERSION_WITH_TOPIC_IDS:
        return has_id or topic.name is None
    return not has_id and topic.name is None


def _invalid(topics: Iterable[MetadataRequestTopic]) -> MetadataResponse:
    code = ErrorCode.INVALID_REQUEST
    return MetadataResponse(
        error_code=code,
        topics=[MetadataResponseTopic(code, topic.name or "", topic.topic_id) for topic in topics],
    )


def _topics(
    services: Services, context: RequestContext, request: MetadataRequest
) -> list[MetadataResponseTopic]:
    topics = request.topics or ()
    # As in Kafka, one topic id makes the whole request one by ids: names in it are passed over.
    ids = dict.fromkeys(topic.topic_id for topic in topics if topic.topic_id != ZERO_UUID)
    if ids:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        return [MetadataResponseTopic(unknown, None, topic_id) for topic_id in ids]
    names = dict.fromkeys(topic.name for topic in topics if topic.name is not None)
    with_operations = request.include_topic_authorized_operations
    return [_topic(services, context, name, with_operations) for name in names]


def _topic(
    services: Services, context: RequestContext, name: str, with_operations: bool
) -> MetadataResponseTopic:
    if not services.allows(context, AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    valid = _TOPIC_NAME.fullmatch(name)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    topic = MetadataResponseTopic(code, name, is_internal=name in _INTERNAL_TOPICS)
    if with_operations:
        topic.topic_authorized_operations = services.authorized_operations(
            context, ResourceType.TOPIC, name
        )
    return topic
