"""What is to be shown of flips, taken from their table in one pass over it.

Each task returns its share as a few tables, and the driver puts them together: in place of sorting,
grouping and reading the table once for each of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.replay.flips.comparing import DIRECTIONS, EVENTS
from aclbroker.pipeline.replay.questions import QUESTION
from aclbroker.pipeline.usage.counting import Counting
from aclbroker.pipeline.usage.grouping import encoded, grouped
from aclbroker.pipeline.usage.packing import compacted, packed, unpacked
from aclbroker.pipeline.usage.table import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKS: Final = ("direction", "before_allowed", "after_allowed")
"""The columns that tell, beside `QUESTION`, which events of a question flip."""

CAUSE: Final = {
    **dict.fromkeys(("cluster", "change", "what"), pa.string()),
    **dict.fromkeys(("questions", *EVENTS.values()), pa.int64()),
}
"""The columns of a cause: a change of rules, and how many questions and events flip by it."""


class Digest(NamedTuple):
    """What `digested` found.

    ``examples``: the flips with most events, by direction, as rows with `SHOWN`. ``causes``: rows
    with `CAUSE`; a flip may have several causes; those come first by which most events flip.
    ``marks``: all flips with the columns `QUESTION` and `MARKS`, None unless they were asked for.
    """

    examples: Mapping[str, Sequence[Mapping[str, Any]]]
    causes: Sequence[Mapping[str, Any]]
    marks: pa.Table | None


SHOWN: Final = (
    *("cluster", "principal", "operation", "resource_type", "resource_name", "example_host"),
    *("flipped_events", "last_seen", "direction", "before_rule", "before_allowed", "after_rule"),
    *("after_allowed", "before_allows", "before_denies", "after_allows", "after_denies"),
)
"""The columns of the examples."""

_CHANGES: Final = {"removed": "removed", "added": "added", "setting": "settings"}
"""The kinds of causes, and the columns that list them."""

_EXAMPLES, _CAUSES, _MARKS = "examples", "causes", "marks"
_KEYS: Final = ("cluster", "change", "what")
_SUMS: Final = dict.fromkeys(("questions", *EVENTS.values()), "sum")


def digested(flips: DataFrame, top: int, *, with_marks: bool) -> Digest:
    """Take from the table that `find_flips` writes what is to be shown: ``top`` examples."""
    columns = dict.fromkeys([*QUESTION, *MARKS, *SHOWN, *_CHANGES.values()])
    work = partial(_digest, top, with_marks)
    pieces = flips.select(*columns).mapInArrow(work, "kind string, packed binary").toArrow()
    found: dict[str, list[pa.Table]] = {_EXAMPLES: [], _CAUSES: [], _MARKS: []}
    tables = unpacked(pieces["packed"].combine_chunks())
    for kind, table in zip(pieces["kind"].to_pylist(), tables, strict=True):
        found[kind].append(table)
    return Digest(
        {each: _examples(found[_EXAMPLES], each, top) for each in DIRECTIONS},
        _causes(found[_CAUSES]),
        _marks(found[_MARKS]) if with_marks else None,
    )


def _examples(tables: Sequence[pa.Table], direction: str, top: int) -> list[dict[str, Any]]:
    if not tables:
        return []
    largest = _largest(pa.concat_tables(tables), direction, top)
    found: list[dict[str, Any]] = largest.select(SHOWN).to_pylist()
    return found


def _causes(tables: Sequence[pa.Table]) -> list[dict[str, Any]]:
    if not tables:
        return []
    rows = grouped(pa.concat_tables(tables), _KEYS, _SUMS).to_pylist()
    return sorted(
        rows,
        key=lambda row: (
            -sum(row[name] for name in EVENTS.values()),
            *(row[name] for name in _KEYS),
        ),
    )


def _marks(tables: Sequence[pa.Table]) -> pa.Table:
    if not tables:
        texts = [(name, pa.string()) for name in (*QUESTION, MARKS[0])]
        return pa.schema([*texts, *((name, pa.bool_()) for name in MARKS[1:])]).empty_table()
    return pa.concat_tables(tables)


def _digest(top: int, with_marks: bool, batches: Batches) -> Batches:
    """Yield the share of a task, in a worker."""
    largest: pa.Table | None = None
    counting = Counting(_KEYS, _SUMS)
    marks: list[pa.Table] = []
    for batch in batches:
        table = pa.Table.from_batches([batch])
        together = table if largest is None else pa.concat_tables([largest, table])
        largest = pa.concat_tables(_largest(together, each, top) for each in DIRECTIONS)
        for change, column in _CHANGES.items():
            yield from _piece(_CAUSES, counting.add(_caused(table, change, column)))
        if with_marks:
            marks.append(encoded(table.select([*QUESTION, *MARKS])))
    yield from _piece(_EXAMPLES, largest)
    yield from _piece(_CAUSES, counting.rest())
    if marks:
        yield from _piece(_MARKS, compacted(encoded(pa.concat_tables(marks))))


def _piece(kind: str, table: pa.Table | None) -> Iterator[pa.RecordBatch]:
    if table is not None:
        columns = [pa.array([kind]), pa.array([packed(table)], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["kind", "packed"])


_ORDER: Final = (
    *(("flipped_events", "descending"), ("cluster", "ascending"), ("principal", "ascending")),
    *(("operation", "ascending"), ("resource_name", "ascending")),
    # Otherwise the first of equal ones would differ from run to run.
    *((name, "ascending") for name in ("resource_type", "host", "listener", "other_principals")),
)


def _largest(flips: pa.Table, direction: str, top: int) -> pa.Table:
    of_direction = flips.filter(pc.equal(flips["direction"], direction))
    return of_direction.take(pc.sort_indices(of_direction, list(_ORDER))[:top])


def _caused(flips: pa.Table, change: str, column: str) -> pa.Table:
    """Return a row for each cause of one kind that a flip has."""
    lists = flips[column].combine_chunks()
    rows = flips.select(["cluster", "direction", "flipped_events"]).take(
        pc.list_parent_indices(lists)
    )
    events = {
        name: pc.if_else(pc.equal(rows["direction"], each), rows["flipped_events"], 0)
        for each, name in EVENTS.items()
    }
    return pa.table(
        {
            "cluster": rows["cluster"],
            "change": pa.repeat(change, len(rows)),
            "what": pc.list_flatten(lists),
            "questions": pa.repeat(1, len(rows)),
            **events,
        }
    )
