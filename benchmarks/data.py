"""The cluster in memory beside Kafka and kfake: records, groups, transactions of real clients."""

from __future__ import annotations

import contextlib
import itertools
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

from confluent_kafka import Consumer, Producer

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from aclbroker.testing import AclBroker
from benchmarks.peers import AS_IN_PRODUCTION
from benchmarks.results import Results
from benchmarks.rows import KAFKA, KFAKE, MEGABYTES, OURS, RATE, Row, Work, one
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, kafka, kfake, ours
from tests.support.accounts import PASSWORDS
from tests.support.client import request_frame
from tests.support.packages import java_command, kafka_jars

SECTION: Final = "Records, groups and transactions, in memory"
RECORDS, RECORD_BYTES = 1_000_000, 1_024
HELD_RECORDS, HELD_BYTES = 1_000_000, 256
MEMBERS: Final = 4
JOINS: Final = 3
TRANSACTIONS: Final = 1_000
FIXTURES: Final = 20
WITHIN: Final = 120.0
_BETWEEN_RECORDS: Final = 0.02  # seconds

_MIB: Final = 1 << 20
_MEMORY: Final = 2 << 30
_DISK: Final = "Kafka writes records to its log on disk, the others keep them in memory."
_DELAYS: Final = (
    "The median of three groups. Brokers wait a second for further members of a new classic group, "
    "kfake as long as it does, and members of the KIP-848 groups send heartbeats every second."
)
_STARTS: Final = "Until ApiVersions is answered; Kafka on formatted storage."
_FIXTURE: Final = (
    "From the construction of `aclbroker.testing.AclBroker`, in a process that started one before, "
    "to the first answered request; the median of 20."
)
_HELD: Final = (
    f"How much the process grew when it took {HELD_RECORDS:,} records of {HELD_BYTES} bytes, which "
    "are 257 MiB as batches; the least of the rounds' peers may hold garbage."
)

_SETTINGS: Final = {
    "aclbroker.cluster": "memory",
    "aclbroker.memory.max.bytes": str(_MEMORY),
    "aclbroker.audit.level": "off",
}
_ALIKE: Final = {
    "group.initial.rebalance.delay.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}

_row = partial(Row, section=SECTION)
_names = (f"bench-{number}" for number in itertools.count())


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for work in works() for row in work.rows]


def works() -> list[Work[Server]]:
    """Return all that is measured."""
    return [
        one(_row("data-start", title="start to first answer", unit="s", note=_STARTS), _start),
        one(
            _row(
                "data-fixture",
                title="fixture of a test to first answer",
                unit="ms",
                target=100.0,
                note=_FIXTURE,
            ),
            _fixture,
            sides=(OURS,),
        ),
        Work(
            (
                _row("data-produce", title="ProducerPerformance", unit=MEGABYTES, target=60.0),
                _row(
                    "data-consume",
                    title="ConsumerPerformance",
                    unit=MEGABYTES,
                    target=60.0,
                    note=_DISK,
                ),
            ),
            _throughput,
        ),
        _join("classic"),
        _join("consumer"),
        one(
            _row("data-transactions", title="transactions of one record, one producer", unit=RATE),
            _transactions,
        ),
        one(
            _row(
                "data-memory",
                title=f"memory of {HELD_RECORDS:,} records",
                unit="MiB",
                target=1.2 * HELD_RECORDS * HELD_BYTES / _MIB,
                note=_HELD,
            ),
            _held,
            sides=(OURS, KFAKE),
            rounds=1,
        ),
    ]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted, on brokers that live through all of it."""
    wanted = [work for work in works() if options.wants(*work.rows)]
    if not wanted or options.quick:
        return
    with _prepared(options.peers) as servers:
        for server in servers.values():
            server.start()
        for work in wanted:
            for _ in range(work.rounds or options.rounds):
                play([work], servers, results)
            tell([work], results)


@contextlib.contextmanager
def _prepared(peers: Sequence[str]) -> Iterator[dict[str, Server]]:
    makers: Mapping[str, Callable[[Path], Server]] = {
        OURS: lambda directory: ours(directory, {**_SETTINGS, **_ALIKE}),
        KAFKA: lambda directory: kafka(directory, (), _ALIKE),
        KFAKE: kfake,
    }
    made: dict[str, Server] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        try:
            for side in (OURS, *peers):
                directory = Path(name) / side
                directory.mkdir()
                made[side] = makers[side](directory)
            yield made
        finally:
            for server in made.values():
                if server.is_running:
                    server.process.kill()


def _start(server: Server) -> float:
    server.stop()
    return server.start()


def _fixture(_: Server) -> float:
    with AclBroker():
        pass
    return statistics.median(_started() for _ in range(FIXTURES)) * 1000


def _started() -> float:
    """Return the seconds from nothing to an answer of a broker in this process."""
    begin = time.perf_counter()
    with AclBroker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        with BlockingClient(connect(host, int(port), timeout=10), "test") as client:
            client.send(request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()))
            client.receive()
            return time.perf_counter() - begin


@contextlib.contextmanager
def _topic(server: Server, partitions: int = 1) -> Iterator[str]:
    """Make a topic, of a name that no other has, and delete it at the end."""
    name = next(_names)
    creation = CreateTopicsRequest([CreatableTopic(name, partitions, 1, (), ())], timeout_ms=10_000)
    with server.connect() as admin:
        answer = admin.ask(ApiKey.CREATE_TOPICS, 4, creation)
        if answer.topics[0].error_code:
            raise RuntimeError(f"a topic was not created: {answer}")
    yield name
    with server.connect() as admin:
        admin.ask(
            ApiKey.DELETE_TOPICS, 1, DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
        )


def _throughput(server: Server) -> tuple[float, float]:
    """Return the MB a second that Kafka's own tools produce, and consume again."""
    with _topic(server) as topic:
        return _produced(server, topic, RECORDS, RECORD_BYTES), _consumed(server, topic)


