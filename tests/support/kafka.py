"""A real Kafka 4.3.0 on loopback: one KRaft node with the StandardAuthorizer.

The listeners are SASL_PLAINTEXT (PLAIN, the users of `accounts`) and PLAINTEXT, whose anonymous
clients are super users.
"""

import contextlib
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from aclbroker.broker.stores.store import new_cluster_id
from tests.support.accounts import AUTHORIZER, SASL_PLAIN, properties_text
from tests.support.packages import JVM_FLAGS, java_command, kafka_jars
from tests.support.process import LoggedProcess

PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SASL_PLAINTEXT": "SASL_PLAINTEXT"}
STARTED = "Kafka Server started"
READY_WITHIN = 120.0

QUICK_TO_START = (*JVM_FLAGS, "-Xmx512m")
"""The JVM's flags for a Kafka that has to answer few requests soon."""


STARTS_AGAIN_SOON = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
"""Settings of a Kafka that is killed and started again.

A broker cannot register again before its last session has timed out, by default after 9 s.
"""

PORTS = range(12_000, 32_000)
"""Linux gives none of these to who asks for any port, nor to a connection: by default it begins at
32,768.
"""


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 on which nobody listens now.

    So one of them is most likely still free when a server that was there starts again, though
    other tests run at the same time.
    """
    found: set[int] = set()
    while len(found) < count:
        # Some tests have the numbers of `random` begin anew.
        port = secrets.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            found.add(port)
    return list(found)


class Kafka(LoggedProcess):
    """One Kafka 4.3.0 node: `listeners` maps a listener name to its host:port.

    `flags` and `class_path` are the JVM's; it must log that it `STARTED` to standard output.
    `overrides` are added to server.properties, or replace its entries.
    `protocols` has the security protocol of each listener; PLAINTEXT is the inter-broker one.
    """

    format_options: tuple[str, ...] = ()
    """Options of `kafka-storage.sh format`, besides those that it always has."""

    def __init__(
        self,
        directory: Path,
        *,
        flags: tuple[str, ...] = QUICK_TO_START,
        overrides: dict[str, str] | None = None,
        protocols: Mapping[str, str] = PROTOCOLS,
        class_path: tuple[Path, ...] = (),
    ) -> None:
        class_path = class_path or (kafka_jars(),)
        self._properties_file = directory / "server.properties"
        self._overrides = overrides or {}
        started_is_logged = "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"
        java = java_command(
            "kafka.Kafka", *class_path, minimum=17, flags=(*flags, started_is_logged)
        )
        command = [*java, str(self._properties_file)]
        super().__init__(command, directory, "kafka.log")
        self._format = java_command("kafka.tools.StorageTool", *class_path, minimum=17)
        self._protocols = {**protocols, "CONTROLLER": "PLAINTEXT"}
        ports = free_ports(len(self._protocols))
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self._all_listeners = dict(zip(self._protocols, addresses, strict=True))
        self.listeners = {name: self._all_listeners[name] for name in protocols}

    @property
    def controller(self) -> str:
        """The address of its controller."""
        return self._all_listeners["CONTROLLER"]

    def start(self) -> None:
        """Format the storage, start the node and wait until it serves requests."""
        self.format(new_cluster_id())
        self.start_again()

    def format(self, cluster_id: str, **overrides: str) -> None:
        """Write server.properties, with further entries, and format the storage."""
        text = properties_text(self._properties() | overrides)
        self._properties_file.write_text(text)
        options = ["format", f"--cluster-id={cluster_id}", f"--config={self._properties_file}"]
        options += self.format_options
        with self.log.open("ab") as log:
            subprocess.run(
                [*self._format, *options], cwd=self.directory, stdout=log, stderr=log, check=True
            )

    def start_again(self) -> None:
        """Start the node, which has run before and has ended, and wait until it serves requests."""
        self.spawn()
        self.wait_until_started()

    def wait_until_started(self) -> None:
        """Wait until the node serves requests."""
        self.wait_until_ready(lambda: STARTED in self.new_log_text() or None, READY_WITHIN)

    def _properties(self) -> dict[str, str]:
        listeners = self._all_listeners
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{listeners['CONTROLLER']}",
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "listener.security.protocol.map": ",".join(map(":".join, self._protocols.items())),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            # Kafka would hold each write back for 25 ms, in case there is more to write with it.
            "controller.quorum.append.linger.ms": "0",
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **AUTHORIZER,
            **SASL_PLAIN,
            **self._overrides,
        }


@contextlib.contextmanager
def running_kafka(
    directory: Path,
    overrides: dict[str, str] | None = None,
    protocols: Mapping[str, str] = PROTOCOLS,
) -> Iterator[Kafka]:
    """A started Kafka, stopped at the end."""
    kafka = Kafka(directory, overrides=overrides, protocols=protocols)
    try:
        kafka.start()
        yield kafka
    finally:
        if kafka.process is not None:
            # Nothing of it is kept, so it need not stop in good order, which takes seconds.
            kafka.kill()


@contextlib.contextmanager
def running_cluster(
    directory: Path,
    size: int = 3,
    *,
    flags: tuple[str, ...] = (*JVM_FLAGS, "-Xmx256m"),
    settings: Mapping[str, str] | None = None,
    protocols: Mapping[str, str] | None = None,
) -> Iterator[list[Kafka]]:
    """Nodes of one cluster, each a broker and a controller, whose topics outlive one of them.

    They have a listener without logins unless ``protocols`` says otherwise, as for `Kafka`.
    """
    overrides = {
        "offsets.topic.replication.factor": str(size),
        "transaction.state.log.replication.factor": str(size),
        "transaction.state.log.min.isr": "2",
        **STARTS_AGAIN_SOON,
        **(settings or {}),
    }
    nodes = []
    for number in range(1, size + 1):
        place = directory / f"node-{number}"
        place.mkdir()
        nodes.append(
            Kafka(
                place,
                flags=flags,
                overrides={**overrides, "node.id": str(number)},
                protocols=protocols or {"PLAINTEXT": "PLAINTEXT"},
            )
        )
    voters = ",".join(f"{number}@{node.controller}" for number, node in enumerate(nodes, 1))
    cluster_id = new_cluster_id()
    try:
        for node in nodes:
            node.format(cluster_id, **{"controller.quorum.voters": voters})
            node.spawn()
        for node in nodes:
            node.wait_until_started()
        yield nodes
    finally:
        for node in nodes:
            if node.process is not None:
                node.kill()
