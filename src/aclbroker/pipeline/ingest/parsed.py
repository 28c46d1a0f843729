"""What the lines of a log say, many at a time, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.ingest.record import Record

RECORD_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "listener", "principal", "other_principals")),
        *((name, pa.string()) for name in ("host", "operation", "resource_type", "resource_name")),
        ("api", pa.string()),
        ("allowed", pa.bool_()),
        ("rule", pa.string()),
        ("quiet", pa.bool_()),
        ("reference_count", pa.int64()),
        ("client_id", pa.string()),
        ("source", pa.string()),
        ("acls", pa.int64()),
        ("first_acls", pa.int64()),
        ("broker", pa.string()),
    ]
)
"""The fields of `Record` as columns."""

MICROSECOND: Final = pa.timestamp("us", tz="UTC")


class Rejected(NamedTuple):
    """A line that is no event: where it is from, why it is none, and the day it claims, if any."""

    source_file: str
    line: bytes
    reason: str
    day: date | None


class RolledUp(NamedTuple):
    """How many equal events each line stands for, and when the last of them was."""

    count: pa.Array
    last: pa.Array


@dataclass(frozen=True, slots=True)
class Parsed:
    """What some lines say.

    ``records`` has the columns of `RECORD_SCHEMA`, whose texts may be dictionary-encoded. Event *i*
    is row ``index[i]`` of it, or row *i* if ``index`` is None, and was at ``timestamp[i]``. With
    ``rolled_up``, which has no ``index`` beside it, row *i* stands for several events, of which
    that was the first, and its ``reference_count`` is that of all of them.
    """

    records: pa.Table
    index: pa.Array | None
    timestamp: pa.Array
    rejected: Sequence[Rejected]
    rolled_up: RolledUp | None = None


def records_table(records: Iterable[Record]) -> pa.Table:
    """Return records as a table."""
    columns = list(zip(*records, strict=True)) or [()] * len(RECORD_SCHEMA)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, RECORD_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=RECORD_SCHEMA)


def timestamps(times: Iterable[datetime]) -> pa.Array:
    """Return times as an array of microseconds."""
    return pa.array((microseconds_of(time) for time in times), pa.int64()).cast(MICROSECOND)


def microseconds_of(time: datetime) -> int:
    """Return a time as microseconds since 1970."""
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(clocks: pa.Array, minute_of: Callable[[str], datetime | None]) -> pa.Array:
    """Return texts ``YYYY-MM-DD hh:mm:ss`` with a fraction as timestamps without a zone.

    The fraction has three digits or six, with any character before it. ``minute_of`` returns the
    time in UTC of a text up to its minutes, None if there is no such time, which is null here, as
    is a null.
    """
    minutes = pc.utf8_slice_codeunits(clocks, 0, 16).dictionary_encode()
    known = (None if each is None else minute_of(each) for each in minutes.dictionary.to_pylist())
    starts = pa.array((time and microseconds_of(time) for time in known), pa.int64())
    seconds = pc.utf8_slice_codeunits(clocks, 17, 19).cast(pa.int64())
    fraction = pc.utf8_slice_codeunits(clocks, 20, 26)
    scale = pc.if_else(pc.equal(pc.utf8_length(fraction), 3), 1000, 1)
    micros = pc.add(pc.multiply(seconds, 1_000_000), pc.multiply(fraction.cast(pa.int64()), scale))
    time = pc.add(starts.take(minutes.indices), micros)
    return pc.if_else(pc.less(seconds, 60), time, None).cast(pa.timestamp("us"))
