"""Counts events: those that differ in nothing that a decision depends on become one row a day."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.parsed import Parsed

KEYS: Final = (
    *("cluster", "day", "listener", "principal", "other_principals", "host", "operation"),
    *("resource_type", "resource_name", "api", "allowed", "rule", "quiet"),
)
"""The columns of `pipeline.schemas.usage` by which events are counted."""

COUNTS: Final = {
    "events": "sum",
    "reference_count": "sum",
    "first_seen": "min",
    "last_seen": "max",
}
"""Its other columns, and how those of two rows become one."""

_MOST_ROWS: Final = 200_000
_DAY: Final = 86_400_000_000  # microseconds


class Usage:
    """The usage that some events make. Memory follows the number of different rows at a time."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows = 0

    def add(self, parsed: Parsed) -> pa.Table | None:
        """Count events; return rows that are to be passed on, lest there be too many here."""
        if not len(parsed.timestamp):
            return None
        table = _counted(parsed)
        self._tables.append(table)
        self._rows += table.num_rows
        if self._rows < _MOST_ROWS:
            return None
        merged = _merged(self._tables)
        if merged.num_rows < _MOST_ROWS // 2:
            self._tables, self._rows = [merged], merged.num_rows
            return None
        self._tables, self._rows = [], 0
        return merged

    def rest(self) -> pa.Table | None:
        """Return the rows that are left."""
        tables, self._tables, self._rows = self._tables, [], 0
        return _merged(tables) if tables else None


def _counted(parsed: Parsed) -> pa.Table:
    """Count the events of each record and day."""
    records, index = parsed.records, parsed.index
    time = parsed.timestamp.cast(pa.int64())
    if index is None:
        days = pc.divide(time, _DAY).cast(pa.int32()).cast(pa.date32())
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(time))
        columns = {"day": days, "events": ones, "first_seen": time, "last_seen": time}
    else:
        found = pa.table({"index": index, "day": pc.divide(time, _DAY), "time": time})
        counted = found.group_by(["index", "day"], use_threads=False).aggregate(
            [("time", "count"), ("time", "min"), ("time", "max")]
        )
        records = records.take(counted["index"])
        columns = {
            "day": counted["day"].cast(pa.int32()).cast(pa.date32()),
            "events": counted["time_count"],
            "first_seen": counted["time_min"],
            "last_seen": counted["time_max"],
        }
    columns["reference_count"] = pc.multiply(records["reference_count"], columns["events"])
    return pa.table(
        {name: columns[name] if name in columns else records[name] for name in _COLUMNS}
    )


_COLUMNS: Final = (*KEYS, *COUNTS)


def _merged(tables: list[pa.Table]) -> pa.Table:
    """Add up rows of the same keys."""
    together = pa.concat_tables(tables)
    grouped = together.group_by(list(KEYS), use_threads=False).aggregate(list(COUNTS.items()))
    names = {f"{name}_{how}": name for name, how in COUNTS.items()}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
