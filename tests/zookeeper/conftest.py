"""A real ZooKeeper for the tests of the store there; each test has a chroot of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.support.zookeeper import Zookeeper, running_zookeeper

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def shared_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zookeeper]:
    """A ZooKeeper that all tests use: those that stop it start their own."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def connect(shared_zookeeper: Zookeeper) -> str:
    """A connect string with a chroot that nobody has used."""
    return f"{shared_zookeeper.address}/test-{next(_NUMBERS)}"


@pytest.fixture
def zk(connect: str) -> Iterator[KazooClient]:
    """A client whose paths begin at the test's chroot, which it makes."""
    server, _, chroot = connect.partition("/")
    client = KazooClient(server)
    client.start()
    client.ensure_path(f"/{chroot}")
    client.chroot = f"/{chroot}"
    yield client
    client.stop()
    client.close()


@pytest.fixture
def java_directory(tmp_path: Path) -> Path:
    """Where programs of the JVM may leave files."""
    directory = tmp_path / "java"
    directory.mkdir()
    return directory
