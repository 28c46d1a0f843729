"""The ACLs of a store file, of now or of former times, and who changed them.

Read while a broker may use the file; nothing is changed. All that is read is checked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, inspection, origins, schema
from aclbroker.broker.stores.advice import explained
from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin, StoreError
from aclbroker.broker.stores.times import written_time


class PastAcls(NamedTuple):
    """The ACLs that there were at some time."""

    acls: list[AclBinding]
    position: int
    """That of the last change among them."""

    cluster_id: str


class PastChange(NamedTuple):
    """One ACL that was granted or revoked."""

    position: int
    """That of the transaction that it was part of."""

    binding: AclBinding
    removed: bool
    origin: Origin | None
    """None where it is not known who made it."""


class History(NamedTuple):
    """All changes of ACLs that a store has, and what they leave out."""

    changes: list[PastChange]
    horizon: int
    """Up to this position only ACLs are told that were there later on."""

    left_out: str
    """What is not told of before the horizon, as a sentence; "" if all is told."""

    position: int
    """Up to which all is told: that of the last change of the store, of whatever kind, or later."""

    cluster_id: str


def read_acls(path: Path) -> tuple[list[AclBinding], str]:
    """Return the ACLs as the last transaction left them, each once, and the id of the cluster.

    Raises `StoreError` if there is no file, if it is of an older version, which a broker must open
    first, or if it is damaged.
    """
    with _reading(path) as (connection, cluster_id, sealed):
        return _acls(connection, sealed, sealed.last_change), cluster_id


def read_identity(path: Path) -> tuple[str, int]:
    """Return the id of the cluster, and the position of the last change of ACLs.

    Raises `StoreError` as `read_acls`.
    """
    with _reading(path) as (_, cluster_id, sealed):
        return cluster_id, sealed.last_change


def read_acls_at(
    path: Path, *, position: int | None = None, time_ms: int | None = None
) -> PastAcls:
    """Return the ACLs as they were at a position, or at a time in milliseconds since the epoch.

    Raises `StoreError` as `read_acls`, and for what is before the horizon or was not yet.
    """
    with _reading(path) as (connection, cluster_id, sealed):
        origins.check(connection, sealed)
        if position is None:
            position = _position_at(connection, sealed, path, time_ms or 0)
        elif position > sealed.last_change:
            raise StoreError(
                f"the ACL store {path} has come to position {sealed.last_change}, and not yet to "
                f"{position}"
            )
        elif position < sealed.horizon:
            raise StoreError(_too_old(path, sealed, f"position {position}"))
        # A position within a transaction is before it, since none of it was visible.
        within = "SELECT first FROM origin WHERE first <= ? AND position > ?"
        begun = connection.execute(within, (position, position)).fetchone()
        last = position if begun is None else begun[0] - 1
        return PastAcls(_acls(connection, sealed, last), last, cluster_id)


def read_history(path: Path) -> History:
    """Return which ACLs were granted and revoked, in order. Raises `StoreError` as `read_acls`."""
    with (
        _reading(path) as (connection, cluster_id, sealed),
        closing(origins.read(connection)) as made_by,
    ):
        origins.check(connection, sealed)
        told: list[PastChange] = []
        origin = next(made_by, None)
        total = 0
        for change in changes.survey(connection):
            while origin is not None and origin.position < change.id:
                origin = next(made_by, None)
            if change.binding is None:
                raise InvalidRow(f"row {change.id} of the table acl_change, which was not written")
            known = origin if origin is not None and origin.first <= change.id else None
            position = change.id if known is None else known.position
            who = None if known is None else known.origin
            told.append(PastChange(position, change.binding, change.removed, who))
            total += change.checksum
        changes.check_totals(sealed, len(told), total)
        left_out = _left_out(sealed)
        return History(told, sealed.horizon, left_out, sealed.last_change, cluster_id)


@contextmanager
def _reading(path: Path) -> Iterator[tuple[sqlite3.Connection, str, Seal]]:
    if not path.exists():
        raise StoreError(f"there is no ACL store {path}")
    with explained(path, "read"), inspection.read_transaction(path) as connection:
        version = inspection.check_kind(connection, path)
        if version < schema.SCHEMA_VERSION:
            raise StoreError(f"the ACL store {path} is of an older aclbroker; start a broker once")
        cluster_id, sealed = inspection.check_tables(connection)
        origins.check_totals(connection, sealed)
        yield connection, cluster_id, sealed


def _acls(connection: sqlite3.Connection, sealed: Seal, last: int) -> list[AclBinding]:
    """Return the ACLs that there were at a position."""
    gone = changes.removals(connection, last)
    found: dict[AclBinding, None] = {}
    with closing(changes.load(connection, sealed, gone, last)) as chunks:
        for chunk in chunks:
            found.update(dict.fromkeys(chunk))
    return list(found)


def _position_at(connection: sqlite3.Connection, sealed: Seal, path: Path, time_ms: int) -> int:
    """Return the position of the last change that was made up to a time."""
    if time_ms < sealed.horizon_ms:
        raise StoreError(_too_old(path, sealed, written_time(time_ms)))
    query = "SELECT max(position) FROM origin WHERE time_ms <= ?"
    [found] = connection.execute(query, (time_ms,)).fetchone()
    return max(found or 0, sealed.horizon)


def _left_out(sealed: Seal) -> str:
    if not sealed.horizon:
        return ""
    return (
        f"the history begins at position {sealed.horizon}, {written_time(sealed.horizon_ms)}; of "
        "before that only those grants are told that were not revoked by then"
    )


def _too_old(path: Path, sealed: Seal, asked: str) -> str:
    return (
        f"the history of the ACL store {path} does not reach back to {asked}: it begins at "
        f"position {sealed.horizon}, {written_time(sealed.horizon_ms)} "
        "(aclbroker.store.history.max.changes)"
    )
