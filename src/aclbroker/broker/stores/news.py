"""What a file has that was changed after a position, transaction by transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Set
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, origins, records
from aclbroker.broker.stores.origins import OriginRow
from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Missed, StoreChange, StoreReset


class News(NamedTuple):
    """One thing to be told to those who follow."""

    before: int
    """The position that it follows on; of a `StoreReset` any."""

    what: StoreChange | StoreReset


def everything(connection: sqlite3.Connection, sealed: Seal) -> StoreReset:
    """Return all bindings and records as the transaction sees them, and check them."""
    gone = changes.removals(connection)
    found = chain.from_iterable(changes.load(connection, sealed, gone))
    kept = records.load_all(connection)
    return StoreReset(sealed.last_change, list(found), kept)


def after(connection: sqlite3.Connection, sealed: Seal, position: int) -> list[News] | None:
    """Return all changes after a position, None if they cannot be told one by one any more.

    A record has the value of now, whichever change gave it that. Raises `InvalidRow`.
    """
    if position >= sealed.last_change:
        return []
    if position < sealed.horizon:
        return None
    told: list[News] = []
    with closing(origins.read(connection, position)) as rows:
        for row in rows:
            if row.kind is not None and row.names is None:
                return None
            told.append(_news(connection, row, position))
            position = row.position
    if position != sealed.last_change:
        raise InvalidRow(f"no change {sealed.last_change}, which the table seal has")
    return told


def _news(connection: sqlite3.Connection, row: OriginRow, position: int) -> News:
    """Return the change of a row that is the next one after a position."""
    if row.first > position + 1:
        raise InvalidRow(f"nothing of the changes {position + 1} to {row.first - 1} (table origin)")
    if row.kind is None:
        added, removed = changes.between(connection, row.first, row.position)
        change = StoreChange(row.position, added, removed, {}, row.origin)
    else:
        values = records.values(connection, row.kind, json.loads(row.names or "[]"))
        named = {(row.kind, name): value for name, value in values.items()}
        change = StoreChange(row.position, (), (), named, row.origin)
    return News(position, change)


def concern(told: Iterable[News], kind: str, names: Set[str]) -> bool:
    """Return whether changes have changed any of these records."""
    return any(
        (kind, name) in each.what.records for each in told for name in names if each.what.records
    )


def missed(told: Iterable[News]) -> Missed:
    """Return what changes have added and removed in the end."""
    added: dict[AclBinding, None] = {}
    removed: dict[AclBinding, None] = {}
    for each in told:
        if isinstance(each.what, StoreChange):
            for binding in each.what.removed:
                added.pop(binding, None)
                removed[binding] = None
            for binding in each.what.added:
                removed.pop(binding, None)
                added[binding] = None
    return Missed(added.keys(), removed.keys())
