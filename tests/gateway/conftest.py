"""Gateways: before a real Kafka 4.3.0, and before a cluster in memory, which needs no JVM."""

from collections.abc import Iterator

import pytest

from tests.memory_cluster.conftest import _connections, commands
from tests.support.broker import Broker
from tests.support.gateway import cluster_in_memory, gateway_before
from tests.support.kafka import Kafka

__all__ = ["_connections", "commands"]


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
