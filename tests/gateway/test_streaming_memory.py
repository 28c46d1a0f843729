"""Frames of 100 MiB pass through a gateway without being held in its memory."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from aclbroker.protocol.wire import decode_response
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.raw import partition, request
from tests.support.broker import Broker
from tests.support.client import request_frame
from tests.support.gateway import IN_MEMORY
from tests.support.kafka import QUICK_TO_START, Kafka

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

FRAMES = 100
LARGE = 100_000_000
"""The size of a frame. A broker refuses one of more than 100 MiB, with its header."""

MOST_GROWTH = 20 << 20
PIECE = 1 << 20


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Broker]:
    """A gateway in a process of its own, before a Kafka that keeps few records."""
    settings = {
        "authorizer.class.name": "",
        "super.users": "",
        "message.max.bytes": str(LARGE + 1000),
        "log.retention.bytes": "1",
        "log.segment.bytes": str(LARGE + 1000),
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "0",
    }
    (tmp_path / "kafka").mkdir()
    kafka = Kafka(tmp_path / "kafka", overrides=settings, flags=(*QUICK_TO_START, "-Xmx1g"))
    kafka.start()
    (tmp_path / "gateway").mkdir()
    gateway = Broker(
        tmp_path / "gateway",
        {"aclbroker.upstream.bootstrap.servers": kafka.listeners["PLAINTEXT"], **IN_MEMORY},
    )
    gateway.start()
    yield gateway
    gateway.terminate()
    kafka.kill()


def resident(broker: Broker) -> int:
    """Return the memory of a broker's process in bytes."""
    status = Path(f"/proc/{broker.running.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def skipped(connection: socket.socket) -> int:
    """Read an answer and forget it; return its size."""
    size = left = int.from_bytes(_read(connection, 4))
    while left:
        part = connection.recv(min(left, PIECE))
        assert part, "the connection was closed"
        left -= len(part)
    return size


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "the connection was closed"
        data += part
    return data


def test_a_hundred_large_requests_and_answers_take_no_memory(gateway: Broker):
    client = raw.admin(gateway)
    for topic in ("written", "read"):
        bytes_kept = "1" if topic == "written" else "-1"
        configs = [
            CreatableTopicConfig("retention.bytes", bytes_kept),
            CreatableTopicConfig("retention.ms", "-1"),
        ]
        created = CreatableTopic(topic, 1, 1, configs=configs)
        answer = client.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([created], 20_000))
        assert answer.topics[0].error_code == 0
    records = batch(b"x" * (LARGE - 1000))
    produce = _produce("written", records)
    raw.write(client, "read", records)
    asked = request({"read": [partition(0, most=1 << 30)]}, max_bytes=1 << 30)
    fetch = request_frame(ApiKey.FETCH, 12, asked)
    connection = client.socket
    for number in range(FRAMES):
        connection.sendall(produce)
        _, answer = decode_response(
            APIS[ApiKey.PRODUCE], 9, _read(connection, int.from_bytes(_read(connection, 4)))
        )
        assert answer.responses[0].partition_responses[0].error_code == 0
        connection.sendall(fetch)
        assert skipped(connection) > LARGE - 1000
        if number == 0:
            before = resident(gateway)
    assert resident(gateway) - before < MOST_GROWTH


def _produce(topic: str, records: bytes) -> bytes:
    data = [p.PartitionProduceData(0, records)]
    entry = p.TopicProduceData(topic, partition_data=data)
    return request_frame(ApiKey.PRODUCE, 9, p.ProduceRequest(None, -1, 30_000, [entry]))
