"""Compressed batches of real clients: written, read, looked up by time, and compacted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from aclbroker.testing import AclBroker
from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.memory_cluster.commands import run
from tests.support.client import Client

WITHIN: Final = 20
CODECS: Final = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
READ_HERE: Final = frozenset(("gzip",))
"""What the cluster looks into."""

VALUE: Final = b"a value that takes less when it is compressed " * 9


@pytest.fixture(scope="module")
def broker() -> Iterator[AclBroker]:
    with AclBroker() as running:
        yield running


def producer(broker: AclBroker, codec: str) -> Producer:
    settings = {"compression.type": codec, "linger.ms": 5_000, "log_level": 0}
    return Producer(broker.client_config("admin") | settings)


def consumer(broker: AclBroker, topic: str) -> Consumer:
    settings = {"group.id": "g", "enable.partition.eof": True, "check.crcs": True}
    reader = Consumer(broker.client_config("admin") | settings)
    reader.assign([TopicPartition(topic, 0, 0)])
    return reader


def read(broker: AclBroker, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return the offset, the key and the value of each record of a topic."""
    reader, found = consumer(broker, topic), []
    deadline = time.monotonic() + WITHIN
    try:
        while time.monotonic() < deadline:
            message = reader.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                break  # it is the end
            found.append((message.offset() or 0, message.key(), message.value()))
    finally:
        reader.close()
    return found


def codecs(broker: AclBroker, topic: str) -> set[int]:
    """Return how the batches of a topic are compressed, as their headers say."""
    address = broker.bootstrap_servers.split(",")[0]
    with Client(address) as client:
        assert client.login("admin", broker.password("admin")).error_code == 0
        answer = raw.fetched(client, 12, raw.request({topic: [raw.partition(0)]}))
    data = bytes(answer.responses[0].partitions[0].records)
    found, at = set(), 0
    while at < len(data):
        found.add(data[at + 22] & 7)
        at += int.from_bytes(data[at + 8 : at + 12]) + 12
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_records_are_kept_as_they_came(broker: AclBroker, codec: str):
    topic = f"kept-{codec}"
    broker.create_topic(topic)
    writer = producer(broker, codec)
    for number in range(100):
        writer.produce(topic, VALUE, b"%d" % number)
    assert writer.flush(WITHIN) == 0
    assert read(broker, topic) == [(n, b"%d" % n, VALUE) for n in range(100)]
    assert codecs(broker, topic) == {CODECS[codec]}


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_is_found_in_a_compressed_batch_as_far_as_it_is_read(broker: AclBroker, codec: str):
    topic = f"timed-{codec}"
    broker.create_topic(topic)
    begun = int(time.time() * 1_000) - 60_000
    writer = producer(broker, codec)
    for number in range(20):
        writer.produce(topic, VALUE, timestamp=begun + number)
        if number == 9:
            assert writer.flush(WITHIN) == 0
    assert writer.flush(WITHIN) == 0
    reader = consumer(broker, topic)
    try:
        times = (begun, begun + 4, begun + 15, begun + 20)
        found = [
            reader.offsets_for_times([TopicPartition(topic, 0, each)], timeout=WITHIN)[0].offset
            for each in times
        ]
    finally:
        reader.close()
    assert found == ([0, 4, 15, -1] if codec in READ_HERE else [0, 0, 10, -1])


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_record_of_each_key_is_there_after_compaction(broker: AclBroker, codec: str):
    topic = f"compacted-{codec}"
    broker.create_topic(topic, configs={"cleanup.policy": "compact", "segment.ms": "1"})
    writer = producer(broker, codec)
    for turn in range(3):
        for key in (b"a", b"b"):
            writer.produce(topic, VALUE + b"%d" % turn, key)
        assert writer.flush(WITHIN) == 0
        broker.advance(1)
    writer.produce(topic, VALUE, b"last")
    assert writer.flush(WITHIN) == 0
    broker.advance(60)
    left = read(broker, topic)
    expected = [(4, b"a", VALUE + b"2"), (5, b"b", VALUE + b"2"), (6, b"last", VALUE)]
    assert left[-3:] == expected
    assert len(left) == (3 if codec in READ_HERE else 7)


@pytest.mark.parametrize(
    "codec",
    [
        "gzip",
        "zstd",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("snappy", "lz4")),
    ],
)
def test_what_javas_producer_compresses_is_read_by_another_client(
    broker: AclBroker, codec: str, tmp_path: Path, commands: Commands
):
    topic = f"java-{codec}"
    broker.create_topic(topic)
    properties = tmp_path / "client.properties"
    settings = broker.client_config("admin", "java") | {"compression.type": codec}
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    status, output, errors = run(
        commands,
        "producer-perf-test",
        *("--topic", topic, "--num-records", "2000", "--record-size", "200"),
        *("--throughput", "-1", "--command-config", str(properties)),
        *("--bootstrap-server", broker.bootstrap_servers),
    )
    assert status == 0, output + errors
    assert "2000 records sent" in output
    assert [offset for offset, _, _ in read(broker, topic)] == list(range(2000))
    assert codecs(broker, topic) == {CODECS[codec]}
