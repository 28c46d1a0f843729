"""Rows of a table that somebody else wrote, as events: what does not fit is quarantined.

The names of operations and types of resources may be written as Kafka writes them anywhere:
``DESCRIBE_CONFIGS``, ``DescribeConfigs``. Times are timestamps, milliseconds since 1970, or texts
of ISO 8601; those without a zone are of the zone that the user named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.ingest.column_places import is_text
from aclbroker.pipeline.ingest.parsed import (
    MICROSECOND,
    RECORD_SCHEMA,
    Parsed,
    Rejected,
    RolledUp,
)
from aclbroker.pipeline.ingest.record import (
    ASKED,
    MOST_REFERENCES,
    PRINCIPAL_FORM,
    RESOURCES,
    address_of,
    is_cluster,
    unwrapped,
)

SOURCE: Final = "columns"
UNKNOWN_HOST: Final = "unknown"
"""The host of events of a table that has none: no ACL but those of all hosts means it."""

_FIRST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_BEHIND: Final = datetime(2100, 1, 1, tzinfo=UTC)


class ForeignReason(StrEnum):
    """Why a row is quarantined, in the order in which it is asked."""

    TIMESTAMP = (
        "timestamp: missing, or no time of 2000 to 2099 (numbers are milliseconds since 1970)"
    )
    PRINCIPAL = "principal: missing, or not of the form Type:name"
    OPERATION = "operation: missing, or none that a request asks for"
    RESOURCE_TYPE = "resource_type: missing or unknown"
    RESOURCE_NAME = "resource_name: not UTF-8"
    ALLOWED = "allowed: neither true nor false, ALLOWED nor DENIED"
    HOST = "host: missing, or no address"
    CLUSTER = "cluster: missing, too long, or with a NUL"
    COUNT = "count: no number of 1 or more"


def plain(name: str) -> str:
    """Return a name of Kafka's in lower case, without blanks and underscores."""
    return name.replace("_", "").replace(" ", "").lower()


OPERATIONS: Final = {plain(each.name): each.name for each in ASKED}
RESOURCE_TYPES: Final = {plain(each.name): each.name for each in RESOURCES}
_ALLOWED: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("allowed", "allow", "true"), True),
    **dict.fromkeys(("denied", "deny", "false"), False),
}


def parsed(found: Mapping[str, pa.Array], source_file: str, cluster: str, zone: tzinfo) -> Parsed:
    """Return what rows say.

    ``found`` has an array for each thing that has a column (`pipeline.ingest.columns`); all are of
    one length and of a type that fits (`pipeline.ingest.column_places`). ``cluster`` is the name
    without such a column.
    """
    rows = len(found["timestamp"])
    time = _times(found["timestamp"], zone)
    texts = {name: _texts(found[name]) for name in _TEXTS if name in found}
    read = {
        "principal": _mapped(texts["principal"], unwrapped),
        "operation": _mapped(texts["operation"], lambda each: OPERATIONS.get(plain(each))),
        "resource_type": _mapped(
            texts["resource_type"], lambda each: RESOURCE_TYPES.get(plain(each))
        ),
        "resource_name": texts["resource_name"],
        "allowed": _decisions(found["allowed"]),
        "host": _mapped(texts["host"], lambda each: address_of(each.strip()))
        if "host" in texts
        else pa.repeat(UNKNOWN_HOST, rows),
        "cluster": texts.get("cluster", pa.repeat(cluster, rows)),
    }
    count = found["count"].cast(pa.int64(), safe=False) if "count" in found else None
    checks = _checks(read, time, count, found["resource_name"])
    wrong = _wrong(checks, rows)
    reasons = list(checks)
    good = pa.array(wrong < 0)
    rejected = [
        Rejected(source_file, _shown(found, row), reasons[wrong[row]].value, _day(time[row]))
        for row in np.flatnonzero(wrong >= 0).tolist()
    ]
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows)
    made: dict[str, pa.Array] = {
        **read,
        **{
            name: texts[name]
            for name in ("listener", "api", "client_id", "broker")
            if name in texts
        },
        "quiet": pa.repeat(False, rows),
        "reference_count": ones if count is None else count,
        "source": pa.repeat(SOURCE, rows),
    }
    arrays = [
        made[each.name].cast(each.type) if each.name in made else pa.nulls(rows, each.type)
        for each in RECORD_SCHEMA
    ]
    records = pa.Table.from_arrays(arrays, schema=RECORD_SCHEMA).filter(good)
    time = time.filter(good)
    rolled_up = None if count is None else RolledUp(count.filter(good), time)
    return Parsed(records, None, time, rejected, rolled_up)


