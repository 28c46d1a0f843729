"""The brokers that are compared over the wire, each a process started as its operator would."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from benchmarks.exchange import Exchange
from benchmarks.peers import AS_IN_PRODUCTION, aclbroker, go_program
from benchmarks.rows import KAFKA, KFAKE, OURS
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import request_frame
from tests.support.kafka import PROTOCOLS, Kafka, free_ports
from tests.support.process import LoggedProcess, wait_for

TOPIC, PARTITIONS = "orders", 3
"""The topic that every broker has."""

TOPICS = {TOPIC: PARTITIONS}
LISTENERS = tuple(PROTOCOLS)

STARTS_WITHIN = 120.0
STOPS_WITHIN = 60.0
_API_VERSIONS = request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

KAFKA_HEAP = ("-Xms1g", "-Xmx1g")
KAFKA_LINGER = {"controller.quorum.append.linger.ms": "25"}
"""Kafka's default, which its tests here lower to 0."""


@dataclass
class Server:
    """A broker whose storage exists: its process, and the address where users log in.

    ``listeners`` has the addresses of all listeners by their names, where there are more.
    """

    process: LoggedProcess
    address: str
    listeners: Mapping[str, str] = field(default_factory=dict)
    created: int = 0
    """How many of the numbered ACLs (`requests.creation`) it was told to create."""
    deleted: int = 0
    """How many of their principals' ACLs it was told to delete."""
    warmed: set[str] = field(default_factory=set)
    """The rows whose requests it was asked often enough to answer them as fast as it can."""
    records: Path | None = None
    """The file where it records what it denies, if it does so."""

    def start(self) -> float:
        """Start the process; return the seconds until it answers ApiVersions."""
        begin = time.perf_counter()
        self._spawn()
        wait_for("an answer", lambda: _answers(self.address), STARTS_WITHIN)
        return time.perf_counter() - begin

    def stop(self) -> None:
        """End the process in good order."""
        self.process.terminate(STOPS_WITHIN)

    def _spawn(self) -> None:
        self.process.spawn()

    def connect(self, user: str = "admin") -> Exchange:
        """Return a new connection on which a user is logged in."""
        return Exchange(self.address, user)

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self.process.process is not None and self.process.process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id."""
        return self.process.running.pid

    @property
    def pids(self) -> list[int]:
        """The ids of the process and of those that it has begun."""
        found = [self.pid]
        for pid in found:
            children = Path(f"/proc/{pid}/task/{pid}/children")
            found += map(int, children.read_text().split())
        return found


def _answers(address: str) -> bool | None:
    host, _, port = address.rpartition(":")
    try:
        with BlockingClient(connect(host, int(port), timeout=1), "test") as client:
            client.send(_API_VERSIONS)
            return bool(client.receive())
    except OSError:
        return None


class _Kfake(LoggedProcess):
    """The fake broker of franz-go, which keeps everything in memory."""

    def __init__(self, directory: Path) -> None:
        [port] = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        passwords = [f"-{user}={PASSWORDS[user]}" for user in ("admin", "alice")]
        command = [go_program("kfake"), f"-port={port}", f"-topic={TOPIC}", *passwords]
        super().__init__(command, directory, "kfake.log")


def ours(
    directory: Path,
    settings: Mapping[str, str],
    listeners: Sequence[str] = LISTENERS,
    topics: Mapping[str, int] = TOPICS,
    command: Sequence[str] = (),
) -> Server:
    """Return this product with settings of its own, listeners by their names, and topics.

    ``command`` replaces that of an environment without the developers' packages.
    """
    ports = free_ports(len(listeners))
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(listeners, ports, strict=True)}
    listening = ",".join(f"{name}://{address}" for name, address in addresses.items())
    catalog = ",".join(f"{topic}:{partitions}" for topic, partitions in topics.items())
    told = {"listeners": listening, "aclbroker.catalog.topics": catalog, **settings}
    broker = Broker(directory, told)
    broker.command[:1] = command or aclbroker()
    broker.start()
    broker.terminate()
    return Server(broker, addresses["SASL_PLAINTEXT"], addresses)


def kafka(
    directory: Path,
    flags: tuple[str, ...],
    settings: Mapping[str, str],
    listeners: Sequence[str] = LISTENERS,
    topics: Mapping[str, int] = TOPICS,
) -> Server:
    """Return a Kafka 4.3.0, with flags of its JVM and settings beside those it is shipped with."""
    broker = Kafka(
        directory,
        flags=(*AS_IN_PRODUCTION, *KAFKA_HEAP, *flags),
        overrides={**KAFKA_LINGER, **settings},
        protocols={name: name for name in listeners},
    )
    broker.start()
    server = Server(broker, broker.listeners["SASL_PLAINTEXT"], broker.listeners)
    with server.connect() as admin:
        wanted = [
            CreatableTopic(name, partitions, 1, (), ()) for name, partitions in topics.items()
        ]
        answer = admin.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(wanted))
        if any(topic.error_code for topic in answer.topics):
            raise RuntimeError(f"a topic was not created: {answer}")
    server.stop()
    return server


def kfake(directory: Path) -> Server:
    """Return the fake broker of franz-go."""
    process = _Kfake(directory)
    return Server(process, process.address)


@contextlib.contextmanager
def prepared(peers: tuple[str, ...], audited: bool = False) -> Iterator[dict[str, Server]]:
    """Yield the brokers by their side's name, not started; what still runs at the end is killed.

    Without ``audited`` none of them records decisions; with it ours and Kafka write what they deny
    to a file, Kafka does not linger before it writes ACLs, and kfake is left out.
    """
    audit = {"aclbroker.audit.file": "audit.log"} if audited else {"aclbroker.audit.level": "off"}
    flags = ("-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=info",) if audited else ()
    linger = {"controller.quorum.append.linger.ms": "0"} if audited else {}
    made: dict[str, Server] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        for side in (OURS, *peers):
            (Path(name) / side).mkdir()
        try:
            made[OURS] = ours(Path(name) / OURS, audit)
            if KAFKA in peers:
                made[KAFKA] = kafka(Path(name) / KAFKA, flags, linger)
            if KFAKE in peers and not audited:
                made[KFAKE] = kfake(Path(name) / KFAKE)
            yield made
        finally:
            for server in made.values():
                if server.is_running:
                    server.process.kill()
