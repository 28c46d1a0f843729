"""What every store must do, run against the one in ZooKeeper."""

import pytest

from aclbroker.broker.stores import open_store
from tests.stores.million import keep_many
from tests.stores.test_contract import *  # noqa: F403
from tests.support.zookeeper import running_zookeeper


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


# Other tests keep 10,000 there each day.
@pytest.mark.thorough  # type: ignore[no-redef]
@pytest.mark.timeout(900)
async def test_very_many_bindings_are_there_after_a_restart(tmp_path):
    # One of its own, with enough memory.
    with running_zookeeper(tmp_path, None, "-Xmx1500m") as zookeeper:
        opened = open_store(f"zookeeper://{zookeeper.address}/million")
        await opened.open()
        await keep_many(opened, 4_000)
        await opened.close()
