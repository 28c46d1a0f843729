"""Stores in ZooKeeper, opened for a while."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aclbroker.broker.stores.zookeeper.settings import zookeeper_settings
from aclbroker.broker.stores.zookeeper.store import ZookeeperStore


def store_at(connect: str, **properties: str) -> ZookeeperStore:
    """The store in ZooKeeper at a connect string; `_` in the names of properties stands for `.`."""
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    return ZookeeperStore(zookeeper_settings(f"zookeeper://{connect}", settings))


@asynccontextmanager
async def opened(connect: str, **properties: str) -> AsyncIterator[ZookeeperStore]:
    """The same, open."""
    store = store_at(connect, **properties)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
