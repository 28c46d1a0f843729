"""Our own audit log, many lines at a time: what `json_line` says of one, at the speed of a library.

`json_form` reads lines that are as the broker writes them. Of others, pyarrow reads the JSON and
compares columns. Lines that it does not read, or whose values are not as they should be, are given
to `json_line`, which finds the reason or reads them. Of keys that nobody reads, pyarrow takes
``Inf`` and ``-NaN`` for values, which JSON does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import PatternType
from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.json_form import JsonForm
from aclbroker.pipeline.ingest.memory import Lines, are_hosts
from aclbroker.pipeline.ingest.parsed import (
    MICROSECOND,
    RECORD_SCHEMA,
    Parsed,
    Rejected,
    RolledUp,
    microseconds,
    records_table,
    timestamps,
)
from aclbroker.pipeline.ingest.record import (
    MOST_REFERENCES,
    PRINCIPAL_FORM,
    Record,
    canonical_host,
    is_cluster,
)

_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in json_line.TEXTS),
        ("principals", pa.list_(pa.string())),
        ("resource_ref_count", pa.int64()),
        ("count", pa.int64()),
        ("allowed", pa.bool_()),
        *((name, pa.int64()) for name in json_line.POSITIONS),
    ]
)
_OPTIONS: Final = arrow_json.ParseOptions(
    explicit_schema=_SCHEMA, newlines_in_values=False, unexpected_field_behavior="ignore"
)
_FEW: Final = 32
"""If one of so many lines is not read, each of them is read on its own."""

_LONGEST: Final = 1_800
"""Longer lines, in bytes, are read on their own, as `json_line` does not read all nested values."""

# The reader makes null of a missing key. These keys may be null, and may not be missing.
_NULLABLE: Final = ("resource_name", "client_id")

_BETWEEN: Final = "\0"
"""Joins texts of which none holds it."""


class JsonLog:
    """Reads lines of the audit log; each names its cluster itself."""

    def __init__(self) -> None:
        self._form = JsonForm()

    def parse(self, lines: Lines, source_file: str) -> Iterator[Parsed]:
        """Yield what ``lines`` say, with the reasons of those that say nothing."""
        found, others = self._form.read(lines)
        if found is not None:
            yield found
        if len(others):
            yield from self._of_any_form(lines.some(others), source_file)

    def _of_any_form(self, lines: pa.Array, source_file: str) -> Iterator[Parsed]:
        whole = pc.and_(pc.starts_with(lines, b"{"), pc.ends_with(lines, b"}"))
        whole = pc.and_(whole, pc.less_equal(pc.binary_length(lines), _LONGEST))
        if not pc.all(whole).as_py():
            broken = pc.invert(whole)
            yield _one_by_one(lines.filter(broken), source_file)
            lines = lines.filter(whole)
        yield from _together(lines, source_file)


def _together(lines: pa.Array, source_file: str) -> Iterator[Parsed]:
    if len(lines) <= _FEW:
        yield _one_by_one(lines, source_file)
        return
    table = _table(lines)
    if table is None:
        half = len(lines) // 2
        for start, end in pairwise((0, half, len(lines))):
            yield from _together(lines[start:end], source_file)
        return
    times, last = _times(table["timestamp"]), _times(table["last_timestamp"])
    others, brokers = _others(table), _brokers(lines)
    good = pc.and_(_is_good(table, times, lines), pc.not_equal(pc.fill_null(others, "[]"), _WRONG))
    good = pc.and_(good, _is_single_or_roll_up(table, times, last))
    if not pc.all(good).as_py():
        bad = pc.invert(good)
        yield _one_by_one(lines.filter(bad), source_file)
        table, others, brokers = (each.filter(good) for each in (table, others, brokers))
        times, last = times.filter(good), last.filter(good)
    timestamp = times.cast(pa.int64()).cast(MICROSECOND)
    rolled_up = None
    if last.null_count < len(last):
        count = pc.fill_null(_array(table["count"]), 1)
        rolled_up = RolledUp(count, pc.coalesce(last, times).cast(pa.int64()).cast(MICROSECOND))
    yield Parsed(_records(table, others, brokers), None, timestamp, (), rolled_up)


def _one_by_one(lines: pa.Array, source_file: str) -> Parsed:
    said: list[json_line.Said] = []
    rejected = []
    for line in lines.to_pylist():
        found = json_line.parse(line)
        if isinstance(found, json_line.JsonReason):
            rejected.append(Rejected(source_file, line, found.value, json_line.day_of(line)))
        elif found is not None:
            said.append(found)
    counts = pa.array((each.events for each in said), pa.int64())
    rolled_up = RolledUp(counts, timestamps(each.last for each in said))
    records = records_table(each.record for each in said)
    return Parsed(records, None, timestamps(each.time for each in said), rejected, rolled_up)


def _table(lines: pa.Array) -> pa.Table | None:
    """Return the lines as a table, None if one of them is not exactly one object.

    Each begins with ``{`` and ends with ``}``, so that no object can go on in the next line: there
    would have to be a comma. One that holds two objects makes more rows than lines. The reader does
    not look whether texts are UTF-8, and a NUL ends what it reads.
    """
    offsets = pa.array([0, len(lines)], pa.int32())
    text = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), b"\n")[0].as_buffer()
    if np.frombuffer(text, np.uint8).min() == 0:
        return None
    options = arrow_json.ReadOptions(use_threads=False, block_size=text.size + 1)
    try:
        lines.cast(pa.string())
        table = arrow_json.read_json(pa.BufferReader(text), options, _OPTIONS)
    except pa.ArrowInvalid:
        return None
    return table.combine_chunks() if table.num_rows == len(lines) else None


def _times(timestamp: pa.ChunkedArray) -> pa.Array:
    """Return the times; null where there is no such time."""
    has_form = pc.match_substring_regex(timestamp, json_line.TIME)
    clocks = pc.utf8_slice_codeunits(pc.if_else(has_form, timestamp, None), 0, 26)
    return microseconds(_array(clocks), lambda minute: json_line.time_of(f"{minute}:00.000000Z"))


def _mapped(
    column: pa.ChunkedArray, function: Callable[[str], Any], to: pa.DataType
) -> pa.ChunkedArray:
    """Apply a function to a column of few different texts; null stays null."""
    encoded = _array(column).dictionary_encode()
    values = pa.array([function(each) for each in encoded.dictionary.to_pylist()], to)
    return pa.chunked_array([values.take(encoded.indices)])


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _is_good(table: pa.Table, times: pa.Array, lines: pa.Array) -> pa.Array:
    """Tell of each row whether `json_line` surely reads it, and how `_records` does."""
    rule, allowed = table["rule"], table["allowed"]
    count = table["resource_ref_count"]
    checks = [
        pc.is_valid(times),
        pc.equal(table["event"], "authorization"),
        _is_in(table["level"], json_line.LEVELS),
        pc.match_substring_regex(table["principal"], f"^{PRINCIPAL_FORM}"),
        *(pc.greater(pc.binary_length(table[key]), 0) for key in _FILLED),
        are_hosts(_array(table["host"])),
        _mapped(table["cluster_id"], is_cluster, pa.bool_()),
        _is_in(table["operation"], json_line.OPERATIONS),
        _is_in(table["resource_type"], json_line.RESOURCE_TYPES),
        pc.equal(table["pattern_type"], PatternType.LITERAL.name),
        pc.and_(pc.greater_equal(count, 0), pc.less_equal(count, MOST_REFERENCES)),
        _is_in(rule, json_line.RULES),
        *(pc.fill_null(pc.greater_equal(table[key], 0), True) for key in json_line.POSITIONS),
        pc.or_(allowed, pc.invert(_is_in(rule, json_line.ALLOWING))),
        pc.or_(pc.invert(allowed), pc.not_equal(rule, RuleKind.DEFAULT_DENY.value)),
        *(_is_there(table[key], key, lines) for key in _NULLABLE),
    ]
    good = checks[0]
    for check in checks[1:]:
        good = pc.and_(good, _array(check))
    return pc.fill_null(_array(good), False)


def _is_single_or_roll_up(table: pa.Table, times: pa.Array, last: pa.Array) -> pa.Array:
    """Tell of each row whether it has the keys of a roll-up, and they are right, or none of them.

    ``last`` are the times of the last decisions, null where there is no such time.
    """
    count, text = _array(table["count"]), _array(table["last_timestamp"])
    is_single = pc.and_(count.is_null(), text.is_null())
    if pc.all(is_single).as_py():
        return is_single
    checks = [
        pc.and_(pc.greater_equal(count, 1), pc.less_equal(count, MOST_REFERENCES)),
        pc.greater_equal(last, times),
        pc.equal(last.cast(pa.date32()), times.cast(pa.date32())),
    ]
    is_roll_up = pc.and_(pc.and_(checks[0], checks[1]), checks[2])
    return pc.or_(is_single, pc.fill_null(is_roll_up, False))


_FILLED: Final = ("listener", "api_name")


def _is_in(column: pa.ChunkedArray, values: frozenset[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(values)))


def _is_there(column: pa.ChunkedArray, key: str, lines: pa.Array) -> pa.Array:
    """Tell in which rows a key is there; the reader makes null of a missing one."""
    there = pc.is_valid(_array(column))
    if column.null_count:
        # Within a text, a quotation mark has a backslash before it. So this is a key, and of the
        # outermost object. What looks otherwise is read on its own.
        null = f'^{{(?:[^{{]*[, ])?"{key}":null[,}}]'.encode()
        found = pc.match_substring_regex(lines.filter(pc.invert(there)), null)
        there = pc.replace_with_mask(there, pc.invert(there), found)
    return there


def _brokers(lines: pa.Array) -> pa.Array:
    """Return the name of each line's broker, as `json_line.broker_of` does."""
    nodes = pc.struct_field(pc.extract_regex(lines, json_line.NODE), "node").cast(pa.string())
    return _array(_mapped(nodes, json_line.node_name, pa.string()))


