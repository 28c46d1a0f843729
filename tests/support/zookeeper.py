"""A real ZooKeeper 3.8.4, and a real Kafka 3.9.1 that keeps its ACLs there (AclAuthorizer)."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.accounts import SASL_PLAIN, properties_text
from tests.support.kafka import free_ports
from tests.support.packages import JVM_FLAGS, jars, java_command
from tests.support.process import LoggedProcess

KAFKA = ("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-reload4j:1.7.36")
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STARTED = "started (kafka.server.KafkaServer)"
READY_WITHIN = 120.0

_LOG4J = """\
log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
"""


def zookeeper_jars() -> Path:
    """The jars of a Kafka 3.9.1 broker, its tools, and ZooKeeper 3.8.4."""
    return jars("kafka-3.9.1-zookeeper", KAFKA)


def _java(main_class: str, directory: Path, heap: str, *flags: str) -> list[str]:
    log4j = directory / "log4j.properties"
    log4j.write_text(_LOG4J)
    options = (*JVM_FLAGS, f"-Xmx{heap}", f"-Dlog4j.configuration=file:{log4j}", *flags)
    return java_command(main_class, zookeeper_jars(), flags=options)


class Zookeeper(LoggedProcess):
    """One ZooKeeper on loopback, whose data outlives `kill` and `restart`; `address` is host:port.

    Sessions may be as short as 0.4 s. `settings` are added to its configuration, `flags` to the
    JVM's.
    """

    def __init__(
        self, directory: Path, settings: Mapping[str, str] | None = None, *flags: str
    ) -> None:
        [port] = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self._port = port
        self._file = directory / "zoo.cfg"
        self._settings = {
            "dataDir": str(directory / "zookeeper"),
            "clientPort": str(port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "tickTime": "200",
            "maxSessionTimeout": "60000",
            "maxClientCnxns": "0",
            "4lw.commands.whitelist": "*",
            **(settings or {}),
        }
        command = _java("org.apache.zookeeper.server.ZooKeeperServerMain", directory, "256m")
        main = command.pop()
        super().__init__([*command, *flags, main, str(self._file)], directory, "zookeeper.log")

    def start(self) -> None:
        """Start it and wait until it serves requests."""
        self._file.write_text(properties_text(self._settings))
        self.spawn()
        self.wait_until_ready(self._is_serving, READY_WITHIN)

    def _is_serving(self) -> bool | None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._port), 5) as peer,
        ):
            peer.sendall(b"srvr")
            answer = peer.makefile("rb").read()
            return b"Mode: standalone" in answer or None
        return None


@contextlib.contextmanager
def running_zookeeper(
    directory: Path, settings: Mapping[str, str] | None = None, *flags: str
) -> Iterator[Zookeeper]:
    """A started ZooKeeper, killed at the end."""
    zookeeper = Zookeeper(directory, settings, *flags)
    try:
        zookeeper.start()
        yield zookeeper
    finally:
        if zookeeper.process is not None:
            zookeeper.kill()


class ZookeeperKafka(LoggedProcess):
    """One Kafka 3.9.1 with AclAuthorizer, whose ACLs are at ``connect``: `listeners` as `Kafka`'s.

    The clients of its PLAINTEXT listener are super users, SASL_PLAINTEXT has the users of
    `accounts`.
    """

    def __init__(self, directory: Path, connect: str) -> None:
        names = ("PLAINTEXT", "SASL_PLAINTEXT")
        self.listeners = {
            name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(2), strict=True)
        }
        self._file = directory / "server.properties"
        self._properties = {
            "broker.id": "1",
            "listeners": ",".join(f"{name}://{each}" for name, each in self.listeners.items()),
            "zookeeper.connect": connect,
            "log.dirs": str(directory / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "authorizer.class.name": ACL_AUTHORIZER,
            "super.users": "User:admin;User:ANONYMOUS",
            **SASL_PLAIN,
        }
        command = _java("kafka.Kafka", directory, "384m")
        super().__init__([*command, str(self._file)], directory, "kafka.log")

    def start(self) -> None:
        """Start the node and wait until it serves requests."""
        self._file.write_text(properties_text(self._properties))
        self.spawn()
        self.wait_until_ready(lambda: STARTED in self.new_log_text() or None, READY_WITHIN)


@contextlib.contextmanager
def running_zookeeper_kafka(directory: Path, connect: str) -> Iterator[ZookeeperKafka]:
    """A started Kafka 3.9.1, killed at the end."""
    kafka = ZookeeperKafka(directory, connect)
    try:
        kafka.start()
        yield kafka
    finally:
        if kafka.process is not None:
            kafka.kill()


def acl_command(
    directory: Path, connect: str, *arguments: str, jaas: Path | None = None, answer: str = ""
) -> str:
    """Return the output of `kafka-acls.sh` with ``arguments``, when it uses ZooKeeper directly.

    The text of standard error comes last. ``jaas`` is a file with the section ``Client``, for a
    login to ZooKeeper. ``answer`` is the line on the tool's standard input.
    """
    login = () if jaas is None else (f"-Djava.security.auth.login.config={jaas}",)
    command = [
        *_java("kafka.admin.AclCommand", directory, "96m", *login),
        *("--authorizer", ACL_AUTHORIZER),
        *("--authorizer-properties", f"zookeeper.connect={connect}"),
        *arguments,
    ]
    done = subprocess.run(
        command,
        cwd=directory,
        input=f"{answer}\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr
