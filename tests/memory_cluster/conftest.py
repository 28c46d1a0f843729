"""Brokers with a cluster in memory, of one node and of three."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.support.broker import Broker

TOPICS = "plain:3,single:1"


def _started(directory: Path, **overrides: str) -> Broker:
    broker = Broker(
        directory,
        {"aclbroker.cluster": "memory", "aclbroker.catalog.topics": TOPICS, **overrides},
    )
    broker.start()
    return broker


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    yield
    while raw.OPEN:
        raw.OPEN.pop().close()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster of one node."""
    broker = _started(tmp_path_factory.mktemp("node"))
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster of three nodes."""
    broker = _started(tmp_path_factory.mktemp("nodes"), **{"aclbroker.nodes": "3"})
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A JVM that runs Kafka's tools one after the other."""
    running = Commands(tmp_path_factory.mktemp("commands") / "stderr")
    yield running
    running.close()


@pytest.fixture(params=[pytest.param("node", marks=pytest.mark.thorough), "nodes"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """A cluster of one node, then one of three."""
    found: Broker = request.getfixturevalue(request.param)
    return found
