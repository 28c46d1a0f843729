"""Asks for the id and the settings of a topic over a connection of aiokafka's.

aiokafka's own requests have no topic ids, and its consumer cannot ask for settings.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

from aiokafka.errors import NodeNotReadyError, UnknownTopicOrPartitionError, for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Schema

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

NO_ID: Final = bytes(16)
SETTINGS: Final = ("cleanup.policy", "min.insync.replicas", "delete.retention.ms")
"""The settings of a topic that matter to a store."""

_TOPIC_RESOURCE: Final = 2


async def topic_id(client: Any, node: int | None, topic: str) -> str:
    """Return the id of a topic as a node knows it, "" if it gives topics no ids.

    Raises aiokafka's errors; what the node says is wrong with the topic is one of them.
    """
    asked = MetadataRequest([MetadataRequestTopic(NO_ID, topic)], False)
    answer = await _asked(client, node, _AskingForTopic(asked))
    if answer is None:
        return ""
    found = next((each for each in answer.topics if each.name == topic), None)
    if found is None:
        raise UnknownTopicOrPartitionError(topic)
    if found.error_code and found.topic_id == NO_ID:
        raise for_code(found.error_code)(topic)
    return shown_id(found.topic_id)


async def topic_settings(client: Any, node: int | None, topic: str) -> dict[str, str | None] | None:
    """Return the `SETTINGS` of a topic, None without the right to read them, or from an old Kafka.

    Raises aiokafka's errors.
    """
    answer = await _asked(client, node, _AskingForSettings(settings_request(topic)))
    if answer is None:
        return None
    [result] = answer.results
    if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return None
    if result.error_code:
        raise for_code(result.error_code)(result.error_message)
    return {each.name: each.value for each in result.configs}


def settings_request(topic: str) -> DescribeConfigsRequest:
    """Return the request for the `SETTINGS` of a topic."""
    return DescribeConfigsRequest([DescribeConfigsResource(_TOPIC_RESOURCE, topic, SETTINGS)])


def shown_id(found: bytes) -> str:
    """Return an id as hexadecimal digits; "" where there is none."""
    return "" if found == NO_ID else found.hex()


async def _asked(client: Any, node: int | None, request: Request[Any]) -> Any:
    """Return the answer of a node, None if its Kafka is too old for the request."""
    if node is None:
        raise NodeNotReadyError
    try:
        return (await client.send(node, request)).message
    except NotImplementedError:
        return None


class _Answer(Response):  # type: ignore[misc] # aiokafka has no types here
    API_KEY = 0
    API_VERSION = 0
    SCHEMA = Schema()
    MESSAGE: Any = None
    message: Any = None

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> _Answer:
        """Return what was answered."""
        found = cls()
        text = data if isinstance(data, bytes) else data.read()
        found.message = decode(cls.MESSAGE, cls.API_VERSION, text)
        return found


class _Question(RequestStruct):  # type: ignore[misc] # nor here
    FLEXIBLE_VERSION = True
    API_KEY = 0
    API_VERSION = 0
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema()

    def __init__(self, message: Any) -> None:
        self._message = message

    def encode(self) -> bytes:
        """Return what is asked."""
        return encode(self._message, self.API_VERSION)


class _TopicAnswer(_Answer):
    API_KEY = ApiKey.METADATA.value
    API_VERSION = 10  # the first with topic ids
    MESSAGE = MetadataResponse


class _TopicQuestion(_Question):
    API_KEY = _TopicAnswer.API_KEY
    API_VERSION = _TopicAnswer.API_VERSION
    RESPONSE_TYPE = _TopicAnswer


class _SettingsAnswer(_Answer):
    API_KEY = ApiKey.DESCRIBE_CONFIGS.value
    API_VERSION = 4  # the first in the flexible form
    MESSAGE = DescribeConfigsResponse


class _SettingsQuestion(_Question):
    API_KEY = _SettingsAnswer.API_KEY
    API_VERSION = _SettingsAnswer.API_VERSION
    RESPONSE_TYPE = _SettingsAnswer


class _AskingForTopic(Request[_TopicQuestion]):  # type: ignore[misc] # nor here
    API_KEY = _TopicQuestion.API_KEY

    def __init__(self, message: MetadataRequest) -> None:
        self._message = message

    def build(self, request_struct_class: type[_TopicQuestion]) -> _TopicQuestion:
        """Return the request of the one version that is used."""
        return request_struct_class(self._message)


class _AskingForSettings(Request[_SettingsQuestion]):  # type: ignore[misc] # nor here
    API_KEY = _SettingsQuestion.API_KEY

    def __init__(self, message: DescribeConfigsRequest) -> None:
        self._message = message

    def build(self, request_struct_class: type[_SettingsQuestion]) -> _SettingsQuestion:
        """Return the request of the one version that is used."""
        return request_struct_class(self._message)
