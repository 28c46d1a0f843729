"""Turns events into rows of usage."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.ingest.parsed import Parsed
from aclbroker.pipeline.usage.grouping import encoded
from aclbroker.pipeline.usage.table import COUNTS, KEYS

_DAY: Final = 86_400_000_000  # microseconds
_OFTEN: Final = 2
"""Events of the same record are counted first if each record has so many."""

_COLUMNS: Final = (*KEYS, *COUNTS)


def usage_rows(parsed: Parsed) -> pa.Table:
    """Return rows of usage, to be added up, for some events."""
    records, time, index = encoded(parsed.records), parsed.timestamp.cast(pa.int64()), parsed.index
    if index is not None and len(index) < _OFTEN * records.num_rows:
        records, index = records.take(index), None
    if index is None:
        days = pc.divide(time, _DAY)
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(time))
        count, last = parsed.rolled_up or (ones, parsed.timestamp)
        columns = {
            "events": count,
            "first_seen": parsed.timestamp,
            "last_seen": last,
            "reference_count": records["reference_count"],
        }
    else:
        # The events of each record and day are counted before texts are looked at.
        found = pa.table({"index": index, "day": pc.divide(time, _DAY), "time": time})
        counted = found.group_by(["index", "day"], use_threads=False).aggregate(
            [("time", "count"), ("time", "min"), ("time", "max")]
        )
        records, days = records.take(counted["index"]), counted["day"]
        columns = {
            "events": counted["time_count"],
            "first_seen": counted["time_min"].cast(parsed.timestamp.type),
            "last_seen": counted["time_max"].cast(parsed.timestamp.type),
            "reference_count": pc.multiply(records["reference_count"], counted["time_count"]),
        }
    columns["day"] = days.cast(pa.int32()).cast(pa.date32())
    return pa.table(
        {name: columns[name] if name in columns else records[name] for name in _COLUMNS}
    )
