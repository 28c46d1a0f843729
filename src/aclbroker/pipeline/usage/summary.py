"""What a log holds, in few rows: events by cluster, day, verdict and super user, and lines by why.

Workers that read a log sum up what they read, so that it need not be gone through once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.acl.authorizer import RuleKind
from aclbroker.pipeline import schemas
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, grouped

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

MOST_NAMED: Final = 1000
"""So many super users are named of each table at most: a forged log may hold any number of them."""

NEEDED: Final = ("cluster", "day", "allowed", "rule", "principal", "other_principals", "events")
"""The columns of usage that `summed` looks at."""

_KEYS: Final = ("cluster", "day", "allowed", "super_user")
_EVENTS: Final = {"events": "sum"}
_SCHEMA: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("day", pa.date32()),
        ("allowed", pa.bool_()),
        ("super_user", pa.string()),
        ("events", pa.int64()),
        ("reason", pa.string()),
    ]
)


def summed_type() -> StructType:
    """Return the columns of what `summed` yields."""
    from aclbroker.pipeline.frames.types import StringType, StructField, StructType

    usage = schemas.usage()
    named = [usage[name] for name in ("cluster", "day", "allowed", "events")]
    return StructType([*named[:3], StructField("super_user", StringType()), named[3]])


def summed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the events of tables of usage by cluster, day, verdict, and super user if it was one.

    Of a session with several principals the log does not say which one is, and none is named; nor
    are more than `MOST_NAMED` of a table.
    """
    return _summed(map(_with_super_user, tables), _KEYS)


class Summary:
    """Sums up what is read: usage, and quarantined lines by the days that they claim and why."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._lines: Counter[tuple[date | None, str]] = Counter()

    def add(self, table: pa.Table) -> None:
        """Add a table of usage."""
        self._tables += (_in_columns(each) for each in summed([table]))

    def add_lines(self, lines: Iterable[tuple[date | None, str]]) -> None:
        """Add quarantined lines: of each the day, if it claims one, and the reason."""
        self._lines.update(lines)

    def table(self) -> pa.Table:
        """Return the columns that `summed` yields, and ``reason``.

        With a reason, which is otherwise null, a row has lines for events.
        """
        keys = self._lines.keys()
        lines = {
            "day": pa.array([day for day, _ in keys], pa.date32()),
            "events": pa.array(self._lines.values(), pa.int64()),
            "reason": pa.array([reason for _, reason in keys], pa.string()),
        }
        return pa.concat_tables([*self._tables, _in_columns(pa.table(lines))])


def combined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of several summaries, in few tables with equal rows as one, each like them."""
    return map(_in_columns, _summed(tables, (*_KEYS, "reason")))


def of_part(
    summary: pa.Table, clusters: Sequence[str] | None, since: date | None, until: date | None
) -> pa.Table:
    """Return the rows of some clusters and days, None for all.

    Lines in quarantine are of all clusters, and of all days if they claim none.
    """
    if clusters is not None:
        is_of = pc.is_in(summary["cluster"], value_set=pa.array(clusters, pa.string()))
        summary = summary.filter(pc.or_(is_of, pc.is_valid(summary["reason"])))
    if since is not None:
        is_of = pc.greater_equal(summary["day"], since)
        summary = summary.filter(pc.fill_null(is_of, True))
    if until is not None:
        summary = summary.filter(pc.fill_null(pc.less_equal(summary["day"], until), True))
    return summary


def _in_columns(table: pa.Table) -> pa.Table:
    """Return a table with all columns, null where it has none of that name."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in _SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _summed(tables: Iterable[pa.Table], keys: Sequence[str]) -> Iterator[pa.Table]:
    for found in counted(tables, keys, _EVENTS):
        # Those who are no longer named are one.
        yield grouped(_few_named(found), keys, _EVENTS)


def _few_named(found: pa.Table) -> pa.Table:
    users = found["super_user"].combine_chunks()
    busiest = pc.if_else(users.is_valid(), found["events"].combine_chunks(), -1)
    is_named = np.zeros(len(users), bool)
    is_named[pc.sort_indices(busiest, [("", "descending")])[:MOST_NAMED]] = True
    named = pc.if_else(pa.array(is_named), users.indices, None)
    column = pa.DictionaryArray.from_arrays(named, users.dictionary)
    return found.set_column(found.column_names.index("super_user"), "super_user", column)


def _with_super_user(table: pa.Table) -> pa.Table:
    table = encoded(table.select(NEEDED))
    columns = ("rule", "principal", "other_principals", "allowed")
    rule, principal, others, allowed = (table[name].combine_chunks() for name in columns)
    is_rule = pc.equal(rule.dictionary, RuleKind.SUPER_USER.value).take(rule.indices)
    is_super_user = pc.and_(pc.fill_null(is_rule, False), pc.and_(allowed, others.is_null()))
    named = pc.if_else(is_super_user, principal.indices, None)
    users = pa.DictionaryArray.from_arrays(named, principal.dictionary)
    return table.append_column("super_user", users)
