"""The table of origins: who made the changes of a range of positions, when and from where."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

from aclbroker.broker.stores import checksums
from aclbroker.broker.stores.schema import ORIGINS_VERSION, SCHEMA_VERSION, InvalidRow, fetched
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin

_CHUNK: Final = 4096
_COLUMNS: Final = "position, first, time_ms, principal, host, kind, names"


class OriginRow(NamedTuple):
    """Who made one transaction."""

    position: int
    """The greatest id of its changes."""

    first: int
    """The least id of its changes."""

    time_ms: int
    principal: str | None
    host: str
    kind: str | None
    """Of the records that were changed; None if ACLs were."""

    names: str | None = None
    """Of the records that were changed, a list in JSON; None if ACLs were, and of records in rows
    that versions up to 5 have written."""

    @property
    def origin(self) -> Origin:
        """Who, from where and when."""
        return Origin(self.principal, self.host, self.time_ms)


def append(
    connection: sqlite3.Connection,
    before: Seal,
    after: Seal,
    origin: Origin,
    kind: str | None = None,
    names: Collection[str] = (),
) -> Seal:
    """Say who made what is between two seals; return the seal after that.

    ``kind`` is that of the records that were changed, and these are their ``names``. Nothing is
    said of nothing.
    """
    if after.last_change == before.last_change:
        return after
    first = before.last_change + 1
    row = OriginRow(
        *(after.last_change, first, origin.time_ms, origin.principal, origin.host, kind),
        names=None if kind is None else json.dumps(sorted(names)),
    )
    return after.with_origins(1, sum(write(connection, [row])))


def write(connection: sqlite3.Connection, rows: Iterable[OriginRow]) -> list[int]:
    """Add rows; return their checksums."""
    rows = list(rows)
    sums = _sums(rows)
    connection.executemany(
        f"INSERT INTO origin ({_COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [(*row, checksum) for row, checksum in zip(rows, sums, strict=True)],
    )
    return sums


def check_totals(connection: sqlite3.Connection, sealed: Seal) -> None:
    """Raise `InvalidRow` if rows are missing, or there in addition.

    A broker starts with that, since no decision depends on what the rows say: to read a million of
    them would take as long as to load the ACLs.
    """
    query = "SELECT count(*), coalesce(sum(checksum), 0) FROM origin"
    _compare(sealed, *connection.execute(query).fetchone())


def check(connection: sqlite3.Connection, sealed: Seal, version: int = SCHEMA_VERSION) -> None:
    """Raise `InvalidRow` if a row is not what was written, missing, or there in addition."""
    count = total = 0
    for chunk in _chunks(connection, version):
        count, total = count + len(chunk), total + sum(row[-1] for row in chunk)
    _compare(sealed, count, total)


def _compare(sealed: Seal, count: int, total: int) -> None:
    if (count, total) != (sealed.origins, sealed.origins_sum):
        raise InvalidRow(
            f"{count} rows where the table seal has {sealed.origins}, or others of them "
            "(table origin)"
        )


def read(connection: sqlite3.Connection, after: int = -1) -> Generator[OriginRow]:
    """Return all rows behind a position in their order; raises `InvalidRow` for one not valid."""
    for chunk in _chunks(connection, after=after):
        for *fields, _ in chunk:
            yield OriginRow(*fields)


def survey(
    connection: sqlite3.Connection, version: int = SCHEMA_VERSION
) -> Iterator[tuple[int, OriginRow | None, int]]:
    """Return all rows by position, and their checksums; None for one that is not what was written.

    As bytes, because the sqlite3 module would show a text that is not UTF-8 in its error.
    """
    names = _names(version)
    rows = connection.execute(
        "SELECT position, first, time_ms, CAST(principal AS BLOB), CAST(host AS BLOB), "  # noqa: S608
        f"CAST(kind AS BLOB), CAST({names} AS BLOB), checksum, typeof(principal) || typeof(host) "
        f"|| typeof(kind) || typeof({names}) FROM origin ORDER BY position"
    )
    with closing(rows):
        for position, first, time_ms, *texts, checksum, types in rows:
            row = None
            try:
                is_text = "blob" not in types and "integer" not in types and "real" not in types
                decoded = [None if text is None else text.decode() for text in texts]
                principal, host, kind, changed = decoded
                made = OriginRow(position, first, time_ms, principal, host or "", kind, changed)
                row = made if is_text and _sums([made]) == [checksum] else None
            except (UnicodeDecodeError, TypeError, struct.error):
                pass
            yield position, row, checksum


def _names(version: int) -> str:
    return "NULL" if version == ORIGINS_VERSION else "names"


def _chunks(
    connection: sqlite3.Connection, version: int = SCHEMA_VERSION, after: int = -1
) -> Generator[list[tuple[Any, ...]]]:
    """Return rows with their checksums, in lists. Raises `InvalidRow` for one without its own."""
    columns = _COLUMNS.replace("names", _names(version))
    query = f"SELECT {columns}, checksum FROM origin WHERE position > ? ORDER BY position"  # noqa: S608
    with closing(connection.execute(query, (after,))) as rows:
        while chunk := fetched(rows, _CHUNK, lambda: _damage(connection, version)):
            *values, sums = zip(*chunk, strict=True)
            if not _have_checksums(values, sums):
                raise InvalidRow(_damage(connection, version))
            yield chunk


def _sums(rows: list[OriginRow]) -> list[int]:
    return checksums.of_origins(*zip(*rows, strict=True)) if rows else []


def _have_checksums(columns: Iterable[Any], sums: Iterable[int]) -> bool:
    try:
        return checksums.of_origins(*columns) == list(sums)
    except (TypeError, AttributeError, struct.error):
        return False


def _damage(connection: sqlite3.Connection, version: int) -> str:
    wrong = [position for position, row, _ in survey(connection, version) if row is None]
    return (
        f"{len(wrong)} rows without their checksums in the table origin, the first of which has "
        f"the position {wrong[0] if wrong else 'of another moment'}"
    )
