"""Kafka Connect and MirrorMaker 2, with the rights that docs/applications.md gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.testing import AclBroker
from tests.memory_cluster.java_programs import (
    Program,
    assert_is_missed,
    assert_just_enough,
    documented,
    java_config,
    properties_file,
    running,
)
from tests.support.packages import connect_jars

QUIET: Final = {"log_level": 0}
PARTITIONS: Final = 2
GROUP: Final = "shop"
COPY: Final = "east.orders"


def test_connectors_write_the_lines_of_a_file_to_another(tmp_path: Path):
    acls = documented("connect.yaml")
    with AclBroker(acls, topics={"lines": 1}) as broker:
        read, written = tmp_path / "read.txt", tmp_path / "written.txt"
        read.write_text("one\ntwo\n")
        package, storage = "org.apache.kafka.connect.file", "org.apache.kafka.connect.storage"
        source = {
            "name": "src",
            "connector.class": f"{package}.FileStreamSourceConnector",
            "file": read,
            "topic": "lines",
            **java_config(broker, "source", "producer.override."),
        }
        sink = {
            "name": "sink",
            "connector.class": f"{package}.FileStreamSinkConnector",
            "file": written,
            "topics": "lines",
            **java_config(broker, "sink", "consumer.override."),
        }
        worker = {
            **java_config(broker, "source"),
            "key.converter": f"{storage}.StringConverter",
            "value.converter": f"{storage}.StringConverter",
            "offset.storage.file.filename": tmp_path / "offsets",
            "offset.flush.interval.ms": 100,
            "listeners": "http://127.0.0.1:0",
            "plugin.discovery": "service_load",
        }
        files = [
            properties_file(tmp_path / f"{number}.properties", each)
            for number, each in enumerate((worker, source, sink))
        ]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        with running(Program(tmp_path, main, connect_jars(), *files)) as program:

            def has_written(lines: str) -> bool | None:
                return (written.exists() and written.read_text() == lines) or None

            program.until(lambda: has_written("one\ntwo\n"))
            with read.open("a") as more:
                more.write("three\n")
            program.until(lambda: has_written("one\ntwo\nthree\n"))
            assert_just_enough(broker, acls)
            reads, writes = (
                [
                    acl
                    for acl in acls
                    if acl.resource_type is ResourceType.TOPIC and acl.operation is operation
                ]
                for operation in (AclOperation.READ, AclOperation.WRITE)
            )
            assert_is_missed(broker, program, *reads)
            with read.open("a") as more:
                more.write("four\n")
            assert_is_missed(broker, program, *writes)


@pytest.fixture
def east() -> Iterator[AclBroker]:
    """The source, with ten orders that the shop has read."""
    with AclBroker(documented("mirror-east.yaml"), topics={"orders": PARTITIONS}) as started:
        write_orders(started, range(10))
        shop = client(started, GROUP)
        offsets = [TopicPartition("orders", index, 5) for index in range(PARTITIONS)]
        shop.commit(offsets=offsets, asynchronous=False)
        shop.close()
        yield started


@pytest.fixture
def west() -> Iterator[AclBroker]:
    """The target, of three nodes."""
    with AclBroker(documented("mirror-west.yaml"), nodes=3) as started:
        yield started


def client(broker: AclBroker, group_id: str = "none") -> Consumer:
    own = {"group.id": group_id, "enable.auto.commit": False, **QUIET}
    return Consumer(broker.client_config("admin") | own)


def write_orders(broker: AclBroker, numbers: range) -> None:
    producer = Producer(broker.client_config("admin") | QUIET)
    for number in numbers:
        producer.produce("orders", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(10) == 0


def mirror(east: AclBroker, west: AclBroker, directory: Path) -> Program:
    """MirrorMaker, which looks for what is new each second, in transactions."""
    often = [
        "emit.checkpoints.interval.seconds",
        "sync.group.offsets.interval.seconds",
        "refresh.topics.interval.seconds",
        "refresh.groups.interval.seconds",
    ]
    replicated = ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."]
    stored = ["offset.storage.", "status.storage.", "config.storage."]
    settings: dict[str, Any] = {
        **java_config(east, "mirror", "east."),
        **java_config(west, "mirror", "west."),
        **dict.fromkeys(often, 1),
        **{f"{each}replication.factor": 1 for each in replicated + stored},
        "clusters": "east,west",
        "east->west.enabled": "true",
        "west->east.emit.heartbeats.enabled": "false",
        "topics": "orders",
        "groups": GROUP,
        "offset.lag.max": 0,
        "sync.group.offsets.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "west.exactly.once.source.support": "enabled",
        "west.offset.storage.partitions": 1,
        "west.status.storage.partitions": 1,
        # Tasks are fenced through it, where there are several processes.
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
    }
    path = properties_file(directory / "mm2.properties", settings)
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    return Program(directory, main, connect_jars(), path, "--clusters", "west")


def copied(reader: Consumer) -> list[int]:
    """The orders at the target, sorted; none while there is no such topic."""
    topic = reader.list_topics(timeout=10).topics.get(COPY)
    found = []
    for index in topic.partitions if topic else ():
        place = TopicPartition(COPY, index, 0)
        try:
            end = reader.get_watermark_offsets(place, 10)[1]
        except KafkaException:
            return []  # The reader does not know yet who leads a partition that is new.
        reader.assign([place])
        position = 0
        while position < end:
            for message in reader.consume(1000, timeout=0.2):
                value = message.value()
                assert isinstance(value, bytes)
                found.append(int(value))
            position = max(position, reader.position([place])[0].offset)
    return sorted(found)


def offsets_in_copy(shop: Consumer) -> list[int]:
    places = [TopicPartition(COPY, index) for index in range(PARTITIONS)]
    return [each.offset for each in shop.committed(places, timeout=10)]


@pytest.mark.thorough
def test_a_topic_is_mirrored_once_with_its_settings_and_the_offsets_of_its_group(
    east: AclBroker, west: AclBroker, tmp_path: Path
):
    reader, shop = client(west), client(west, GROUP)
    with running(mirror(east, west, tmp_path)) as program:
        program.until(lambda: len(copied(reader)) >= 10 or None)
        program.until(lambda: offsets_in_copy(shop) == [5, 5] or None)
        admin = AdminClient(east.client_config("admin") | QUIET)
        for done in admin.create_partitions([NewPartitions("orders", 3)]).values():
            done.result(10)
        program.until(
            lambda: len(reader.list_topics(timeout=10).topics[COPY].partitions) == 3 or None
        )
        program.terminate()
    write_orders(east, range(10, 20))
    with running(mirror(east, west, tmp_path)) as program:
        program.until(lambda: len(copied(reader)) >= 20 or None)
        assert copied(reader) == list(range(20))
        acls = documented("mirror-east.yaml")
        assert_just_enough(east, acls)
        assert_just_enough(west, documented("mirror-west.yaml"))
        [describes] = [acl for acl in acls if acl.resource_name == GROUP]
        assert_is_missed(east, program, describes)
    reader.close()
    shop.close()
