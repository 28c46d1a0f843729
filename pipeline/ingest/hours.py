"""Counts the events of a log by broker and hour, so that a job knows the hours without logged use.

A line of our own log names its broker (``node_id``), and a table may have a column for it. A line
of Kafka's log names none, so the file and its rotated files stand for the broker.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.ingest.parsed import Parsed
from aclbroker.pipeline.usage.grouping import encoded
from aclbroker.pipeline.usage.hours import HOUR, HOURS_COUNTS, HOURS_KEYS

_DAY: Final = (
    r"(?:19|20)\d\d[-_./]?(?:0[1-9]|1[0-2])[-_./]?(?:0[1-9]|[12]\d|3[01])"
    r"(?:[-_.T/]?\d\d(?:[-_.:]?\d\d){0,2}(?:\.\d{1,6})?Z?)?(?:[-_.]\d{1,4})?"
)
_ROTATED: Final = re.compile(
    rf"[-_.]?(?<!\d){_DAY}(?!\d)|\.(?:gz|zst|bz2|deflate|lz4|snappy)$|\.\d{{1,5}}(?=$|\.[a-z0-9]+$)"
)
"""The parts that rotation adds to a file's path: a day, a number, a suffix of compression."""


@lru_cache(maxsize=10_000)
def broker_of(source_file: str) -> str:
    """Return the path of a file without the days and numbers that rotation adds."""
    parts = urlsplit(source_file)
    place = "" if parts.scheme in ("", "file") else f"{parts.scheme}://{parts.netloc}"
    path = source_file if not parts.scheme else unquote(parts.path)
    return place + re.sub("/+", "/", _ROTATED.sub("", path))


def hours_rows(parsed: Parsed, broker: str | None) -> pa.Table:
    """Return a row with `HOURS_KEYS` and `HOURS_COUNTS` for each event. The caller adds them up.

    ``broker`` is the broker of the lines that name none.
    """
    records = encoded(parsed.records.select(["cluster", "broker", "allowed"]))
    time = parsed.timestamp
    if parsed.index is not None:
        records = records.take(parsed.index)
    count, last = parsed.rolled_up or (pa.repeat(pa.scalar(1, pa.int64()), len(time)), time)
    brokers = records["broker"].combine_chunks()
    if brokers.null_count and broker is not None:
        brokers = pc.fill_null(brokers.cast(pa.string()), broker).dictionary_encode()
    columns = {
        "cluster": records["cluster"],
        "broker": brokers,
        "hour": pc.divide(time.cast(pa.int64()), HOUR).cast(pa.int32()),
        "allowed": records["allowed"],
        "events": count,
        "first_seen": time,
        "last_seen": last,
    }
    return pa.table({name: columns[name] for name in (*HOURS_KEYS, *HOURS_COUNTS)})
