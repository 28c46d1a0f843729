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

_DAY: Final = r"(?:19|20)\d\d[-_./]?(?:0[1-9]|1[0-2])[-_./]?(?:0[1-9]|[12]\d|3[01])"
_TIME: Final = r"\d\d(?:[-_:]?\d\d(?:[-_:]?\d\d(?:\.\d{1,6})?)?)?Z?"
_PACKED: Final = re.compile(r"\.(?:gz|zst|bz2|deflate|lz4|snappy)$")
_BEHIND_NAME: Final = re.compile(
    r"(\.(?:log|jsonl|json|txt|out))"
    rf"(?:\.\d{{1,5}}|[-_.]{_DAY}(?:[-_.T]?{_TIME})?(?:[-_.]\d{{1,10}})?)$"
)
"""The number or time that rotation puts behind the whole name of a log."""

_ANYWHERE: Final = re.compile(rf"[-_.]?(?<!\d){_DAY}(?:T{_TIME})?(?!\d)")
"""A day in a path. A number in front of a file's extension may be a broker, also behind a day."""


@lru_cache(maxsize=10_000)
def broker_of(source_file: str) -> str:
    """Return the path of a file without the days and numbers that rotation adds.

    A number that may be the broker's remains, so that no broker hides another one.
    """
    parts = urlsplit(source_file)
    place = "" if parts.scheme in ("", "file") else f"{parts.scheme}://{parts.netloc}"
    path = source_file if not parts.scheme else unquote(parts.path)
    path = _BEHIND_NAME.sub(r"\1", _PACKED.sub("", path))
    return place + re.sub("/+", "/", _ANYWHERE.sub("", path))


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
