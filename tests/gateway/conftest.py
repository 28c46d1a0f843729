"""Gateways: before a real Kafka 4.3.0, and before a cluster in memory, which needs no JVM."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.meddling import MeddlingProxy, World
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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    proxy = MeddlingProxy("")
    with proxy:
        # Clients and the gateway get the address of the proxy.
        listeners = {"listeners": "PLAINTEXT://127.0.0.1:0"}
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        (tmp_path / "upstream").mkdir()
        large = {"message.max.bytes": str(64 << 20)}
        upstream = cluster_in_memory(tmp_path / "upstream", **listeners, **advertised, **large)
        proxy.target = upstream.listeners["PLAINTEXT"]
        gateway = gateway_before(
            proxy.address,
            tmp_path,
            **{
                "aclbroker.metrics.address": "127.0.0.1:0",
                "connection.failed.authentication.delay.ms": "10",
            },
        )
        try:
            yield World(gateway, proxy)
        finally:
            proxy.drop()
            gateway.terminate()
            upstream.terminate()
