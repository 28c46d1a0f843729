"""What stands behind the time in lines of Kafka's log, as columns: `kafka_line`, many at a time.

pyarrow takes the lines apart, and `kafka_line` reads each different part once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import ResourceType
from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.kafka_line import KafkaReason
from aclbroker.pipeline.ingest.parsed import RECORD_SCHEMA

Flags = NDArray[np.bool_]


class Said(NamedTuple):
    """What texts say. Text *i* is row ``rows[i]`` of ``records``, or ``wrong`` has its reason.

    ``is_event`` tells of each whether it records a decision.
    """

    records: pa.Table
    rows: NDArray[np.int64]
    wrong: dict[int, KafkaReason]
    is_event: Flags


def said(rests: pa.Array, cluster: str) -> Said:
    """Return what `kafka_line.parse_rest` returns of each of some binary texts."""
    parts = [_Parts(each, known) for each, known in zip(_cut(rests), _KNOWN, strict=True)]
    good: Flags = np.logical_and.reduce([each.flag("is_good") for each in parts])
    good &= _agree(*parts)
    columns = {name: found for each in parts for name, found in each.columns(good).items()}
    columns["cluster"] = pa.repeat(cluster, int(good.sum()))
    is_any = _is_any(columns)
    columns["resource_name"] = pc.if_else(is_any, ANY_RESOURCE, columns["resource_name"])
    is_event = good.copy()
    is_event[good] = pc.or_(pc.invert(is_any), columns["allowed"]).to_numpy(zero_copy_only=False)
    arrays = [
        columns[field.name].cast(field.type)
        if field.name in columns
        else pa.nulls(int(good.sum()), field.type)
        for field in RECORD_SCHEMA
    ]
    return Said(
        pa.Table.from_arrays(arrays, schema=RECORD_SCHEMA),
        np.cumsum(good) - 1,
        {text: _reason(rests[text].as_py(), cluster) for text in np.flatnonzero(~good).tolist()},
        is_event,
    )


def _is_any(columns: dict[str, pa.Array]) -> pa.Array:
    """Tell of which records any topic would have done (`kafka_line.PROBED`)."""
    is_name = pc.equal(columns["resource_name"], kafka_line.PROBED)
    is_type = pc.equal(columns["resource_type"], ResourceType.TOPIC.name)
    is_api = pc.equal(columns["api"], kafka_line.PROBING)
    is_zero = pc.equal(columns["reference_count"], 0)
    found = pc.and_(pc.and_(is_name, is_type), pc.and_(is_api, is_zero))
    return pc.fill_null(found, False)


def _cut(rests: pa.Array) -> list[pa.Array]:
    """Return the parts of texts, null where there is no such part.

    A text that is cut at a wrong place has a part with a word in it, or with a wrong end.
    """
    has_more = pc.invert(pc.ends_with(rests, kafka_line.TAIL.encode()))
    if pc.any(has_more).as_py():
        trimmed = [kafka_line.without_end(each) for each in rests.filter(has_more).to_pylist()]
        rests = pc.replace_with_mask(rests, has_more, pa.array(trimmed, rests.type))
    body = pc.binary_slice(rests, 0, -len(kafka_line.TAIL))
    behind = pc.if_else(pc.ends_with(rests, kafka_line.TAIL.encode()), body, None)
    parts = []
    for word in kafka_line.CUTS:
        before, behind = _halves(behind, word.encode())
        parts.append(before)
    return [*parts, behind]


def _halves(texts: pa.Array, word: bytes) -> tuple[pa.Array, pa.Array]:
    """Return what stands before the first of a word and behind it; null if it is not there."""
    halves = pc.split_pattern(texts, word, max_splits=1)
    has_two = pc.equal(pc.list_value_length(halves), 2)
    if pc.all(has_two, skip_nulls=False).as_py():
        return pc.list_element(halves, 0), pc.list_element(halves, 1)
    second = pc.add(halves.offsets[:-1], 1)
    return pc.list_element(halves, 0), halves.values.take(pc.if_else(has_two, second, None))


class _Known(dict[bytes | None, tuple[Any, ...]]):
    """What the parts at one place say: whether each of them can be read, and its fields."""

    def __init__(
        self, read: Callable[[bytes | None], tuple[Any, ...] | KafkaReason], fields: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.fields = ("is_good", *fields)
        self._read = read
        self._nothing = (None,) * len(self.fields)

    def __missing__(self, part: bytes | None) -> tuple[Any, ...]:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        found = self._read(part)
        said = self._nothing if isinstance(found, KafkaReason) else (True, *found)
        self[part] = said
        return said


_MOST_KNOWN: Final = 100_000
_KNOWN: Final = [_Known(read, fields) for read, fields in kafka_line.PARTS]


class _Parts:
    """The parts of texts at one place."""

    def __init__(self, parts: pa.Array, known: _Known) -> None:
        encoded = parts.dictionary_encode(null_encoding="encode")
        found = map(known.__getitem__, encoded.dictionary.to_pylist())
        self._codes: NDArray[np.int32] = encoded.indices.to_numpy()
        self._fields = dict(zip(known.fields, zip(*found, strict=True), strict=True))

    def flag(self, field: str) -> Flags:
        """Return a field by text."""
        return np.array(self._fields[field], dtype=bool)[self._codes]

    def values(self, field: str) -> list[Any]:
        """Return a field of each text, as Python values."""
        found = self._fields[field]
        return [found[code] for code in self._codes.tolist()]

    def columns(self, which: Flags) -> dict[str, pa.Array]:
        """Return the columns of records that are found here, for some of the texts."""
        codes = pa.array(self._codes[which])
        return {
            name: pa.array(values, RECORD_SCHEMA.field(name).type).take(codes)
            for name, values in self._fields.items()
            if name in RECORD_SCHEMA.names
        }


def _agree(asker: _Parts, host: _Parts, resource: _Parts, request: _Parts, rule: _Parts) -> Flags:
    """Tell of which texts the parts are of one dialect and do not contradict each other."""
    pairs = zip(rule.values("acl"), asker.values("principal"), strict=True)
    are_of: Flags = np.array(
        [
            acl is None or principal is None or kafka_line.is_of(acl, principal.encode())
            for acl, principal in pairs
        ],
        bool,
    )
    may_be = np.where(asker.flag("allowed"), rule.flag("may_allow"), rule.flag("may_deny"))
    agree: Flags = are_of & may_be & (asker.flag("is_old") == rule.flag("is_missing"))
    return agree & (resource.flag("has_pattern") | request.flag("is_missing"))


def _reason(rest: bytes, cluster: str) -> KafkaReason:
    found = kafka_line.parse_rest(rest, cluster)
    # If the two ways to read a line should ever differ, it must still not be lost.
    return found if isinstance(found, KafkaReason) else KafkaReason.WORDS
