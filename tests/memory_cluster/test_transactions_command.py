"""kafka-transactions.sh on a cluster in memory, with no more rights than it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from aclbroker.testing import AclBroker
from tests.clients.acl_command import Commands
from tests.memory.records import batch
from tests.memory_cluster.rights import ALTER_CLUSTER, CLUSTER_ACTION, grant, rights, was_enough
from tests.memory_cluster.toolbox import Toolbox

WITHIN = 20
TIMEOUT_SECONDS = 600
HANGING = 777
"""The producer id of the transaction that hangs."""

COMMAND = "transactions"


@pytest.fixture(params=[1, 3], ids=["node", "nodes"])
def broker(request: pytest.FixtureRequest) -> Iterator[AclBroker]:
    with AclBroker(topics={"orders": 3, "payments": 1}, nodes=request.param) as running:
        yield running


@pytest.fixture
def tools(commands: Commands, broker: AclBroker, tmp_path: Path) -> Toolbox:
    return Toolbox(commands, broker, tmp_path, "ops")


def writing(broker: AclBroker, transactional_id: str, partition: int = 0) -> Producer:
    """Return a producer whose transaction has written a record to orders, and goes on."""
    settings = {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": TIMEOUT_SECONDS * 1000,
        "log_level": 0,
    }
    producer = Producer(broker.client_config("admin") | settings)
    producer.init_transactions(WITHIN)
    producer.begin_transaction()
    producer.produce("orders", transactional_id.encode(), partition=partition)
    assert producer.flush(WITHIN) == 0
    return producer


def hang(broker: AclBroker, partition: int, value: bytes = b"hanging") -> None:
    """Begin a transaction of which no coordinator knows, as no client can here."""
    topics = broker._broker.cluster.topics
    now_ms = round(time.time() * 1000)
    records = batch(value, producer=(HANGING, 3, 0), transactional=True, time_ms=now_ms)

    def write() -> None:
        found = topics.partition("orders", partition)
        assert found is not None
        found.log.append(records, now_ms=now_ms)

    broker._broker.call(write)


def committed(broker: AclBroker, partition: int) -> list[bytes]:
    """Return what a reader of committed records sees of a partition of orders."""
    reader = Consumer(
        broker.client_config("admin")
        | {"group.id": "looks", "isolation.level": "read_committed", "enable.partition.eof": True}
    )
    found = []
    try:
        reader.assign([TopicPartition("orders", partition, 0)])
        while (message := reader.poll(WITHIN)) is not None and message.error() is None:
            found.append(message.value() or b"")
    finally:
        reader.close()
    return found


def test_transactions_are_listed_and_described_to_who_may_describe_them(broker, tools):
    producers = [writing(broker, each, index) for index, each in enumerate(("one", "two", "three"))]
    assert tools.table(COMMAND, "list") == []
    describe = (COMMAND, "describe", "--transactional-id", "two")
    assert "authorization failure" in tools.fails(*describe)
    assert "on TRANSACTIONAL_ID two" in str(broker.denials()[-1])
    broker.forget_denials()
    needed = [
        right for each in ("one", "two") for right in rights("transactional_id", each, "DESCRIBE")
    ]
    grant(broker, "ops", needed)
    listed = {row[0]: row[3] for row in tools.table(COMMAND, "list")}
    assert listed == {"one": "Ongoing", "two": "Ongoing"}
    # A topic that may not be described is left out.
    [described] = tools.table(*describe)
    assert described[4:6] == ["Ongoing", str(TIMEOUT_SECONDS * 1000)]
    assert "orders-1" not in described
    broker.forget_denials()
    of_topic = rights("topic", "orders", "DESCRIBE")
    grant(broker, "ops", of_topic)
    [described] = tools.table(*describe)
    assert described[-1] == "orders-1"
    matching = ("list", "--transactional-id-pattern", "t.*")
    assert [row[0] for row in tools.table(COMMAND, *matching)] == ["two"]
    long = ("list", "--duration-filter", 60_000)
    assert tools.table(COMMAND, *long) == []
    broker.advance(120)
    assert sorted(row[0] for row in tools.table(COMMAND, *long)) == ["one", "two"]
    producers[0].commit_transaction(WITHIN)
    listed = {row[0]: row[3] for row in tools.table(COMMAND, "list")}
    assert listed == {"one": "CompleteCommit", "two": "Ongoing"}
    broker.forget_denials()  # of the third one, which lists leave out
    tools.table(*describe)
    was_enough(broker, [*needed, *of_topic])


def test_a_transaction_that_hangs_is_found_and_aborted(broker, tools):
    hang(broker, 1)
    last = writing(broker, "last", 1)
    last.commit_transaction(WITHIN)
    assert committed(broker, 1) == []
    of_producers = ("describe-producers", "--topic", "orders", "--partition", 1)
    grant(broker, "ops", rights("topic", "orders", "DESCRIBE"))
    assert "authorization failure" in tools.fails(COMMAND, *of_producers)
    assert "DescribeProducers needs READ on TOPIC orders" in str(broker.denials()[-1])
    broker.revoke(broker.grant("ops", "DESCRIBE", topic="orders"))
    broker.forget_denials()
    needed = rights("topic", "orders", "READ")
    grant(broker, "ops", needed)
    [described] = [row for row in tools.table(COMMAND, *of_producers) if row[0] == str(HANGING)]
    assert (described[1], described[-1]) == ("3", "0")
    now = ("--max-transaction-timeout", 0)
    for places in (("--topic", "orders", "--partition", 1), ("--topic", "orders")):
        [found] = tools.table(COMMAND, "find-hanging", *places, *now)
        assert found[:3] == ["orders", "1", str(HANGING)]
    # It began just now, which is no reason to call it hanging.
    assert tools.table(COMMAND, "find-hanging", "--topic", "orders") == []
    abort = ("abort", "--topic", "orders", "--partition", 1, "--start-offset")
    assert "Could not find any open transactions starting at offset 5" in tools.fails(
        COMMAND, *abort, 5
    )
    assert "failed cluster authorization" in tools.fails(COMMAND, *abort, 0)
    assert "WriteTxnMarkers needs" in str(broker.denials()[-1])
    assert committed(broker, 1) == []
    broker.forget_denials()
    needed.append(ALTER_CLUSTER)
    grant(broker, "ops", needed[-1:])
    tools.runs(COMMAND, *abort, 0)
    assert committed(broker, 1) == [b"last"]
    assert tools.table(COMMAND, "find-hanging", "--topic", "orders", *now) == []
    was_enough(broker, needed)


def test_a_node_is_searched_for_what_hangs_and_what_goes_on_is_left_out(broker, tools):
    hang(broker, 1)
    writing(broker, "slow", 0)
    leaders = len(broker.bootstrap_servers.split(","))
    needed = rights("topic", "orders", "READ")
    grant(broker, "ops", needed)

    def found() -> list[str]:
        searches = [
            tools.table(
                COMMAND, "find-hanging", "--broker-id", node, "--max-transaction-timeout", 0
            )
            for node in range(1, leaders + 1)
        ]
        return sorted(row[1] for rows in searches for row in rows)

    # Of whose transactional id it is not told, it takes to be nobody's: so does Kafka's tool.
    assert found() == ["0", "1"]
    assert "ListTransactions needs DESCRIBE on TRANSACTIONAL_ID slow" in str(broker.denials()[-1])
    broker.forget_denials()
    needed += rights("transactional_id", "slow", "DESCRIBE")
    grant(broker, "ops", needed[-1:])
    assert found() == ["1"]
    was_enough(broker, needed)


def test_what_hangs_is_aborted_by_its_producer_as_with_brokers_that_do_not_tell_its_offset(
    broker, tools
):
    hang(broker, 2)
    needed = [CLUSTER_ACTION, *rights("topic", "orders", "DESCRIBE")]
    abort = (
        *("abort", "--topic", "orders", "--partition", 2, "--producer-id", HANGING),
        *("--coordinator-epoch", 0, "--producer-epoch"),
    )
    grant(broker, "ops", needed)
    # An epoch that is over ends nothing.
    assert "epoch" in tools.fails(COMMAND, *abort, 2)
    tools.runs(COMMAND, *abort, 3)
    was_enough(broker, needed)
    broker.grant("ops", "READ", topic="orders")
    of_producers = ("describe-producers", "--topic", "orders", "--partition", 2)
    [described] = tools.table(COMMAND, *of_producers)
    assert described[-1] == "None"


def test_a_transaction_is_terminated_by_force_and_its_producer_fenced(broker, tools):
    producer = writing(broker, "stuck")
    terminate = (COMMAND, "forceTerminateTransaction", "--transactionalId", "stuck")
    grant(broker, "ops", rights("transactional_id", "stuck", "DESCRIBE"))
    assert "authorization" in tools.fails(*terminate).lower()
    assert "InitProducerId needs WRITE on TRANSACTIONAL_ID stuck" in str(broker.denials()[-1])
    broker.revoke(broker.grant("ops", "DESCRIBE", transactional_id="stuck"))
    broker.forget_denials()
    needed = rights("transactional_id", "stuck", "WRITE")
    grant(broker, "ops", needed)
    tools.runs(*terminate)
    [listed] = tools.table(COMMAND, "list")
    assert listed[3] == "Empty"
    was_enough(broker, needed)
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        producer.commit_transaction(WITHIN)
    assert committed(broker, 0) == []


def test_a_transaction_whose_time_is_up_does_not_hang(broker, tools):
    writing(broker, "slow")
    needed = [*rights("topic", "orders", "READ"), *rights("transactional_id", "slow", "DESCRIBE")]
    grant(broker, "ops", needed)
    broker.advance(TIMEOUT_SECONDS + 1)
    [listed] = tools.table(COMMAND, "list")
    assert listed[3] == "CompleteAbort"
    search = ("find-hanging", "--topic", "orders", "--max-transaction-timeout", 0)
    assert tools.table(COMMAND, *search) == []
    was_enough(broker, needed)
