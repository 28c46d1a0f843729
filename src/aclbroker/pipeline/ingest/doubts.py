"""Read from quarantined lines the allowed decisions that they may have been.

A denied decision used no ALLOW, so it yields nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.pipeline.ingest import kafka_line, not_decisions
from aclbroker.pipeline.ingest.foreign import OPERATIONS, RESOURCE_TYPES, plain
from aclbroker.pipeline.ingest.json_line import JsonReason
from aclbroker.pipeline.ingest.printed_acls import allows_in
from aclbroker.pipeline.ingest.record import PRINCIPAL_FORM, unwrapped
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.doubt import ANYTHING, Doubt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOT_DECISIONS: Final = frozenset([*kafka_line.NOT_DECISIONS, JsonReason.EVENT])
"""The reasons of lines that are no decisions. They are counted apart from quarantine."""

MOST: Final = 100_000
"""The limit of different doubtful decisions. With more, every ALLOW counts as doubted."""

LONGEST: Final = 256
"""The most characters of a name that are kept, because `MOST` names of clients are in memory."""

_PRINCIPAL: Final = "Principal ="
_VERDICT: Final = re.compile(r" is (Allowed|Denied) [oO]peration =")
_OPERATION: Final = re.compile(r" ([A-Za-z_]+) from host =")
_RESOURCE: Final = re.compile(r" on resource = ([A-Za-z]+):(?:LITERAL:)?(.*)", re.DOTALL)
_REPLACED: Final = "\ufffd"
_KEY: Final = r'"{}"\s*:\s*"((?:[^"\\]|\\.)*)"'


def doubts_of(line: str, reason: str) -> set[Doubt]:
    """Return the allowed decisions that a quarantined line may have been."""
    if reason in NOT_DECISIONS:
        return set()
    if line.lstrip("\ufeff \t").startswith("{") or '"operation"' in line:
        try:
            return set(map(_shortened, _of_json(line)))
        except RecursionError:
            # The arrays or objects of the line are nested too deeply.
            return {ANYTHING}
    return set(map(_shortened, _of_text(line)))


def _shortened(doubt: Doubt) -> Doubt:
    """Return a doubt with the beginnings of long names. It covers all that the doubt covers."""
    principal, is_longer = _begin(doubt.principal, doubt.is_longer)
    name, has_longer_name = _begin(doubt.resource_name, doubt.has_longer_name)
    return Doubt(principal, is_longer, doubt.operation, doubt.resource_type, name, has_longer_name)


def _begin(name: str | None, is_longer: bool) -> tuple[str | None, bool]:
    if name is None or len(name) <= LONGEST:
        return name, is_longer
    return name[:LONGEST], True


def _of_text(text: str) -> Iterator[Doubt]:
    if not_decisions.LEFT_OUT.decode() in text:
        if '"allowed":0' not in text:
            yield ANYTHING
        return
    for acl in allows_in(text):
        yield Doubt(acl.principal, False, None, _type(acl.resource_type), acl.name)
    first, *segments = text.split(_PRINCIPAL)
    if segments:
        for segment in segments:
            yield from _of_segment(segment.removeprefix(" "))
    elif _VERDICT.search(first) or " on resource =" in first:
        yield from (each._replace(principal=None, is_longer=False) for each in _of_segment(first))
    else:
        data = first.encode()
        timed = re.match(kafka_line.TIME_BYTES, data)
        rest = data[timed.end() :] if timed else data
        if not_decisions.may_be_piece(rest, (), is_timed=timed is not None):
            yield ANYTHING


def _of_segment(text: str) -> Iterator[Doubt]:
    """Yield the decision in a text that begins behind `_PRINCIPAL`, unless it was denied."""
    verdicts = list(_VERDICT.finditer(text))
    if verdicts and not any(each[1] == "Allowed" for each in verdicts):
        return
    end = verdicts[0].start() if verdicts else None
    printed, is_longer = _known(text[:end], *([] if verdicts else [" is "]))
    principal, is_longer = _unwrapped(printed, is_longer or len(verdicts) != 1)
    if len(verdicts) != 1:
        yield Doubt(principal, is_longer)
        return
    rest = text[verdicts[0].end() :]
    operation = _OPERATION.match(rest)
    named = _operation(operation[1]) if operation else None
    yield Doubt(principal, is_longer, named, *_resource(_RESOURCE.search(rest)))


def _unwrapped(principal: str, is_longer: bool) -> tuple[str | None, bool]:
    """Return a principal without the class name around it, and whether the name may go on.

    The principal is None if its class prints it in an unknown way.
    """
    known = unwrapped(principal)
    if known != principal:
        return known, is_longer
    inner = re.fullmatch(rf"\w+\(({PRINCIPAL_FORM}[^,()]*)(,.*)?", principal, re.DOTALL)
    if inner is not None and inner[2]:
        # A comma may belong to the name.
        return inner[1], True
    if re.match(PRINCIPAL_FORM, principal) or (is_longer and "(" not in principal):
        return principal, is_longer
    # An unknown class printed the principal.
    return None, False


def _resource(found: re.Match[str] | None) -> tuple[str | None, str | None, bool]:
    kind = _type(found[1]) if found else None
    if found is None or kind is None:
        return None, None, False
    for word in (kafka_line.REQUEST, kafka_line.TAIL):
        if found[2].count(word) == 1:
            name, is_longer = _known(found[2].partition(word)[0])
            break
    else:
        name, is_longer = _known(found[2], " for ", " (")
        # The text may end inside "LITERAL:".
        name = "" if "LITERAL:".startswith(name) else name
    if name in (kafka_line.PROBED, ANY_RESOURCE):
        return kind, None, False
    return kind, name, is_longer


def _known(text: str, *ends: str) -> tuple[str, bool]:
    """Return the part of a text that is certain, and whether the text may go on.

    ``ends`` are texts that may follow it, whole or cut off.
    """
    known = text.partition(_REPLACED)[0]
    is_longer = known != text
    for end in ends:
        known, is_longer = known.partition(end)[0], True
        parts = (end[:size] for size in range(len(end), 0, -1))
        part = next(filter(known.endswith, parts), "")
        known = known.removesuffix(part)
    return known, is_longer


def _of_json(line: str) -> Iterator[Doubt]:
    """Yield the decisions of a JSON object: our own record, a row of a table, or a message."""
    is_twice: list[bool] = []
    try:
        found = json.loads(line, object_pairs_hook=lambda pairs: _noted(is_twice, pairs))
    except (ValueError, RecursionError):
        yield from _of_damaged(line)
        return
    if any(is_twice) and isinstance(found, dict):
        # Either value of a key may be the true one.
        yield from _of_damaged(line)
        found.pop("allowed", None)
    yield from _of_value(found)


def _noted(is_twice: list[bool], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    is_twice.append(len(found) < len(pairs))
    return found


def _of_value(found: Any) -> Iterator[Doubt]:
    """Yield the decisions of a JSON value: an object, those in an array, or a line in a text."""
    if isinstance(found, str):
        if any(word in found for word in _OWN_WORDS):
            yield from _of_json(found)
        elif _PRINCIPAL in found:
            yield from _of_text(found)
    elif isinstance(found, list):
        for value in found:
            yield from _of_value(value)
    elif isinstance(found, dict):
        yield from _of_object(found)


def _of_object(found: Mapping[str, Any]) -> Iterator[Doubt]:
    if found.get("event") == "left_out":
        # This event has only the numbers of decisions that the log left out.
        if found.get("allowed") != 0:
            yield ANYTHING
    elif "principal" in found or found.get("event") == "authorization":
        yield from _of_fields(found)
    else:
        for value in found.values():
            yield from _of_value(value)


_OWN_WORDS: Final = ('"authorization"', '"operation"', '"left_out"')
"""Words of our own log, by which an envelope is known to hold a line of it."""


def _of_fields(found: Mapping[str, Any]) -> Iterator[Doubt]:
    if str(found.get("allowed")).lower() in ("false", "denied", "deny"):
        return
    further = found.get("principals")
    names = further if isinstance(further, list) and further else [found.get("principal")]
    kind = _type(found.get("resource_type"))
    name = found.get("resource_name")
    known, is_longer = None, False
    if isinstance(name, str) and kind is not None and name != ANY_RESOURCE:
        known, is_longer = _known(name)
    for principal in names:
        who, goes_on = None, False
        if isinstance(principal, str):
            who, goes_on = _unwrapped(*_known(principal))
        operation = _operation(found.get("operation"))
        yield Doubt(who, goes_on, operation, kind, known, is_longer)


_BEGINS: Final = re.compile(
    r'(?=\{\s{0,9}"timestamp"\s{0,9}:)|(?<=[^:\s])(?=\{\s{0,9}")|(?<!:")(?<!: ")(?=\[20\d\d-)'
)
"""Matches where a record begins that is no value of a key: a broker wrote it after a restart."""

_VERDICTS: Final = re.compile(r'"(?:allowed|granted)"\s{0,9}:\s{0,9}([a-z]*)')


def _of_damaged(line: str) -> Iterator[Doubt]:
    """Yield the decisions of a line that is not one whole JSON object.

    A killed broker appends to its cut-off last line after a restart. So each record is judged
    alone, and a denied one says nothing about the others.
    """
    pieces = [piece for piece in _BEGINS.split(line) if piece]
    if len(pieces) < 2:
        yield from _of_piece(line)
        return
    for piece in pieces:
        yield from _of_json(piece) if "{" in piece else _of_text(piece)


def _of_piece(line: str) -> Iterator[Doubt]:
    """Yield the decisions that a piece of a JSON object may have been."""
    before = line.partition(_PRINCIPAL)[0]
    if before != line:
        # In a JSON message, a backslash begins an escape, so the text is certain up to there.
        yield from _of_text(line.partition("\\")[0] + _REPLACED)
        if '"event"' not in before and not before.startswith('{"timestamp":"'):
            return
        # A value in a record of our own log has the word.
        line = before
    verdicts = set(_VERDICTS.findall(line))
    is_change = '"event":"change"' in line and '"authorization"' not in line
    if verdicts == {"false"} or (is_change and not verdicts):
        return
    found = {name: match[1] for name in _NAMED if (match := re.search(_KEY.format(name), line))}
    if '"host"' not in line or '"principals"' in line:
        # The cut-off rest may name more principals of the session.
        found.pop("principal", None)
    if any("\\" in value for value in found.values()):
        found = {name: value for name, value in found.items() if "\\" not in value}
    yield from _of_fields({**found, "event": "authorization"})


_NAMED: Final = ("principal", "operation", "resource_type", "resource_name")


def _operation(text: object) -> str | None:
    return OPERATIONS.get(plain(text)) if isinstance(text, str) else None


def _type(text: object) -> str | None:
    return RESOURCE_TYPES.get(plain(text)) if isinstance(text, str) else None


def doubts(quarantine: DataFrame) -> dict[str, set[Doubt]]:
    """Return the decisions that quarantined lines may have been, by their column ``cluster``.

    Lines whose cluster is unknown have the cluster "". Beyond `MOST` decisions, `ANYTHING` is added
    there.
    """
    lines = _decisions(quarantine)
    rows = lines.select("cluster", "line", "reason").mapInArrow(_in_worker, _COLUMNS)
    found: dict[str, set[Doubt]] = {}
    distinct = rows.distinct().limit(MOST + 1).toArrow().to_pylist()
    for row in distinct:
        cluster = row.pop("cluster")
        found.setdefault(cluster, set()).add(Doubt(**row))
    if len(distinct) > MOST:
        found.setdefault("", set()).add(ANYTHING)
    return found


def lines_by_cluster(quarantine: DataFrame) -> dict[str, int]:
    """Return the number of quarantined lines by their column ``cluster``."""
    counts = _decisions(quarantine).groupBy("cluster").count().collect()
    return {row["cluster"]: row["count"] for row in counts}


def _decisions(quarantine: DataFrame) -> DataFrame:
    """Return the lines that may be decisions."""
    from aclbroker.pipeline.frames import functions as F

    return quarantine.where(~F.col("reason").isin([each.value for each in NOT_DECISIONS]))


_COLUMNS: Final = (
    "cluster string, principal string, is_longer boolean, operation string, "
    "resource_type string, resource_name string, has_longer_name boolean"
)
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "principal")),
        ("is_longer", pa.bool_()),
        *((name, pa.string()) for name in ("operation", "resource_type", "resource_name")),
        ("has_longer_name", pa.bool_()),
    ]
)


def _in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with uncollected():
        for batch in batches:
            rows = {
                # A JSON line names its cluster itself, but a damaged one may lack the name.
                ("" if row["line"].lstrip().startswith("{") else row["cluster"], *doubt)
                for row in batch.to_pylist()
                for doubt in doubts_of(row["line"], row["reason"])
            }
            names = _SCHEMA.names
            yield pa.RecordBatch.from_pylist(
                [dict(zip(names, row, strict=True)) for row in sorted(rows, key=str)], _SCHEMA
            )
