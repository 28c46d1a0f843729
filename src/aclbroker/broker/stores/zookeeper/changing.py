"""Changes ACLs and records in ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from kazoo.exceptions import NodeExistsError

from aclbroker.acl.bindings import AclBinding, AclPermission, ResourcePattern
from aclbroker.acl.patterns import Entry
from aclbroker.broker.stores.pieces import paced
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.zookeeper import records
from aclbroker.broker.stores.zookeeper.connection import Connection, ask
from aclbroker.broker.stores.zookeeper.decoding import decode_acls
from aclbroker.broker.stores.zookeeper.layout import (
    CHANGE_PREFIX,
    NodeAcls,
    UnreadableNode,
    encode_acls,
    encode_change,
    is_unicode,
    node_path,
    refusal,
)
from aclbroker.broker.stores.zookeeper.transactions import (
    ANY_VERSION,
    LARGEST_NODE,
    Operation,
    Put,
    Remove,
    Tell,
    TooLarge,
    commit,
)
from aclbroker.broker.stores.zookeeper.tree import Node, read_nodes

_PATTERNS_AT_ONCE: Final = 250
_PLANNED_AT_ONCE: Final = 50
_BINDINGS_AT_ONCE: Final = 500
_RECORDS_AT_ONCE: Final = 500
_FIRST, _AMONG, _LAST = range(3)

Shown = Callable[[ResourcePattern], NodeAcls]
"""What is known in memory of a pattern."""


class PatternChange(NamedTuple):
    """What is to be added to the ACLs of a pattern, and removed."""

    pattern: ResourcePattern
    added: set[Entry]
    removed: set[Entry]

    @property
    def place(self) -> int:
        """When it is its turn: denials are added first and removed last."""
        if any(entry[3] == AclPermission.DENY for entry in self.added):
            return _FIRST
        return _LAST if any(e[3] == AclPermission.DENY for e in self.removed) else _AMONG


MadeAcls = Callable[[int, Mapping[ResourcePattern, NodeAcls]], None]
"""Is told the zxid of a transaction, and what it has left of patterns."""

MadeRecords = Callable[[int, Mapping[tuple[str, str], str | None]], None]
"""Is told the zxid of a transaction, and the values of records that it has left."""


async def change_acls(
    connection: Connection,
    shown: Shown,
    added: Collection[AclBinding],
    removed: Collection[AclBinding],
    made: MadeAcls,
) -> None:
    """Add and remove ACLs, and tell of each transaction that was ``made`` for it.

    All is one transaction if it fits into one; if not, several, denials first. Raises `StoreError`.
    """
    changes = await _by_pattern(added, removed)
    while changes:
        # The last ones come first, and are free when they are done.
        some = changes[: -_PATTERNS_AT_ONCE - 1 : -1]
        del changes[-_PATTERNS_AT_ONCE:]
        await _change_some(connection, shown, some, made)


async def _by_pattern(
    added: Collection[AclBinding], removed: Collection[AclBinding]
) -> list[PatternChange]:
    """Return what is to be done with each pattern, in the order of their places from the last."""
    found: dict[ResourcePattern, PatternChange] = {}

    def of(pattern: ResourcePattern) -> PatternChange:
        change = found.get(pattern)
        if change is None:
            change = found[pattern] = PatternChange(pattern, set(), set())
        return change

    async for binding in _each(added):
        _check(binding)
        of(binding.pattern).added.add(binding[3:])
    async for binding in _each(removed):
        of(binding.pattern).removed.add(binding[3:])
    placed: tuple[list[PatternChange], ...] = ([], [], [])
    while found:
        for _ in range(min(_BINDINGS_AT_ONCE, len(found))):
            change = found.popitem()[1]
            placed[change.place].append(change)
        await asyncio.sleep(0)
    first, among, last = placed
    return last + among + first


async def _each(bindings: Collection[AclBinding]) -> AsyncIterator[AclBinding]:
    """Return each of many bindings; others have their turns meanwhile."""
    for number, binding in enumerate(bindings):
        if not number % _BINDINGS_AT_ONCE:
            await asyncio.sleep(0)
        yield binding


def _check(binding: AclBinding) -> None:
    reason = refusal(binding)
    if reason is None and not is_unicode(f"{binding.principal}{binding.host}"):
        reason = "its principal or its host is no Unicode"
    if reason is not None:
        raise StoreError(f"{binding.resource_name!r}: {reason}")


async def _change_some(
    connection: Connection, shown: Shown, changes: Sequence[PatternChange], made: MadeAcls
) -> None:
    left: dict[ResourcePattern, NodeAcls] = {}

    async def plan() -> list[Operation]:
        left.clear()
        nodes = await read_nodes(connection, [node_path(change.pattern) for change in changes])
        done: list[Operation] = []
        told: list[Operation] = []
        async for change, node in paced(zip(changes, nodes, strict=True), _PLANNED_AT_ONCE):
            after = _after(connection, change, node)
            operations = _operations(connection, shown, change.pattern, node, after)
            if operations:
                left[change.pattern] = after
                done += operations
                directory, data = encode_change(change.pattern)
                path = connection.path(f"{directory}/{CHANGE_PREFIX}")
                told.append(Tell(path, data, connection.acls))
        return done + told

    try:
        zxid = await commit(connection, plan)
    except TooLarge:
        middle = len(changes) // 2
        await _change_some(connection, shown, changes[:middle], made)
        await _change_some(connection, shown, changes[middle:], made)
    else:
        if zxid is not None:
            made(zxid, left)


def _after(connection: Connection, change: PatternChange, node: Node) -> NodeAcls:
    """Return what a pattern has after a change. Raises `StoreError`."""
    try:
        before = decode_acls(node.data)
    except UnreadableNode as error:
        path = connection.path(node_path(change.pattern))
        raise StoreError(
            f"the ACLs of {path} in ZooKeeper cannot be read, so they are not changed: {error}"
        ) from None
    return before._replace(entries=before.entries - change.removed | change.added)


def _operations(
    connection: Connection, shown: Shown, pattern: ResourcePattern, node: Node, after: NodeAcls
) -> Sequence[Operation]:
    path = connection.path(node_path(pattern))
    # What is as it should be but was not told, since a broker ended in between, is told now.
    if after == decode_acls(node.data) and after.entries == shown(pattern).entries:
        return ()
    data = encode_acls(after)
    if after.is_empty:
        if node.version is not None:
            return (Remove(path, node.version),)
        # It went and nobody told. A transaction has to change something, so it makes one.
        return Put(path, data, None, connection.acls), Remove(path, ANY_VERSION)
    if len(data) > LARGEST_NODE:
        raise StoreError(
            f"{path} would have {len(after.entries)} ACLs, {len(data)} bytes, and a node in "
            f"ZooKeeper may have {LARGEST_NODE}"
        )
    return (Put(path, data, node.version, connection.acls),)


async def change_records(
    connection: Connection,
    kind: str,
    put: Mapping[str, str],
    removed: Collection[str],
    made: MadeRecords,
) -> None:
    """Give records their values and remove others; tell of each transaction that was ``made``.

    All is one transaction for up to 500 records. Raises `StoreError`.
    """
    wanted: dict[str, str | None] = {**dict.fromkeys(removed), **put}
    for name, value in wanted.items():
        if not is_unicode(f"{name}{value}"):
            raise StoreError(f"the record {name!r} of the kind {kind!r} is no Unicode")
    await _make_kind(connection, kind)
    names = list(wanted)
    for begin in range(0, len(names), _RECORDS_AT_ONCE):
        some = {name: wanted[name] for name in names[begin : begin + _RECORDS_AT_ONCE]}
        await _change_some_records(connection, kind, some, made)


async def claim_records(
    connection: Connection, kind: str, wanted: Mapping[str, str], made: MadeRecords
) -> dict[str, str]:
    """Make those records that are not there; return the values that all have then.

    Raises `StoreError`.
    """
    await _make_kind(connection, kind)
    names, there = list(wanted), dict[str, str]()
    for begin in range(0, len(names), _RECORDS_AT_ONCE):
        some = {name: wanted[name] for name in names[begin : begin + _RECORDS_AT_ONCE]}
        await _change_some_records(connection, kind, some, made, there)
    return {**wanted, **there}


async def _make_kind(connection: Connection, kind: str) -> None:
    path = connection.path(records.kind_path(kind))
    if await connection.one(ask("exists", path)) is None:
        try:
            await connection.one(ask("create", path, b"", acl=connection.secret_acls))
        except NodeExistsError:
            return


async def _change_some_records(
    connection: Connection,
    kind: str,
    wanted: Mapping[str, str | None],
    made: MadeRecords,
    kept: dict[str, str] | None = None,
) -> None:
    """Change records in one transaction, or in several.

    With ``kept`` those that are there stay, and their values are put into it.
    """
    changed: list[str] = []

    async def plan() -> list[Operation]:
        changed.clear()
        paths = [records.record_path(kind, name) for name in wanted]
        done: list[Operation] = []
        nodes = await read_nodes(connection, paths)
        for (name, value), path, node in zip(wanted.items(), paths, nodes, strict=True):
            if kept is not None and node.version is not None:
                kept[name] = (node.data or b"").decode(errors="replace")
                continue
            operation = _record_operation(connection, connection.path(path), value, node)
            if operation is not None:
                done.append(operation)
                changed.append(name)
        if done:
            told = connection.path(f"{records.RECORD_CHANGES}/{records.RECORD_CHANGE_PREFIX}")
            data = records.encode_record_change(kind, changed)
            done.append(Tell(told, data, connection.secret_acls))
        return done

    try:
        zxid = await commit(connection, plan)
    except TooLarge:
        names = list(wanted)
        middle = len(names) // 2
        for some in (names[:middle], names[middle:]):
            part = {name: wanted[name] for name in some}
            await _change_some_records(connection, kind, part, made, kept)
    else:
        if zxid is not None:
            made(zxid, {(kind, name): wanted[name] for name in changed})


def _record_operation(
    connection: Connection, path: str, value: str | None, node: Node
) -> Operation | None:
    if value is None:
        return None if node.version is None else Remove(path, node.version)
    data = value.encode()
    if len(data) > LARGEST_NODE:
        raise StoreError(
            f"{path} would have {len(data)} bytes, and a node in ZooKeeper may have {LARGEST_NODE}"
        )
    if node.version is not None and node.data == data:
        return None
    return Put(path, data, node.version, connection.secret_acls)


async def check_writable(connection: Connection) -> None:
    """Commit a change that leaves everything as it is. Raises `StoreError`."""
    path = connection.path(records.RECORDS)
    await connection.one(ask("set", path, b""))
