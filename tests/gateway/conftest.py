"""Gateways: before a real Kafka 4.3.0, and before a cluster in memory, which needs no JVM."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka


def gateway_before(address: str, directory: Path, **overrides: str) -> Broker:
    """Start a gateway whose cluster upstream is at an address."""
    settings = {"aclbroker.upstream.bootstrap.servers": address, **overrides}
    gateway = ThreadBroker(directory, settings)
    gateway.start()
    return gateway


def cluster_in_memory(directory: Path, **overrides: str) -> Broker:
    """Start a cluster in memory, in which everything is allowed."""
    settings = {
        "aclbroker.cluster": "memory",
        "aclbroker.catalog.topics": "plain:3,single:1",
        "authorizer.class.name": "",
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
