"""What can be deleted: rows of removed ACLs and of former records, when they are old enough.

Until then they are the history. The seal has its horizon, the first position at which it can be
told which ACLs there were.
"""

from __future__ import annotations

import sqlite3

from aclbroker.broker.stores.schema import dead_rows
from aclbroker.broker.stores.seal import Seal

_LITTER = """
    SELECT id FROM acl_change WHERE removed
    UNION ALL SELECT position FROM origin WHERE kind IS NOT NULL
"""
"""The positions of changes that will be deleted, and leave something else to be deleted."""


def litter(connection: sqlite3.Connection) -> int:
    """Return how many changes there are that will be deleted."""
    [count] = connection.execute(f"SELECT count(*) FROM ({_LITTER})").fetchone()  # noqa: S608
    return int(count)


def litter_at(connection: sqlite3.Connection, place: int) -> int | None:
    """Return the position of one such change, the oldest being the first; None for too few."""
    query = f"SELECT id FROM ({_LITTER}) ORDER BY id LIMIT 1 OFFSET ?"  # noqa: S608
    found = connection.execute(query, (place - 1,)).fetchone()
    return None if found is None else int(found[0])


def compact(connection: sqlite3.Connection, sealed: Seal, last: int) -> Seal:
    """Delete all removals up to a position, and all rows of what they removed.

    With them go the origins of which no row is left; who granted an ACL that is there stays known.
    Returns the seal after that.
    """
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS dead (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM dead")
    connection.execute(f"INSERT INTO dead {dead_rows('removed AND id <= ?')}", (last,))
    [[gone, total]] = connection.execute(
        "SELECT count(*), coalesce(sum(checksum), 0) FROM acl_change "
        "WHERE id IN (SELECT id FROM dead)"
    )
    connection.execute("DELETE FROM acl_change WHERE id IN (SELECT id FROM dead)")
    connection.execute("DELETE FROM dead")
    sealed = _with_horizon(connection, sealed.without_changes(gone, total), last)
    return _without_origins(connection, sealed, last)


def _with_horizon(connection: sqlite3.Connection, sealed: Seal, last: int) -> Seal:
    """Return the seal with the end of the transaction of a position as horizon, if it is later."""
    if last <= sealed.horizon:
        return sealed
    query = "SELECT position, time_ms FROM origin WHERE position >= ? ORDER BY position LIMIT 1"
    position, time_ms = connection.execute(query, (last,)).fetchone() or (last, sealed.horizon_ms)
    return sealed._replace(horizon=position, horizon_ms=time_ms)


def _without_origins(connection: sqlite3.Connection, sealed: Seal, last: int) -> Seal:
    spent = (
        "FROM origin WHERE position <= ? AND NOT EXISTS "
        "(SELECT 1 FROM acl_change WHERE id BETWEEN first AND position)"
    )
    [[count, total]] = connection.execute(
        f"SELECT count(*), coalesce(sum(checksum), 0) {spent}",
        (last,),
    )
    connection.execute(f"DELETE {spent}", (last,))
    return sealed.with_origins(-count, -total)
