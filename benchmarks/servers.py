"""The brokers that are compared over the wire, each a process started as its operator would."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping
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
from tests.support.kafka import Kafka, free_ports
from tests.support.process import LoggedProcess, wait_for

TOPIC, PARTITIONS = "orders", 3
"""The topic that every broker has."""

STARTS_WITHIN = 120.0
STOPS_WITHIN = 60.0
_API_VERSIONS = request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

KAFKA_HEAP = ("-Xms1g", "-Xmx1g")
KAFKA_LINGER = {"controller.quorum.append.linger.ms": "25"}
"""Kafka's default, which its tests here lower to 0."""


@dataclass
class Server:
    """A broker whose storage exists: its process, and the address where users log in."""

    process: LoggedProcess
    address: str
    created: int = 0
    """How many of the numbered ACLs (`requests.creation`) it was told to create."""
    deleted: int = 0
    """How many of their principals' ACLs it was told to delete."""
    warmed: set[str] = field(default_factory=set)
    """The rows whose requests it was asked often enough to answer them as fast as it can."""

    def start(self) -> float:
        """Start the process; return the seconds until it answers ApiVersions."""
        begin = time.perf_counter()
        self.process.spawn()
        wait_for("an answer", lambda: _answers(self.address), STARTS_WITHIN)
        return time.perf_counter() - begin

    def stop(self) -> None:
        """End the process in good order."""
        self.process.terminate(STOPS_WITHIN)

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


def ours(directory: Path, settings: Mapping[str, str]) -> Server:
    """Return this product with settings of its own."""
    plaintext, sasl = (f"127.0.0.1:{port}" for port in free_ports(2))
    listeners = f"PLAINTEXT://{plaintext},SASL_PLAINTEXT://{sasl}"
    catalog = {"aclbroker.catalog.topics": f"{TOPIC}:{PARTITIONS}"}
    broker = Broker(directory, {"listeners": listeners, **catalog, **settings})
    broker.command[:1] = aclbroker()
    broker.start()
    broker.terminate()
    return Server(broker, sasl)


def kafka(directory: Path, flags: tuple[str, ...], settings: Mapping[str, str]) -> Server:
    """Return a Kafka 4.3.0, with flags of its JVM and settings beside those it is shipped with."""
    broker = Kafka(
        directory,
        flags=(*AS_IN_PRODUCTION, *KAFKA_HEAP, *flags),
        overrides={**KAFKA_LINGER, **settings},
    )
    broker.start()
    server = Server(broker, broker.listeners["SASL_PLAINTEXT"])
    with server.connect() as admin:
        topic = CreatableTopic(TOPIC, PARTITIONS, 1, (), ())
        answer = admin.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest((topic,)))
        if answer.topics[0].error_code:
            raise RuntimeError(f"the topic was not created: {answer}")
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
