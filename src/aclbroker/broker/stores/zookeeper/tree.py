"""Reads what there is in ZooKeeper, and makes the directories that are missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final, NamedTuple

from kazoo.exceptions import BadArgumentsError, NodeExistsError, NoNodeError

from aclbroker.acl.bindings import ResourcePattern
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import identity
from aclbroker.broker.stores.identity import SourceIdentity
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.zookeeper import layout, records
from aclbroker.broker.stores.zookeeper.connection import Connection, ask
from aclbroker.broker.stores.zookeeper.decoding import decode_acls
from aclbroker.broker.stores.zookeeper.layout import NodeAcls, UnreadableNode

log = get_logger()

CLUSTER_ID: Final = "/cluster/id"
"""Where Kafka's brokers keep the id of their cluster."""

_AT_ONCE: Final = 200
_NAMES_AT_ONCE: Final = 2000
_DECODED_AT_ONCE: Final = 16 * 1024
"""After so many bytes of nodes others have their turn; a larger node takes longer."""


class Node(NamedTuple):
    """A node as it was read; None for what there is not."""

    data: bytes | None = None
    version: int | None = None
    zxid: int = 0
    """Of the last change of its data."""


async def make_directories(connection: Connection) -> bool:
    """Make all directories that are missing, the chroot among them.

    Return whether there were no ACLs. Raises `StoreError`.
    """
    chroot = connection.settings.chroot
    parts = [part for part in chroot.split("/") if part]
    above = ["/" + "/".join(parts[: size + 1]) for size in range(len(parts))]
    open_ones = [*above, *map(connection.path, layout.directories())]
    secret_ones = [connection.path(path) for path in records.directories()]
    made = await _make(connection, open_ones, connection.acls)
    await _make(connection, secret_ones, connection.secret_acls)
    return connection.path(layout.directories()[0]) in made


async def is_there(connection: Connection) -> bool:
    """Return whether there is a directory of ACLs, or one of records. Raises `StoreError`."""
    roots = (layout.LITERAL_ROOT, layout.EXTENDED_ROOT, records.RECORDS)
    found = await connection.all([ask("exists", connection.path(root)) for root in roots])
    return any(found)


async def _make(connection: Connection, paths: Sequence[str], acls: Sequence[Any]) -> list[str]:
    found = await connection.all([ask("exists", path) for path in paths])
    made = []
    for path, stat in zip(paths, found, strict=True):
        if stat is None:
            try:
                await connection.one(ask("create", path, b"", acl=list(acls)))
            except NodeExistsError:
                continue
            made.append(path)
        elif isinstance(stat, Exception):
            raise StoreError(f"ZooKeeper refuses {path}: {type(stat).__name__}")
    return made


async def read_nodes(connection: Connection, paths: Sequence[str]) -> list[Node]:
    """Return the nodes of some paths, which begin at the chroot. Raises `StoreError`."""
    whole = [connection.path(path) for path in paths]
    answers = await connection.all([ask("get", path) for path in whole])
    return [_node(path, answer) for path, answer in zip(whole, answers, strict=True)]


def _node(path: str, answer: Any) -> Node:
    if isinstance(answer, NoNodeError | BadArgumentsError):
        return Node()
    if isinstance(answer, Exception):
        raise StoreError(f"ZooKeeper cannot tell what {path} has: {type(answer).__name__}")
    data, stat = answer
    return Node(data, stat.version, stat.mzxid)


async def read_cluster_id(connection: Connection) -> str | None:
    """Return the id of the cluster that is in ZooKeeper, None if there is none.

    Raises `StoreError`.
    """
    [node] = await read_nodes(connection, [CLUSTER_ID])
    if node.version is None:
        return None
    try:
        return str(json.loads(node.data or b"")["id"])
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f"{connection.path(CLUSTER_ID)} in ZooKeeper has no id of a cluster"
        ) from None


async def read_identity(connection: Connection) -> SourceIdentity:
    """Return the id of the cluster, when the node of the ACLs was made, and the last zxid.

    Raises `StoreError`.
    """
    # A server that lags would show an older zxid.
    await connection.one(ask("sync", "/"))
    [root] = await connection.all([ask("exists", connection.path(layout.LITERAL_ROOT))])
    if isinstance(root, Exception):
        raise StoreError(f"ZooKeeper cannot tell what it has: {type(root).__name__}")
    made = identity.NONE if root is None else f"{root.czxid} at {root.ctime}"
    names = {
        identity.CLUSTER_ID: await read_cluster_id(connection) or identity.NONE,
        f"node {connection.path(layout.LITERAL_ROOT)}": made,
    }
    return SourceIdentity(names, {"zxid": (connection.seen,)})


async def children(connection: Connection, path: str) -> list[str]:
    """Return the names of the nodes in a directory; none if there is no directory."""
    whole = connection.path(path)
    try:
        found: list[str] = await connection.one(ask("get_children", whole))
    except NoNodeError:
        return []
    return found


ReadAcls = tuple[ResourcePattern, NodeAcls | UnreadableNode, int]
"""What a pattern has, and the zxid of the last change of its node, 0 if there is none."""


async def read_acls(
    connection: Connection, patterns: Sequence[ResourcePattern]
) -> AsyncIterator[ReadAcls]:
    """Return what each pattern has. Raises `StoreError`."""
    decoded = 0
    for begin in range(0, len(patterns), _AT_ONCE):
        some = patterns[begin : begin + _AT_ONCE]
        nodes = await read_nodes(connection, [layout.node_path(pattern) for pattern in some])
        for pattern, node in zip(some, nodes, strict=True):
            decoded += len(node.data or b"")
            if decoded > _DECODED_AT_ONCE:
                decoded = 0
                await asyncio.sleep(0)
            try:
                yield pattern, decode_acls(node.data), node.zxid
            except UnreadableNode as error:
                yield pattern, error, node.zxid


async def all_patterns(connection: Connection) -> list[ResourcePattern]:
    """Return all patterns that have a node. Raises `StoreError`."""
    known = set(layout.TYPE_NAMES.values())
    unknown = set(await children(connection, layout.LITERAL_ROOT)) - known
    if unknown:
        log.warning(
            "ACLs of unknown resource types are ignored",
            path=layout.LITERAL_ROOT,
            types=sorted(unknown)[:10],
        )
    found = []
    for pattern_type, resource_type in layout.acl_directories():
        names = await children(connection, layout.directory(pattern_type, resource_type))
        for begin in range(0, len(names), _NAMES_AT_ONCE):
            some = names[begin : begin + _NAMES_AT_ONCE]
            found += [ResourcePattern(resource_type, pattern_type, name) for name in some]
            await asyncio.sleep(0)
    return found


async def read_records(
    connection: Connection, keys: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str | None]:
    """Return the values of some records by kind and name, None for one that is not there."""
    nodes = await read_nodes(connection, [records.record_path(*key) for key in keys])
    return {
        key: None if node.version is None else (node.data or b"").decode(errors="replace")
        for key, node in zip(keys, nodes, strict=True)
    }


async def all_records(connection: Connection) -> dict[tuple[str, str], str | None]:
    """Return the values of all records by kind and name. Raises `StoreError`."""
    keys = []
    for directory in await children(connection, records.RECORDS):
        kind = records.name_of(directory)
        below = await children(connection, f"{records.RECORDS}/{directory}")
        keys += [(kind, records.name_of(name)) for name in below]
    return await read_records(connection, keys)