def _others(table: pa.Table) -> pa.Array:
    """Return the principals after the first as `json_line.others` does, or `_WRONG`."""
    principals = _array(table["principals"])
    if principals.null_count == len(principals):
        return pa.nulls(len(principals), pa.string())
    joined = pc.binary_join(principals, _BETWEEN)
    joined = pc.binary_join_element_wise(_array(table["principal"]), joined, _BETWEEN)
    is_whole = pc.equal(pc.count_substring(joined, _BETWEEN), pc.list_value_length(principals))
    joined = pc.if_else(pc.fill_null(is_whole, False), joined, "")
    return _array(
        _mapped(pc.if_else(pc.is_valid(principals), joined, None), _others_of, pa.string())
    )


@lru_cache(maxsize=100_000)
def _others_of(joined: str) -> str | None:
    principal, *principals = joined.split(_BETWEEN)
    try:
        return json_line.others(principals, principal)
    except ValueError:
        return _WRONG


_WRONG: Final = ""


def _records(table: pa.Table, others: pa.Array, brokers: pa.Array) -> pa.Table:
    same = {"operation", "resource_type", "resource_name", "listener", "principal", "client_id"}
    renamed = {
        "cluster": "cluster_id",
        "api": "api_name",
        "reference_count": "resource_ref_count",
    }
    made = {
        "other_principals": pa.chunked_array([others]),
        "host": _mapped(table["host"], canonical_host, pa.string()),
        "quiet": pc.equal(table["level"], "trace"),
        "source": pa.chunked_array([pa.repeat(json_line.SOURCE, table.num_rows)]),
        "broker": pa.chunked_array([brokers]),
    }
    columns = [
        made[name] if name in made else table[name if name in same else renamed.get(name, name)]
        for name in Record._fields
    ]
    return pa.Table.from_arrays(columns, schema=RECORD_SCHEMA)
