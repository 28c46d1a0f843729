"""Changes of several nodes in one transaction, made again when somebody else was first."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.states import ZnodeStat

from aclbroker.broker.stores.store import StoreError, StoreReadOnly
from aclbroker.broker.stores.zookeeper.connection import Connection, ask

MOST_BYTES: Final = 512 * 1024
"""How large a transaction may be: half of jute.maxbuffer, as its form on the servers is larger."""

LARGEST_NODE: Final = 900_000
"""How much data a node may have, in bytes: a client could not read more than jute.maxbuffer."""

ANY_VERSION: Final = -1
"""Stands for whichever version a node has."""

_ATTEMPTS: Final = 40
_SHORTEST_S: Final = 0.005
_LONGEST_S: Final = 0.2
_OVERHEAD: Final = 120
"""What an operation takes beside its path and its data, in bytes."""


_LATE: Final = (
    BadVersionError,
    NoNodeError,
    NodeExistsError,
    # What ZooKeeper says of the operations before the one that failed, and of those behind it.
    RolledBackError,
    RuntimeInconsistency,
)


class TooLarge(Exception):
    """The operations do not fit into one transaction."""


class Put(NamedTuple):
    """Make a node, if ``version`` is None, or give that version of it other data."""

    path: str
    data: bytes
    version: int | None
    acls: Sequence[Any]


class Remove(NamedTuple):
    """Remove that version of a node."""

    path: str
    version: int


class Tell(NamedTuple):
    """Make a node whose name is a prefix and the next number of its directory."""

    path: str
    data: bytes
    acls: Sequence[Any]


Operation = Put | Remove | Tell

Plan = Callable[[], Awaitable[Sequence[Operation]]]
"""Reads what there is and returns what is to be done, a Put or a Remove first; nothing if it is as
it should be. Raises `StoreError`."""


async def commit(connection: Connection, plan: Plan) -> int | None:
    """Do what a plan says, all or nothing, and return the zxid; None if there was nothing to do.

    The plan is asked again when a node was changed since it was read. Raises `TooLarge`, and
    `StoreError`; where that is `StoreUnavailable` the change may have been made.
    """
    longest = _SHORTEST_S
    for _ in range(_ATTEMPTS):
        operations = await plan()
        if not operations:
            return None
        if len(operations) > 2 and sum(map(_size, operations)) > MOST_BYTES:
            raise TooLarge
        results = await connection.one(partial(_begin, operations=operations))
        failures = [each for each in results if isinstance(each, Exception)]
        if not failures:
            return next(int(each.mzxid) for each in results if isinstance(each, ZnodeStat))
        _check(failures, connection)
        await asyncio.sleep(random.uniform(0, longest))  # noqa: S311 # nobody must not guess it
        longest = min(2 * longest, _LONGEST_S)
        await connection.one(ask("sync", "/"))
    raise StoreError(
        f"others changed the same nodes of ZooKeeper {_ATTEMPTS} times at once; try again"
    )


def _check(failures: Sequence[Exception], connection: Connection) -> None:
    """Raise what went wrong, unless it is that somebody else was first."""
    for failure in failures:
        if isinstance(failure, NoAuthError):
            raise StoreReadOnly(
                f"ZooKeeper does not allow this broker to change ACLs at {connection.settings.url}"
            )
        if not isinstance(failure, _LATE):
            raise StoreError(f"ZooKeeper refused a change: {type(failure).__name__}")


def _begin(client: KazooClient, operations: Sequence[Operation]) -> Any:
    """Send a transaction, of which the first operation tells the zxid.

    That only data that is set tells, so the first node is set where it is made or removed, too.
    """
    request = client.transaction()
    for number, operation in enumerate(operations):
        if isinstance(operation, Tell):
            request.create(operation.path, operation.data, operation.acls, sequence=True)
        elif isinstance(operation, Remove):
            version = operation.version
            if not number:
                request.set_data(operation.path, b"", version)
                version += 1
            request.delete(operation.path, version)
        elif operation.version is not None:
            request.set_data(operation.path, operation.data, operation.version)
        elif number:
            request.create(operation.path, operation.data, operation.acls)
        else:
            request.create(operation.path, b"", operation.acls)
            request.set_data(operation.path, operation.data, 0)
    return request.commit_async()


def _size(operation: Operation) -> int:
    data = b"" if isinstance(operation, Remove) else operation.data
    return len(operation.path.encode()) + len(data) + _OVERHEAD
