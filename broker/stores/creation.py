"""New store files: made under another name, and at their place only when they are complete."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from aclbroker.broker.stores import schema, seal
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import new_cluster_id


def create_file(path: Path) -> None:
    """Make an empty store with a new cluster id, readable for its owner alone."""
    write_file(path, lambda connection: _fill(connection, new_cluster_id()))


def _fill(connection: sqlite3.Connection, cluster_id: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    schema.create(connection, cluster_id)
    seal.write(connection, Seal(), cluster_id)
    connection.execute("COMMIT")


def write_file(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Let a database be filled, and move it to its path, in place of what is there.

    A broker that is killed in between leaves nothing at the path, and so no half of a store.
    """
    made = Path(f"{path}.new")
    made.unlink(missing_ok=True)
    os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(made, isolation_level=None)) as connection:
            fill(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        _sync(made)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
