"""Produce, to a broker without topics: who may not write is told so, who may, that there is none.

Java AdminClients up to 2.0 talk to no broker that does not have this API.
"""

from __future__ import annotations

from broker.acl.authorizer import RequestContext
from broker.acl.bindings import AclOperation, ResourceType
from broker.handlers.services import Services
from protocol.errors import ErrorCode
from protocol.leaves import ZERO_UUID, ProtocolError
from protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


def produce(
    services: Services, context: RequestContext, request: ProduceRequest
) -> ProduceResponse:
    """Refuse every partition with the code that its topic has earned.

    With acks=0 nobody waits for an answer: then the connection is closed, as in Kafka, so that the
    client notices. Raises `ProtocolError` for that.
    """
    responses = [_topic(services, context, request, topic) for topic in request.topic_data]
    if request.acks == 0 and any(topic.partition_responses for topic in responses):
        raise ProtocolError("records with acks=0 that cannot be stored")
    return ProduceResponse(responses)


def _topic(
    services: Services, context: RequestContext, request: ProduceRequest, topic: TopicProduceData
) -> TopicProduceResponse:
    code = _refusal(services, context, request.transactional_id, topic)
    return TopicProduceResponse(
        topic.name,
        topic.topic_id,
        [
            PartitionProduceResponse(partition.index, code, base_offset=-1)
            for partition in topic.partition_data
        ],
    )


def _refusal(
    services: Services,
    context: RequestContext,
    transactional_id: str | None,
    topic: TopicProduceData,
) -> ErrorCode:
    write = AclOperation.WRITE
    if transactional_id is not None and not services.allows(
        context, write, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if topic.topic_id != ZERO_UUID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not services.allows(context, write, ResourceType.TOPIC, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
