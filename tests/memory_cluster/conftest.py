"""Brokers with a cluster in memory, of one node and of three."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.support.broker import Broker
from tests.support.gateway import gateway_before, gateway_of_nodes

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
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster of one node."""
    broker = _started(tmp_path_factory.mktemp("node"))
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A gateway before a cluster of one node, in which everything is allowed."""
    upstream = _started(tmp_path_factory.mktemp("upstream"), **{"authorizer.class.name": ""})
    address = upstream.listeners["PLAINTEXT"]
    gateway = gateway_before(address, tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.terminate()
    upstream.terminate()


@pytest.fixture(scope="session")
def gateway_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A gateway before a cluster of three nodes, in which everything is allowed."""
    open_to_all = {"authorizer.class.name": "", "aclbroker.nodes": "3"}
    upstream = _started(tmp_path_factory.mktemp("upstream"), **open_to_all)
    address, directory = upstream.listeners["PLAINTEXT"], tmp_path_factory.mktemp("gateway")
    gateway = gateway_of_nodes(address, directory, range(1, 4))
    yield gateway
    gateway.terminate()
    upstream.terminate()


_THROUGH_A_GATEWAY = pytest.param("gateway", marks=pytest.mark.thorough)


@pytest.fixture(params=["one_node", _THROUGH_A_GATEWAY])
def node(request: pytest.FixtureRequest) -> Broker:
    """A cluster of one node, then a gateway before one."""
    found: Broker = request.getfixturevalue(request.param)
    return found


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


@pytest.fixture(
    params=[
        pytest.param("one_node", marks=pytest.mark.thorough),
        "nodes",
        pytest.param("gateway_of_three", marks=pytest.mark.thorough),
    ]
)
def broker(request: pytest.FixtureRequest) -> Broker:
    """A cluster of one node, then one of three, then a gateway before one of three."""
    found: Broker = request.getfixturevalue(request.param)
    return found
