"""New store files: made under another name, and at their place only when they are complete."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from aclbroker.broker.stores import schema, seal
from aclbroker.broker.stores.files import sync
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin, new_cluster_id


def create_file(path: Path) -> None:
    """Make an empty store with a new cluster id, readable for its owner alone."""
    write_file(path, lambda connection: _fill(connection, new_cluster_id()))


def _fill(connection: sqlite3.Connection, cluster_id: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    schema.create(connection, cluster_id)
    # Before it was made there was no ACL in it: nothing of that time can be told.
    seal.write(connection, Seal(horizon_ms=Origin.now().time_ms), cluster_id)
    connection.execute("COMMIT")


def write_file(
    path: Path,
    fill: Callable[[sqlite3.Connection], None],
    make_room: Callable[[], None] | None = None,
) -> None:
    """Let a database be filled, and move it to its path, in place of what is there.

    A process that is killed in between leaves at the path what was there, so no half of a store.
    ``make_room`` is called when all of the new file is on disk, right before it is moved.
    """
    made = Path(f"{path}.new")
    made.unlink(missing_ok=True)
    os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with closing(sqlite3.connect(made, isolation_level=None)) as connection:
            fill(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        sync(made)
        if make_room is not None:
            make_room()
            sync(path.parent)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync(path.parent)
