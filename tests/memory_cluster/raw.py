"""Requests to a cluster in memory as they are on the wire, for what clients hide."""

from collections.abc import Mapping, Sequence
from typing import Any

from aclbroker.broker.client.blocking import BlockingClient
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.metadata import MetadataRequest
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = (
    3,
    4,
    5,
    6,
    7,
    8,
    10,
    11,
)


OPEN: list[BlockingClient] = []
"""The connections of the test that runs, which are closed at its end."""


def _opened(address: str) -> Client:
    client = Client(address)
    OPEN.append(client)
    return client


def admin(broker: Broker, node: int = 0) -> Client:
    """Return a connection to a node, whose user may do everything."""
    return _opened(broker.listeners["PLAINTEXT"].split(",")[node])


def logged_in(broker: Broker, user: str, node: int = 0) -> Client:
    """Return a connection to a node of a user."""
    client = _opened(broker.listeners["SASL_PLAINTEXT"].split(",")[node])
    assert client.login(user, PASSWORDS[user]).error_code == 0
    return client


def acl(user: str, operation: int, topic: str) -> AclCreation:
    """Return the creation that allows a user an operation on a topic."""
    return AclCreation(2, topic, 3, f"User:{user}", "*", operation, 3)


def id_of(client: Client, topic: str) -> bytes:
    """Return the id of a topic."""
    answer = client.ask(ApiKey.METADATA, 12, MetadataRequest(None))
    return next(bytes(each.topic_id) for each in answer.topics if each.name == topic)


def write(
    client: Client, topic: str, records: bytes, *, index: int = 0, version: int = 12, **more: Any
) -> Any:
    """Write a batch; returns the answer of the partition."""
    data = [p.PartitionProduceData(index, records)]
    entry = p.TopicProduceData(topic, partition_data=data)
    if version >= 13:
        entry = p.TopicProduceData(topic_id=id_of(client, topic), partition_data=data)
    request = p.ProduceRequest(None, more.pop("acks", -1), 1000, [entry], **more)
    answer = client.ask(ApiKey.PRODUCE, version, request)
    return answer.responses[0].partition_responses[0]


def partition(index: int, offset: int = 0, most: int = 1 << 20, epoch: int = -1) -> Any:
    """Return what a Fetch asks for of a partition."""
    return f.FetchPartition(index, epoch, offset, partition_max_bytes=most)


def request(
    topics: Mapping[Any, Sequence[Any]] | None = None,
    session: tuple[int, int] = (0, -1),
    **more: Any,
) -> f.FetchRequest:
    """Return a Fetch of topics by name or by id."""
    entries = [
        f.FetchTopic(each, partitions=partitions)
        if isinstance(each, str)
        else f.FetchTopic(topic_id=each, partitions=partitions)
        for each, partitions in (topics or {}).items()
    ]
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, **more}
    return f.FetchRequest(session_id=session[0], session_epoch=session[1], topics=entries, **values)


def fetched(client: Client, version: int, asked: f.FetchRequest) -> Any:
    """Send a Fetch; returns its answer."""
    return client.ask(ApiKey.FETCH, version, asked)


def told(answer: Any) -> list[tuple[str, int, int, int]]:
    """Return the topic, the partition, the code and the number of bytes of each part of it."""
    return [
        (topic.topic, each.partition_index, each.error_code, len(each.records or b""))
        for topic in answer.responses
        for each in topic.partitions
    ]