def _checks(
    read: Mapping[str, pa.Array], time: pa.Array, count: pa.Array | None, named: pa.Array
) -> dict[ForeignReason, pa.Array]:
    """Return in which rows each thing is as it must be; a null means that it is not.

    ``named``: the names of resources as the table has them, of which a null is good.
    """
    checks: dict[ForeignReason, pa.Array] = {
        ForeignReason.TIMESTAMP: time.is_valid(),
        ForeignReason.PRINCIPAL: pc.match_substring_regex(read["principal"], f"^{PRINCIPAL_FORM}"),
        ForeignReason.OPERATION: read["operation"].is_valid(),
        ForeignReason.RESOURCE_TYPE: read["resource_type"].is_valid(),
        ForeignReason.RESOURCE_NAME: pc.or_(named.is_null(), read["resource_name"].is_valid()),
        ForeignReason.ALLOWED: read["allowed"].is_valid(),
        ForeignReason.HOST: read["host"].is_valid(),
        ForeignReason.CLUSTER: _mapped(read["cluster"], is_cluster, pa.bool_()),
    }
    if count is not None:
        is_few = pc.less_equal(count, MOST_REFERENCES)
        checks[ForeignReason.COUNT] = pc.and_(pc.greater_equal(count, 1), is_few)
    return checks


_TEXTS: Final = (
    *("principal", "operation", "resource_type", "resource_name"),
    *("host", "cluster", "broker", "listener", "api", "client_id"),
)


def _wrong(checks: Mapping[ForeignReason, pa.Array], rows: int) -> np.ndarray[Any, Any]:
    """Return for each row the number of the first check that does not hold, -1 if all do."""
    found = np.full(rows, -1)
    for number, holds in reversed(list(enumerate(checks.values()))):
        failed = pc.invert(pc.fill_null(holds, False)).to_numpy(zero_copy_only=False)
        found[failed.astype(bool)] = number
    return found


def _shown(found: Mapping[str, pa.Array], row: int) -> bytes:
    values = {what: column[row].as_py() for what, column in found.items()}
    return json.dumps(values, default=_text_of, ensure_ascii=False).encode(errors="replace")


def _text_of(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _day(time: pa.Scalar) -> Any:
    found = time.as_py()
    return found and found.date()


def _texts(column: pa.Array) -> pa.Array:
    """Return a column of texts; what is no UTF-8 is null."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Of a file, nobody has looked yet whether its texts are some.
    column = column.cast(pa.large_binary())
    try:
        return column.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if each is None else _decoded(each) for each in column.to_pylist()])


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _mapped(
    column: pa.Array, function: Callable[[str], Any], to: pa.DataType | None = None
) -> pa.Array:
    """Apply a function to texts of which few differ; null stays null."""
    encoded = column.dictionary_encode()
    values = pa.array(
        [function(each) for each in encoded.dictionary.to_pylist()], to or pa.string()
    )
    return values.take(encoded.indices)


def _decisions(column: pa.Array) -> pa.Array:
    if pa.types.is_boolean(column.type):
        return column
    return _mapped(_texts(column), lambda each: _ALLOWED.get(each.strip().lower()), pa.bool_())


def _times(column: pa.Array, zone: tzinfo) -> pa.Array:
    """Return times in microseconds; null where there is none, or none of our time."""
    if is_text(column.type):
        time = _mapped(_texts(column), lambda each: _time_of(each, zone), MICROSECOND)
    elif pa.types.is_timestamp(column.type):
        naive = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        if column.type.tz is None:
            how = {"ambiguous": "earliest", "nonexistent": "earliest"}
            naive = pc.assume_timezone(naive, str(zone), **how)
        time = naive.cast(MICROSECOND)
    else:
        number = column.cast(pa.int64(), safe=False)
        is_near = pc.and_(pc.greater_equal(number, 0), pc.less(number, 1 << 43))
        number = pc.if_else(is_near, number, None)
        time = pc.multiply(number, 1000).cast(MICROSECOND)
    first, behind = (pa.scalar(each, MICROSECOND) for each in (_FIRST, _BEHIND))
    is_ours = pc.and_(pc.greater_equal(time, first), pc.less(time, behind))
    return pc.if_else(is_ours, time, pa.scalar(None, MICROSECOND))


def _time_of(text: str, zone: tzinfo) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
        # A date alone is no time.
        if len(text.strip()) < _SHORTEST:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_SHORTEST: Final = len("20260101T0000")
