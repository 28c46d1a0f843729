"""Gateways: before a real Kafka 4.3.0, and before a cluster in memory, which needs no JVM."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka, free_ports

IN_MEMORY = {"aclbroker.store": "memory:"}
"""The store of a broker that lives as long as the session of the tests, without a thread."""


def gateway_before(address: str, directory: Path, **overrides: str) -> Broker:
    """Start a gateway whose cluster upstream is at an address."""
    settings = {"aclbroker.upstream.bootstrap.servers": address, **IN_MEMORY, **overrides}
    gateway = ThreadBroker(directory, settings)
    gateway.start()
    return gateway


def gateway_of_nodes(address: str, directory: Path, ids: range, **overrides: str) -> Broker:
    """Start a gateway before a cluster of several brokers; its addresses are those of brokers."""
    first = {name: _consecutive_ports(ids) for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    settings = {
        f"listener.name.{name.lower()}.aclbroker.upstream.nodes.first.port": str(port)
        for name, port in first.items()
    }
    gateway = gateway_before(address, directory, **settings, **overrides)
    gateway.listeners = {
        name: ",".join(f"127.0.0.1:{port + number}" for number in ids)
        for name, port in first.items()
    }
    return gateway


def _consecutive_ports(ids: range) -> int:
    """Return a port such that the ports of all ids behind it are free."""
    while True:
        [first] = free_ports(1)
        with ExitStack() as probes, suppress(OSError):
            for number in ids:
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", first + number))
            return first


def cluster_in_memory(directory: Path, **overrides: str) -> Broker:
    """Start a cluster in memory, in which everything is allowed."""
    settings = {
        "aclbroker.cluster": "memory",
        "aclbroker.catalog.topics": "plain:3,single:1",
        "authorizer.class.name": "",
        **IN_MEMORY,
    }
    broker = ThreadBroker(directory, {**settings, **overrides})
    broker.start()
    return broker


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    yield
    while raw.OPEN:
        raw.OPEN.pop().close()


@pytest.fixture(scope="session")
def before_kafka(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A gateway before a Kafka, in which the gateway is a super user."""
    gateway = gateway_before(kafka.listeners["PLAINTEXT"], tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.terminate()


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster in memory, in which everything is allowed."""
    broker = cluster_in_memory(tmp_path_factory.mktemp("upstream"))
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def before_memory(memory: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A gateway before a cluster in memory."""
    gateway = gateway_before(memory.listeners["PLAINTEXT"], tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.terminate()


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A JVM that runs Kafka's tools one after the other."""
    running = Commands(tmp_path_factory.mktemp("commands") / "stderr")
    yield running
    running.close()
