"""Asks for the id of a topic over a connection of aiokafka's, whose own requests know no ids."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

from aiokafka.errors import NodeNotReadyError, UnknownTopicOrPartitionError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Schema

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

NO_ID: Final = bytes(16)
_VERSION: Final = 10
"""The first that tells ids."""


async def topic_id(client: Any, node: int | None, topic: str) -> str:
    """Return the id of a topic as a node knows it, "" if it gives topics no ids.

    Raises aiokafka's errors; what the node says is wrong with the topic is one of them.
    """
    if node is None:
        raise NodeNotReadyError
    try:
        answer = (await client.send(node, _Asking(topic))).message
    except NotImplementedError:  # of a Kafka that has no ids
        return ""
    found = next((each for each in answer.topics if each.name == topic), None)
    if found is None:
        raise UnknownTopicOrPartitionError(topic)
    if found.error_code and found.topic_id == NO_ID:
        raise for_code(found.error_code)(topic)
    return shown_id(found.topic_id)


def shown_id(found: bytes) -> str:
    """Return an id as hexadecimal digits; "" where there is none."""
    return "" if found == NO_ID else found.hex()


class _Answer(Response):  # type: ignore[misc] # aiokafka has no types here
    API_KEY = ApiKey.METADATA.value
    API_VERSION = _VERSION
    SCHEMA = Schema()
    message: Any = None

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> _Answer:
        """Return what was answered."""
        found = cls()
        text = data if isinstance(data, bytes) else data.read()
        found.message = decode(MetadataResponse, _VERSION, text)
        return found


class _Question(RequestStruct):  # type: ignore[misc] # nor here
    FLEXIBLE_VERSION = True
    API_KEY = ApiKey.METADATA.value
    API_VERSION = _VERSION
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema()
    topic = ""

    def encode(self) -> bytes:
        """Return what is asked."""
        asked = MetadataRequest([MetadataRequestTopic(NO_ID, self.topic)], False)
        return encode(asked, _VERSION)


class _Asking(Request[_Question]):  # type: ignore[misc] # nor here
    API_KEY = ApiKey.METADATA.value

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_Question]) -> _Question:
        """Return the request of the one version that is used."""
        found = request_struct_class()
        found.topic = self._topic
        return found
