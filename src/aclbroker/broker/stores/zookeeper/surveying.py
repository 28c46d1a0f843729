"""Reads all that ZooKeeper has for a check or a copy, and names each node that cannot be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from aclbroker.broker.stores.store import StoreReset, StoreUnavailable
from aclbroker.broker.stores.survey import KeptRecord, Survey
from aclbroker.broker.stores.zookeeper.connection import Connection
from aclbroker.broker.stores.zookeeper.layout import node_path
from aclbroker.broker.stores.zookeeper.mirror import Mirror
from aclbroker.broker.stores.zookeeper.records import record_path
from aclbroker.broker.stores.zookeeper.settings import ZookeeperSettings
from aclbroker.broker.stores.zookeeper.tree import read_cluster_id, read_nodes

_ROUNDS: Final = 100
_REPLACED: Final = "\ufffd"
"""What bytes that are no UTF-8 are read as, and may be part of a text as well."""


async def survey_nodes(settings: ZookeeperSettings) -> Survey:
    """Return what is there now, as of one position. Raises `StoreError` as `Mirror.start`."""
    mirror = Mirror(settings, makes=False)
    await mirror.start()
    try:
        found = await _at_one_position(mirror)
        connection = mirror.connection
        problems = [
            f"{connection.path(node_path(pattern))}: {mirror.contents.unreadable.get(pattern, '')}"
            for pattern in found.unreadable
        ]
        problems += [each async for each in _no_texts(connection, found)]
        cluster_id = await read_cluster_id(connection)
    finally:
        await mirror.close()
    return Survey(
        settings.url,
        cluster_id or "",
        found.position,
        dict.fromkeys(found.bindings),
        {key: KeptRecord(value) for key, value in found.records.items()},
        problems,
    )


async def _at_one_position(mirror: Mirror) -> StoreReset:
    """Return all that is there, when nothing is being told that was read in part."""
    for _ in range(_ROUNDS):
        await mirror.refresh()
        if mirror.is_exact:
            return await mirror.everything()
    raise StoreUnavailable(f"{mirror.connection.settings.url} is changed all the time; try again")


async def _no_texts(connection: Connection, found: StoreReset) -> AsyncIterator[str]:
    """Yield what is wrong with records whose nodes have no text."""
    paths = [record_path(*key) for key, value in _sorted(found) if _REPLACED in value]
    for path, node in zip(paths, await read_nodes(connection, paths), strict=True):
        try:
            (node.data or b"").decode()
        except UnicodeDecodeError:
            yield f"{connection.path(path)}: it is no text"


def _sorted(found: StoreReset) -> Iterable[tuple[tuple[str, str], str]]:
    return sorted(found.records.items())
