"""kafka-python in groups and transactions of three nodes, with no more rights than it needs."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, Final

import pytest
from confluent_kafka import Consumer

from aclbroker.testing import AclBroker
from tests.memory_cluster.rights import grant, rights, was_enough
from tests.support.process import wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import MemberToRemove, OffsetSpec
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import NoError, ProducerFencedError
    from kafka.structs import OffsetAndMetadata

WITHIN: Final = 30

Make = Callable[..., Any]


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(topics={"orders": 4, "payments": 1}, nodes=3) as running:
        yield running


def config(broker: AclBroker, user: str = "app") -> dict[str, Any]:
    return broker.client_config(user, "kafka-python")


class Member:
    """A member of the group that reads orders from their beginning, in a thread of its own.

    A member that is not inside `poll` when it has joined joins once more, in kafka-python 3.0, so
    that two members cannot be polled in turns. If it joins before it knows its topic it forgets
    what it is assigned, too.
    """

    def __init__(self, broker: AclBroker, **more: Any) -> None:
        settings = {
            "group_id": "group",
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            "enable_auto_commit": False,
            "partition_assignment_strategy": (RangePartitionAssignor,),
            **more,
        }
        self.consumer = KafkaConsumer("orders", **config(broker), **settings)
        self.consumer.partitions_for_topic("orders")
        self.values: list[int] = []
        self._is_to_stop = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._is_to_stop.is_set():
            for records in self.consumer.poll(500).values():
                self.values += [int(record.value) for record in records]

    @property
    def share(self) -> int:
        """How many partitions it has."""
        return len(self.consumer.assignment())

    def stop(self) -> KafkaConsumer:
        """Poll no more; returns the consumer, which is still a member."""
        self._is_to_stop.set()
        self._thread.join()
        return self.consumer

    def close(self) -> None:
        """Leave the group."""
        self.stop().close()


def until_shared(share: int, *members: Member) -> None:
    """Wait until each member has so many partitions."""
    shares = [share] * len(members)
    wait_for("shares", lambda: [each.share for each in members] == shares or None, WITHIN)


def until_read(count: int, *members: Member) -> None:
    """Wait until so many records have come to the members."""
    wait_for("records", lambda: sum(len(each.values) for each in members) >= count or None, WITHIN)


@pytest.fixture
def member(broker: AclBroker) -> Iterator[Callable[..., Member]]:
    """Members, who have left at the end."""
    with ExitStack() as opened:
        yield lambda **more: opened.enter_context(closing(Member(broker, **more)))


@pytest.fixture
def producer(broker: AclBroker) -> Iterator[Callable[..., KafkaProducer]]:
    """Producers that are closed at the end."""
    with ExitStack() as opened:

        def made(user: str = "app", **more: Any) -> KafkaProducer:
            return opened.enter_context(closing(KafkaProducer(**config(broker, user), **more)))

        yield made


def write_orders(producer: KafkaProducer, count: int = 80) -> None:
    """Write as many records, to each partition the same number."""
    sent = [producer.send("orders", str(n).encode(), partition=n % 4) for n in range(count)]
    assert {each.get(WITHIN).partition for each in sent} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "assignor",
    [
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    ],
)
def test_members_share_a_topic_and_get_each_record_once(
    broker: AclBroker, member: Make, producer: Make, assignor: Any
):
    given = [*rights("topic", "orders", "READ", "WRITE"), *rights("group", "group", "READ")]
    grant(broker, "app", given)
    first = member(partition_assignment_strategy=(assignor,))
    until_shared(4, first)
    second = member(partition_assignment_strategy=(assignor,))
    until_shared(2, first, second)
    write_orders(producer(acks="all", enable_idempotence=True))
    until_read(80, first, second)
    second.stop().commit()
    second.close()
    until_shared(4, first)
    left = first.stop()
    left.commit()
    assert [left.committed(TopicPartition("orders", n)) for n in range(4)] == [20] * 4
    assert sorted(first.values + second.values) == list(range(80))
    was_enough(broker, given)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    broker: AclBroker, member: Make
):
    given = [*rights("topic", "orders", "READ"), *rights("group", "group", "READ")]
    grant(broker, "app", given)
    first, second = member(group_instance_id="a"), member(group_instance_id="b")
    until_shared(2, first, second)
    before = second.consumer.assignment()
    generation = first.consumer.group_metadata().generation_id
    second.close()
    again = member(group_instance_id="b")
    until_shared(2, first, again)
    assert again.consumer.assignment() == before
    assert first.consumer.group_metadata().generation_id == generation
    again.stop()
    with closing(KafkaAdminClient(**config(broker))) as admin:
        removed = admin.remove_group_members("group", [MemberToRemove(group_instance_id="b")])
    assert list(removed.values()) == [NoError]
    until_shared(4, first)
    was_enough(broker, given)


def test_members_of_librdkafka_and_of_kafka_python_are_in_one_group(
    broker: AclBroker, member: Make
):
    given = [*rights("topic", "orders", "READ"), *rights("group", "group", "READ")]
    grant(broker, "app", given)
    settings: dict[str, Any] = {"group.id": "group", "partition.assignment.strategy": "range"}
    other = Consumer(broker.client_config("app") | settings)
    other.subscribe(["orders"])
    one = member()

    def is_shared() -> bool | None:
        other.poll(0.02)
        return (one.share, len(other.assignment())) == (2, 2) or None

    wait_for("shares", is_shared, WITHIN)
    other.close()
    until_shared(4, one)
    was_enough(broker, given)


def test_what_it_reads_and_writes_in_a_transaction_counts_whole_or_not_at_all(
    broker: AclBroker, member: Make, producer: Make
):
    write_orders(producer("admin"))
    given = [
        *rights("topic", "orders", "READ"),
        *rights("topic", "payments", "READ", "WRITE"),
        *rights("group", "group", "READ"),
        *rights("transactional_id", "writer", "WRITE"),
    ]
    grant(broker, "app", given)
    one = member()
    until_read(80, one)
    reader = one.stop()
    first = TopicPartition("orders", 0)

    def begin(writer: KafkaProducer, value: bytes, offset: int) -> None:
        writer.begin_transaction()
        writer.send("payments", value)
        at = {first: OffsetAndMetadata(offset, "", -1)}
        writer.send_offsets_to_transaction(at, reader.group_metadata())

    writer = producer(transactional_id="writer")
    writer.init_transactions()
    begin(writer, b"aborted", 5)
    writer.abort_transaction()
    assert reader.committed(first) is None
    begin(writer, b"committed", 7)
    writer.commit_transaction()
    assert reader.committed(first) == 7
    begin(writer, b"forgotten", 9)
    successor = producer(transactional_id="writer")
    successor.init_transactions()
    with pytest.raises(ProducerFencedError):
        writer.commit_transaction()
    begin(successor, b"last", 11)
    successor.commit_transaction()
    assert reader.committed(first) == 11
    assert committed_payments(broker, 2) == [b"committed", b"last"]
    was_enough(broker, given)


def committed_payments(broker: AclBroker, count: int) -> list[bytes]:
    """Return the first payments that are committed."""
    settings: dict[str, Any] = {"consumer_timeout_ms": WITHIN * 1000}
    settings |= {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with closing(KafkaConsumer(**config(broker), **settings)) as payments:
        payments.assign([TopicPartition("payments", 0)])
        return [next(payments).value for _ in range(count)]


def test_its_admin_client_does_with_groups_all_that_it_can(
    broker: AclBroker, member: Make, producer: Make
):
    given = [*rights("topic", "orders", "READ"), *rights("group", "group", "READ", "DELETE")]
    grant(broker, "app", given)
    write_orders(producer("admin"))
    one = member()
    until_shared(4, one)
    first = TopicPartition("orders", 0)
    one.stop().commit({first: OffsetAndMetadata(3, "three", -1)})
    with closing(KafkaAdminClient(**config(broker))) as admin:
        described = admin.describe_groups(["group"])["group"]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        one.close()
        [listed] = admin.list_groups()
        assert (listed["group_id"], listed["group_state"]) == ("group", "Empty")
        [(place, offset)] = admin.list_group_offsets({"group": None})["group"].items()
        assert (place, offset.offset, offset.metadata) == (first, 3, "three")
        altered = admin.alter_group_offsets("group", {first: OffsetAndMetadata(4, "", -1)})
        assert altered == {first: NoError}
        reset = admin.reset_group_offsets("group", {first: OffsetSpec.LATEST})
        assert reset == {first: {"error": NoError, "offset": 20}}
        assert admin.delete_group_offsets("group", [first]) == {first: NoError}
        assert admin.list_group_offsets({"group": None}) == {"group": {}}
        assert admin.delete_groups(["group"]) == {"group": "OK"}
        assert admin.list_groups() == []
    was_enough(broker, given)


def benchmark(which: str, settings: dict[str, Any], *arguments: str) -> str:
    """Run a benchmark that kafka-python comes with; returns what it prints."""
    servers = settings.pop("bootstrap_servers")
    command = [sys.executable, "-m", f"kafka.benchmarks.{which}_performance", "--topic", "orders"]
    command += ["--num-records", "20000", *arguments, "--bootstrap-servers", *servers]
    command += [f"--{which}-config", *[f"{name}={value}" for name, value in settings.items()]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    return done.stdout + done.stderr


def test_its_own_benchmarks_write_and_read_all_records(broker: AclBroker):
    given = [*rights("topic", "orders", "READ", "WRITE"), *rights("group", "group", "READ")]
    grant(broker, "app", given)
    written = benchmark("producer", config(broker), "--record-size", "100")
    assert "20000 suceeded, 0 failed" in written
    read = benchmark("consumer", config(broker) | {"group_id": "group"})
    assert "Consumed 20000 records" in read
    was_enough(broker, given)
