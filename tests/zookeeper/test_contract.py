"""What every store must do, run against the one in ZooKeeper."""

import pytest

from aclbroker.broker.stores import open_store
from tests.stores.test_contract import *  # noqa: F403


@pytest.fixture  # type: ignore[no-redef]
async def store(connect):
    opened = open_store(f"zookeeper://{connect}")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture  # type: ignore[no-redef]
async def another(store, connect):
    second = open_store(f"zookeeper://{connect}")
    await second.open()
    yield second
    await second.close()
