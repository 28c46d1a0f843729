"""The rows of the table of changes: ACLs are appended to it, read from it, and deleted if dead."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Generator, Iterable
from contextlib import closing
from itertools import chain, islice, product
from typing import Any, Final

from aclbroker.broker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.stores.schema import FIELDS, InvalidRow, dead_rows

_CHUNK: Final = 4096
"""How many ACLs are read at a time."""

_ROWS: Final = 1000
"""How many rows one statement appends at most.

The sqlite3 module gives Python's lock up for a statement, and then has to get it back from a busy
event loop, which can take five milliseconds. So there must not be a statement for each row.
"""

_VALUES: Final = len(FIELDS.split(","))

_CODES: Final = {
    tuple(map(int, members)): members
    for members in product(ResourceType, PatternType, AclOperation, AclPermission)
    if members[0] > ResourceType.ANY
    and members[1] > PatternType.MATCH
    and members[2] > AclOperation.ANY
    and members[3] > AclPermission.ANY
}


def append(
    connection: sqlite3.Connection, bindings: Collection[AclBinding], *, removed: bool
) -> None:
    """Add rows that say that ACLs were added, or removed, in this order."""
    limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    size = min(_ROWS, limit // _VALUES)
    rest = iter(bindings)
    while some := list(islice(rest, size)):
        rows = ", ".join([f"({removed:d}, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
        connection.execute(
            f"INSERT INTO acl_change (removed, {FIELDS}) VALUES {rows}",  # noqa: S608
            _values(some),
        )


def _values(bindings: Iterable[AclBinding]) -> list[str | int]:
    """Return the values of all fields of all bindings in one list.

    The numbers are plain ones: for each that is a member of an enum the sqlite3 module would look
    for an adapter, which takes longer than all else that it does. Through bytes no Python runs.
    """
    types, names, patterns, principals, hosts, operations, permissions = zip(*bindings, strict=True)
    rows = zip(
        bytes(types),
        names,
        bytes(patterns),
        principals,
        hosts,
        bytes(operations),
        bytes(permissions),
        strict=True,
    )
    return list(chain.from_iterable(rows))


def removals(connection: sqlite3.Connection) -> int:
    """Return how many rows say that an ACL was removed."""
    found = connection.execute("SELECT count(*) FROM acl_change WHERE removed")
    return int(found.fetchone()[0])


def load(connection: sqlite3.Connection, *, with_dead: bool) -> Generator[list[AclBinding]]:
    """Return all ACLs that there are, in lists. Raises `InvalidRow`.

    Dead rows are looked for if ``with_dead``; where there are none that would be in vain.
    """
    source = "acl" if with_dead else "acl_change"
    with closing(connection.execute(f"SELECT {FIELDS} FROM {source}")) as rows:  # noqa: S608
        while chunk := rows.fetchmany(_CHUNK):
            yield _bindings(chunk)


def _bindings(rows: Iterable[tuple[Any, ...]]) -> list[AclBinding]:
    found = []
    for row in rows:
        resource_type, name, pattern_type, principal, host, operation, permission = row
        codes = _CODES.get((resource_type, pattern_type, operation, permission))
        if codes is None or not (type(name) is type(principal) is type(host) is str and name):
            raise InvalidRow(f"{row!r}, which is no ACL")
        found.append(AclBinding(codes[0], name, codes[1], principal, host, codes[2], codes[3]))
    return found


def compact(connection: sqlite3.Connection, count: int) -> None:
    """Delete the oldest ``count`` rows of removals, and all rows of what they removed."""
    oldest = "SELECT id FROM acl_change WHERE removed ORDER BY id LIMIT ?"
    [last] = connection.execute(f"SELECT max(id) FROM ({oldest})", (count,)).fetchone()  # noqa: S608
    dead = dead_rows("removed AND id <= ?")
    connection.execute(f"DELETE FROM acl_change WHERE id IN ({dead})", (last,))  # noqa: S608
