"""The seal of a store: how many rows there are and the sum of their checksums, in one row.

Each transaction brings it forward by what it adds, and deleting dead rows takes back what they had
given. So it stays cheap however many rows there are, and a row that is missing, twice there, or
older than it should be is noticed although its own checksum fits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any, NamedTuple

from aclbroker.broker.stores import checksums
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


_COLUMNS = "transactions, changes, changes_sum, last_change, records, records_sum, whole"


def read(connection: sqlite3.Connection, cluster_id: str) -> Seal:
    """Return the seal. Raises `InvalidRow` if it, or the cluster id, is not what was written."""
    rows = connection.execute(f"SELECT {_COLUMNS}, checksum FROM seal").fetchall()  # noqa: S608
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


def write(connection: sqlite3.Connection, seal: Seal, cluster_id: str) -> None:
    """Write the first seal of a file, or replace whatever is there."""
    connection.execute(
        f"INSERT OR REPLACE INTO seal (id, {_COLUMNS}, checksum) "  # noqa: S608
        "VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        _values(seal, cluster_id),
    )


def bring_forward(
    connection: sqlite3.Connection, before: Seal, after: Seal, cluster_id: str
) -> None:
    """Replace a seal by the next one, if it is there; raises `InvalidRow` if another is.

    That is one statement, not two: see `changes` for what a statement can cost.
    """
    done = connection.execute(
        "UPDATE seal SET transactions = ?, changes = ?, changes_sum = ?, last_change = ?, "
        "records = ?, records_sum = ?, whole = ?, checksum = ? "
        "WHERE transactions = ? AND changes_sum = ? AND records_sum = ?",
        (
            *_values(after, cluster_id),
            before.transactions,
            before.changes_sum,
            before.records_sum,
        ),
    )
    if done.rowcount != 1:
        raise InvalidRow("another seal than the one that was written last (table seal)")


def _values(seal: Seal, cluster_id: str) -> tuple[int, ...]:
    return (*seal, checksums.of_numbers(seal, cluster_id))
