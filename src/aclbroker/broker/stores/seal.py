"""The seal of a store: how many rows there are and the sum of their checksums, in one row.

Each transaction brings it forward by what it adds, and deleting dead rows takes back what they had
given. So it stays cheap however many rows there are, and a row that is missing, twice there, or
older than it should be is noticed although its own checksum fits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from aclbroker.broker.stores import checksums, schema
from aclbroker.broker.stores.schema import InvalidRow


class Seal(NamedTuple):
    """What the tables must hold. The sums are those of the rows' checksums."""

    transactions: int = 0
    """How many transactions changed ACLs or records since the file was made."""

    changes: int = 0
    changes_sum: int = 0
    last_change: int = 0
    """The greatest id that a change of an ACL ever had."""

    records: int = 0
    records_sum: int = 0
    whole: int = 1
    """1 if, when this was written, no later transaction could be in the write-ahead log; else 0."""

    origins: int = 0
    origins_sum: int = 0
    horizon: int = 0
    """The first position at which it can be told which ACLs there were."""

    horizon_ms: int = 0
    """Since when these ACLs, or later ones, hold, in milliseconds since the epoch."""

    def with_changes(self, checksums: Collection[int]) -> Seal:
        """Return the seal after rows with these checksums were appended."""
        return self._replace(
            changes=self.changes + len(checksums),
            changes_sum=self.changes_sum + sum(checksums),
            last_change=self.last_change + len(checksums),
        )

    def up_to(self, last_change: int) -> Seal:
        """Return the seal of rows that have other ids than one after the other."""
        return self._replace(last_change=last_change)

    def without_changes(self, count: int, checksums_sum: int) -> Seal:
        """Return the seal after ``count`` rows of changes were deleted."""
        return self._replace(
            changes=self.changes - count, changes_sum=self.changes_sum - checksums_sum
        )

    def with_records(self, count: int, checksums_sum: int) -> Seal:
        """Return the seal with so many records more, or fewer, and so much more in their sum."""
        return self._replace(
            records=self.records + count, records_sum=self.records_sum + checksums_sum
        )

    def with_origins(self, count: int, checksums_sum: int) -> Seal:
        """Return the seal with so many origins more, or fewer, and so much more in their sum."""
        return self._replace(
            origins=self.origins + count, origins_sum=self.origins_sum + checksums_sum
        )


_NUMBERS: Final = {
    schema.SEALED_VERSION: 7,
    schema.ORIGINS_VERSION: len(Seal._fields),
    schema.SCHEMA_VERSION: len(Seal._fields),
}
"""How many of the numbers a seal has, by the version of the file."""


def read(
    connection: sqlite3.Connection, cluster_id: str, version: int = schema.SCHEMA_VERSION
) -> Seal:
    """Return the seal. Raises `InvalidRow` if it, or the cluster id, is not what was written."""
    columns = ", ".join(Seal._fields[: _NUMBERS[version]])
    rows = connection.execute(f"SELECT {columns}, checksum FROM seal").fetchall()  # noqa: S608
    if len(rows) != 1:
        raise InvalidRow(f"{len(rows)} rows instead of one in the table seal")
    *numbers, checksum = rows[0]
    if not _is_valid(numbers, checksum, cluster_id):
        raise InvalidRow(
            "a wrong checksum in the table seal, which vouches for it, for the cluster id in the "
            "table meta, and for all rows being there"
        )
    return Seal(*numbers)


def _is_valid(numbers: list[Any], checksum: Any, cluster_id: str) -> bool:
    if not all(type(number) is int for number in numbers):
        return False
    return bool(checksum == checksums.of_numbers(numbers, cluster_id))


def write(
    connection: sqlite3.Connection,
    seal: Seal,
    cluster_id: str,
    version: int = schema.SCHEMA_VERSION,
) -> None:
    """Write the first seal of a file, or replace whatever is there."""
    numbers = seal[: _NUMBERS[version]]
    marks = ", ".join("?" * (len(numbers) + 2))
    checksum = checksums.of_numbers(numbers, cluster_id)
    connection.execute(f"INSERT OR REPLACE INTO seal VALUES ({marks})", (1, *numbers, checksum))  # noqa: S608


_SET: Final = ", ".join(f"{name} = ?" for name in Seal._fields)


def bring_forward(
    connection: sqlite3.Connection, before: Seal, after: Seal, cluster_id: str
) -> None:
    """Replace a seal by the next one, if it is there; raises `InvalidRow` if another is.

    That is one statement, not two: see `changes` for what a statement can cost.
    """
    done = connection.execute(
        f"UPDATE seal SET {_SET}, checksum = ? "  # noqa: S608
        "WHERE transactions = ? AND changes_sum = ? AND records_sum = ?",
        (
            *after,
            checksums.of_numbers(after, cluster_id),
            before.transactions,
            before.changes_sum,
            before.records_sum,
        ),
    )
    if done.rowcount != 1:
        raise InvalidRow("another seal than the one that was written last (table seal)")
