"""Copies of stores that brokers share: files of the form of a store of one broker.

So all that reads such a file reads a copy, whichever store it is of.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from pathlib import Path

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, inspection, origins, records, schema, seal
from aclbroker.broker.stores.advice import explained, refuse_damaged
from aclbroker.broker.stores.creation import write_file
from aclbroker.broker.stores.examination import examining
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin, StoreError, new_cluster_id
from aclbroker.broker.stores.survey import KeptRecord, Survey


def write_archive(found: Survey, target: Path) -> None:
    """Write all that was found to a new file, with who made it where that is known.

    Raises `StoreError`, and leaves nothing, for a store that is damaged, and where the file cannot
    be written.
    """
    if target.exists():
        raise StoreError(f"{target} exists; name another file, or remove it")
    refuse_damaged(found.place, found.problems, "copied")
    with explained(target, "write"):
        write_file(target, lambda made: _fill(made, found))


def read_archive(source: Path) -> Survey:
    """Return all that a whole file has, also one that a broker uses. Raises `StoreError`."""
    with explained(source, "read"), examining(source) as (found, connection):
        refuse_damaged(f"the ACL store {source}", found.problems, "restored")
        if found.sealed is None or found.cluster_id is None:
            raise StoreError(
                f"the ACL store {source} is of an older aclbroker; start a broker once"
            )
        inspection.check_structure(connection)
        gone = changes.removals(connection)
        acls: dict[AclBinding, Origin | None] = {}
        for chunk in changes.load(connection, found.sealed, gone):
            acls.update(dict.fromkeys(chunk))
        records.check(connection, found.sealed)
        kept = {key: KeptRecord(value) for key, value in records.load_all(connection).items()}
        return Survey(str(source), found.cluster_id, found.sealed.last_change, acls, kept)


def _fill(made: sqlite3.Connection, found: Survey) -> None:
    made.execute("BEGIN IMMEDIATE")
    # Without any broker, those who write ACLs to ZooKeeper leave it without an id.
    cluster_id = found.cluster_id or new_cluster_id()
    schema.create(made, cluster_id)
    sealed = _with_records(made, _with_acls(made, Seal(), found), found)
    # What was there before is not told by the store that was copied.
    horizon_ms = Origin.now().time_ms
    sealed = sealed._replace(horizon=sealed.last_change, horizon_ms=horizon_ms)
    seal.write(made, sealed, cluster_id)
    made.execute("COMMIT")


def _with_acls(made: sqlite3.Connection, sealed: Seal, found: Survey) -> Seal:
    by_origin: defaultdict[Origin | None, list[AclBinding]] = defaultdict(list)
    for binding, origin in found.acls.items():
        by_origin[origin].append(binding)
    for origin in sorted(by_origin, key=_when):
        before = sealed
        sealed = changes.append(made, before, sorted(by_origin[origin]), removed=False)
        sealed = _told(made, before, sealed, origin)
    return sealed


def _with_records(made: sqlite3.Connection, sealed: Seal, found: Survey) -> Seal:
    by_origin: defaultdict[tuple[Origin | None, str], dict[str, str]] = defaultdict(dict)
    for (kind, name), (value, origin) in found.records.items():
        by_origin[origin, kind][name] = value
    for origin, kind in sorted(by_origin, key=lambda each: (_when(each[0]), each[1])):
        before = sealed
        put = by_origin[origin, kind]
        sealed, _ = records.change(made, before, kind, put, ())
        sealed = _told(made, before, sealed.up_to(before.last_change + 1), origin, kind)
    return sealed


def _told(
    made: sqlite3.Connection,
    before: Seal,
    after: Seal,
    origin: Origin | None,
    kind: str | None = None,
) -> Seal:
    """Say who made what is between two seals, if that is known; return the seal after that."""
    if origin is not None:
        after = origins.append(made, before, after, origin, kind)
    return after._replace(transactions=after.transactions + 1)


def _when(origin: Origin | None) -> tuple[int, str, str]:
    return (-1, "", "") if origin is None else (origin.time_ms, origin.principal or "", origin.host)
