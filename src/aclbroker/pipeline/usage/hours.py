"""The hours of a log, with the numbers of allowed and of denied events of each broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from aclbroker.pipeline.usage.counting import counted

HOUR: Final = 3_600_000_000
"""The microseconds of an hour."""

HOURS_KEYS: Final = ("cluster", "broker", "hour", "allowed")
HOURS_COUNTS: Final[Mapping[str, str]] = {"events": "sum", "first_seen": "min", "last_seen": "max"}
"""The columns after `HOURS_KEYS`, with how to add them up; ``hour`` counts hours since 1970."""

_MICROSECOND: Final = pa.timestamp("us", tz="UTC")
HOURS_SCHEMA: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("broker", pa.string()),
        ("hour", pa.int32()),
        ("allowed", pa.bool_()),
        ("events", pa.int64()),
        ("first_seen", _MICROSECOND),
        ("last_seen", _MICROSECOND),
    ]
)


def added_up(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of several tables as `HOURS_SCHEMA`, added up by `HOURS_KEYS`."""
    for found in counted(tables, HOURS_KEYS, HOURS_COUNTS):
        columns = [found[field.name].cast(field.type) for field in HOURS_SCHEMA]
        yield pa.Table.from_arrays(columns, schema=HOURS_SCHEMA)


def as_stored(hours: pa.Table) -> pa.Table:
    """Return hours in the columns of the table `pipeline.schemas.hours`."""
    starts = pa.array([start_of(each) for each in hours["hour"].to_pylist()], _MICROSECOND)
    days = pa.array([each.as_py().date() for each in starts], pa.date32())
    at = HOURS_SCHEMA.get_field_index("hour")
    return hours.set_column(at, "hour", starts).append_column("day", days)


def start_of(hour: int) -> datetime:
    """Return the beginning of an hour, by its number since 1970."""
    return _EPOCH + timedelta(hours=hour)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
