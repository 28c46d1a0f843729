"""What can be kept of a damaged store, written into a new file beside it."""

from __future__ import annotations

import re
import sqlite3
from itertools import islice
from pathlib import Path
from typing import Final

from aclbroker.broker.stores import changes, origins, records, schema, seal
from aclbroker.broker.stores.creation import write_file
from aclbroker.broker.stores.examination import (
    Examination,
    examining,
    valid_changes,
    valid_origins,
    valid_records,
)
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin, StoreError, new_cluster_id

_ROWS: Final = 1000


class LossNotAccepted(StoreError):
    """The repaired file could lack a DENY, and nobody has said that it may."""

    def __init__(self, found: Examination) -> None:
        super().__init__(
            "changes of ACLs are lost, and any of them may have been a DENY, or the removal of an "
            "ALLOW. Restore a backup if there is one. To write a file without them all the same, "
            "say --accept-lost-acls, and compare its ACLs with what they should be before it is "
            "used"
        )
        self.found = found


def repair(path: Path, target: Path, *, accept_loss: bool) -> Examination:
    """Write all rows that are what was written to a new file; return what was wrong.

    The damaged file stays as it is. Raises `LossNotAccepted` if ACLs could be other ones than
    before and ``accept_loss`` is false, `StoreError` for other reasons; then nothing is written.
    """
    if target.exists():
        raise StoreError(f"{target} exists; name another file, or remove it")
    with examining(path) as (found, connection):
        if found.is_running:
            raise StoreError(
                f"the ACL store {path} is in use by a broker; stop all brokers that use it first"
            )
        if found.version < schema.SEALED_VERSION:
            raise StoreError(
                f"the ACL store {path} is of version {found.version}, which has no checksums: what "
                "is damaged in it cannot be known. Restore a backup"
            )

        def fill(made: sqlite3.Connection) -> None:
            _fill(made, found, connection)
            if found.may_have_lost_acls and not accept_loss:
                raise LossNotAccepted(found)

        write_file(target, fill)
    return found


def _with_history(
    made: sqlite3.Connection, found: Examination, connection: sqlite3.Connection, sealed: Seal
) -> Seal:
    """Write the origins that are known; return the seal after that.

    Where changes are lost it can be told from now on only which ACLs there were. Where the seal is,
    changes of records, too, have positions that nothing else may have, greater ones than all ACLs.
    """
    rows = list(valid_origins(found, connection))
    sealed = sealed.up_to(max([sealed.last_change, *(row.position for row in rows)]))
    before = found.sealed
    if found.may_have_lost_acls or before is None or found.version < schema.ORIGINS_VERSION:
        sealed = sealed._replace(horizon=sealed.last_change, horizon_ms=Origin.now().time_ms)
    else:
        sealed = sealed._replace(horizon=before.horizon, horizon_ms=before.horizon_ms)
    sums = origins.write(made, rows)
    return sealed.with_origins(len(sums), sum(sums))


def _fill(made: sqlite3.Connection, found: Examination, connection: sqlite3.Connection) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", found.cluster_id or ""):
        found.cluster_id = new_cluster_id()
        found.problems.append(f"the cluster id is lost; the new one is {found.cluster_id}")
    cluster_id = str(found.cluster_id)
    made.execute("BEGIN IMMEDIATE")
    schema.create(made, cluster_id)
    sealed = Seal(transactions=found.sealed.transactions if found.sealed else 0)
    valid = valid_changes(found, connection)
    while some := list(islice(valid, _ROWS)):
        sealed = sealed.with_changes(changes.copy(made, some)).up_to(some[-1].id)
    rows = []
    for kind, name, value, checksum in valid_records(found, connection):
        rows.append((kind, name, str(value), checksum))
    records.append(made, rows)
    sealed = sealed.with_records(len(rows), sum(row[-1] for row in rows))
    if found.sealed is not None:
        sealed = sealed._replace(last_change=found.sealed.last_change)
    seal.write(made, _with_history(made, found, connection, sealed), cluster_id)
    made.execute("COMMIT")