def _produced(server: Server, topic: str, records: int, size: int) -> float:
    said = _tool(
        "org.apache.kafka.tools.ProducerPerformance",
        server,
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
        *("--throughput", "-1", "--bootstrap-server", server.address),
    )
    # The last line sums up, after one every five seconds.
    return float(re.findall(r"\(([0-9.]+) MB/sec\)", said)[-1])


def _consumed(server: Server, topic: str) -> float:
    said = _tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        server,
        *("--topic", topic, "--num-records", str(RECORDS), "--bootstrap-server", server.address),
    )
    head, values = (line.split(", ") for line in said.strip().splitlines()[-2:])
    found = dict(zip(head, values, strict=True))
    # Its other rate counts the time in which the group is formed.
    return float(found["fetch.MB.sec"])


def _tool(name: str, server: Server, *arguments: str) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        login = f'username="admin" password="{PASSWORDS["admin"]}"'
        file.write(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};\n"
        )
        file.flush()
        java = java_command(name, kafka_jars(), minimum=17, flags=(*AS_IN_PRODUCTION, "-Xmx512m"))
        return subprocess.run(
            [*java, *arguments, "--command-config", file.name],
            check=True,
            capture_output=True,
            text=True,
            timeout=WITHIN,
        ).stdout


def _client(server: Server, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": server.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": PASSWORDS["admin"],
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def _join(protocol: str) -> Work[Server]:
    title = {"classic": "classic", "consumer": "KIP-848"}[protocol]
    row = _row(
        f"data-join-{protocol}",
        title=f"{MEMBERS} members of a {title} group join, to each one's first record",
        unit="s",
        note=_DELAYS,
    )

    def run(server: Server) -> float:
        with _topic(server, MEMBERS) as topic, _writing(server, topic):
            return statistics.median(_joined(server, topic, protocol) for _ in range(JOINS))

    return one(row, run)


@contextlib.contextmanager
def _writing(server: Server, topic: str) -> Iterator[None]:
    """Write a record to each partition of a topic, again and again."""
    producer = Producer(_client(server, linger_ms=0))
    is_over = Event()

    def write() -> None:
        while not is_over.wait(_BETWEEN_RECORDS):
            for partition in range(MEMBERS):
                producer.produce(topic, b"one", partition=partition)
            producer.poll(0)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield
        finally:
            is_over.set()
            writing.result()
            producer.flush(WITHIN)


def _joined(server: Server, topic: str, protocol: str) -> float:
    """Return the seconds until each member of a new group has a record."""
    settings = _client(
        server, group_id=next(_names), group_protocol=protocol, auto_offset_reset="earliest"
    )
    members = [Consumer(settings) for _ in range(MEMBERS)]
    try:
        begin = time.perf_counter()
        for member in members:
            member.subscribe([topic])
        have_records: set[Consumer] = set()
        with ThreadPoolExecutor(MEMBERS) as pool:
            list(pool.map(partial(_poll, have_records), members))
        if len(have_records) < MEMBERS:
            raise RuntimeError(f"a member of a {protocol} group has no record")
        return time.perf_counter() - begin
    finally:
        for member in members:
            member.close()


def _poll(have_records: set[Consumer], member: Consumer) -> None:
    """Poll until all members have records: one that does not holds up those who join."""
    end = time.perf_counter() + WITHIN
    while len(have_records) < MEMBERS and time.perf_counter() < end:
        message = member.poll(0.02)
        if message is not None and message.error() is None:
            have_records.add(member)


def _transactions(server: Server) -> float:
    """Return how many transactions a second one producer commits, each with a record."""
    with _topic(server) as topic:
        producer = Producer(_client(server, transactional_id=next(_names), linger_ms=0))
        producer.init_transactions(WITHIN)
        begin = time.perf_counter()
        for _ in range(TRANSACTIONS):
            producer.begin_transaction()
            producer.produce(topic, b"one")
            producer.commit_transaction(WITHIN)
        return TRANSACTIONS / (time.perf_counter() - begin)


def _held(server: Server) -> float:
    """Return the MiB by which the process of a broker grows when it takes records."""
    server.stop()
    server.start()
    before = server.process.resident_mib
    with _topic(server) as topic:
        _produced(server, topic, HELD_RECORDS, HELD_BYTES)
        return server.process.resident_mib - before
