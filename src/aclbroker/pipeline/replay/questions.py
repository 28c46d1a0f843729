"""Gathers from usage the questions that a log asked its authorizer, each of them once.

The same principal, operation and resource are one question, however often it was asked. Hosts that
no ACL names count as one, because every ACL treats them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline import schemas
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.spark.tasks import shuffle_tasks
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, grouped, numbered
from aclbroker.pipeline.usage.packing import (
    compact,
    decoded,
    of_parts,
    parted,
    parts_of,
    parts_type,
)
from aclbroker.pipeline.usage.table import COUNTS, Batches, Tables, Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

RuleSets = Mapping[str, Mapping[str, Ruleset]]
"""Sets of rules by a name for each, such as ``current``; each a `Ruleset` by cluster."""

QUESTION: Final = (
    *("cluster", "listener", "principal", "other_principals", "host", "operation"),
    *("resource_type", "resource_name"),
)
"""The columns that make a question: rows with equal values, null included, ask the same."""

PEER: Final = QUESTION[:5]
"""The columns of a question that tell who asks."""

_COUNTS: Final = {
    **dict.fromkeys(("events", "allowed_events", "loud_events", "reference_count"), "sum"),
    "first_seen": "min",
    "last_seen": "max",
    "example_host": "min",
}
"""The other columns of a question, and how those of two rows become one."""


def asked_type() -> StructType:
    """Return the columns of the questions that are `gathered`."""
    from aclbroker.pipeline.frames.types import LongType, StringType, StructField, StructType

    usage = schemas.usage()
    types = {name: usage[name].dataType for name in ("first_seen", "last_seen")}
    types["example_host"] = StringType()
    return StructType(
        [
            *(usage[name] for name in QUESTION),
            *(StructField(name, types.get(name, LongType())) for name in _COUNTS),
        ]
    )


class Whole(NamedTuple):
    """Which questions have to be looked at together.

    ``of`` returns of a table that has the columns of `QUESTION` a dictionary-encoded text for each
    row: those with equal texts are of one task and one batch. ``at_once`` is how many questions a
    batch has at least, if a task has as many, and at most, but for those of the last text in it.
    """

    of: Callable[[pa.Table], pa.Array]
    at_once: int


def gathered(
    usage: Usage,
    sets: RuleSets,
    function: Callable[[Batches], Batches],
    schema: StructType,
    *,
    whole: Whole | None = None,
) -> DataFrame:
    """Return what a function makes of batches of questions, in which each question is one row.

    The columns are those of `QUESTION`, where ``listener`` is null unless some rules have broker
    users, and ``host`` is a class of `pipeline.replay.hosts`. Further columns tell of all the
    events that asked the question: ``events``, ``allowed_events`` (how many of them were allowed),
    ``loud_events`` (how many did not only filter an answer), ``reference_count``, ``first_seen``,
    ``last_seen``, and ``example_host``, one of their hosts, which is null if no ACL names it, as
    ``host`` is. The questions of one peer follow one another.

    ``whole``: which of them have to come together, beside those of a peer; None if it does not
    matter.
    """
    tasks = shuffle_tasks(usage.spark)
    gather = partial(_gather, hosts_of(sets), tells_listeners(sets), tasks, whole)
    parts = of_parts(usage.map(gather, parts_type(), _NEEDED), tasks)
    work = partial(_merge, function, schemas.arrow(asked_type()), whole)
    return parts.mapInArrow(work, schema)


_NEEDED: Final = (*QUESTION, "allowed", "quiet", *COUNTS)
_AT_ONCE: Final = 50_000
_WHOLE: Final = "whole"


def _gather(
    hosts: Hosts, tells_listeners: bool, tasks: int, whole: Whole | None, tables: Tables
) -> Tables:
    """Yield the questions packed, in one part for each task that adds them up."""
    rows = (_keyed(table, hosts, tells_listeners) for table in tables)
    for found in counted(rows, QUESTION, _COUNTS):
        if whole is None:
            yield from parted(found, QUESTION, tasks, PEER)
        else:
            yield from parted(found.append_column(_WHOLE, whole.of(found)), (_WHOLE,), tasks)


def _keyed(table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    table = encoded(table, but=("host",))
    asked, events = questions_of(table, hosts, tells_listeners), table["events"]
    columns = {
        **{name: asked[name] for name in QUESTION},
        "allowed_events": pc.if_else(table["allowed"], events, 0),
        "loud_events": pc.if_else(pc.fill_null(table["quiet"], False), 0, events),
        "example_host": _where(asked["host"], table["host"])
        if hosts.has_subnets
        else asked["host"],
    }
    return pa.table(
        {name: columns[name] if name in columns else table[name] for name in (*QUESTION, *_COUNTS)}
    )


def _where(host: pa.ChunkedArray, example: pa.ChunkedArray) -> pa.Array:
    """Return the examples where there is a host, without the texts of all others."""
    column = _encoded_hosts(example)
    indices = pc.if_else(pc.is_valid(host).combine_chunks(), column.indices, None)
    return compact(pa.DictionaryArray.from_arrays(indices, column.dictionary))


def questions_of(table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    """Return the columns `QUESTION` of a table of usage, as `gathered` has them.

    The table is `encoded`, all but its hosts perhaps; the result is as a whole.
    """
    columns = {"host": _classes(hosts, table["host"])}
    if not tells_listeners:
        columns["listener"] = pa.nulls(len(table), pa.string())
    return pa.table({name: columns[name] if name in columns else table[name] for name in QUESTION})


def _classes(hosts: Hosts, column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the class of each host."""
    each = column.combine_chunks() if not hosts.has_subnets else _encoded_hosts(column)
    if not pa.types.is_dictionary(each.type):
        # Among a million hosts an ACL names few: only these are numbered.
        return _classes_of(hosts, each).dictionary_encode()
    classes = _classes_of(hosts, each.dictionary).dictionary_encode()
    return pa.DictionaryArray.from_arrays(classes.indices.take(each.indices), classes.dictionary)


def _classes_of(hosts: Hosts, each: pa.Array) -> pa.Array:
    if hosts.has_subnets:
        return pa.array([hosts.class_of(host) for host in each.to_pylist()], pa.string())
    named = pa.array(list(hosts.named), pa.string())
    return pc.if_else(pc.is_in(each, value_set=named), each, None)


def _encoded_hosts(column: pa.ChunkedArray) -> pa.DictionaryArray:
    found = column.combine_chunks()
    return found if pa.types.is_dictionary(found.type) else found.dictionary_encode()


def _merge(
    function: Callable[[Batches], Batches],
    schema: pa.Schema,
    whole: Whole | None,
    batches: Batches,
) -> Batches:
    found = parts_of(batches)
    first = next(found, None)
    # A task without questions need not fetch the rules.
    if first is not None:
        each = chain([first], found)
        yield from function(batch for parts in each for batch in _questions(parts, schema, whole))


def _questions(parts: pa.Table, schema: pa.Schema, whole: Whole | None) -> Batches:
    """Yield the questions of whole parts, each once."""
    found = grouped(parts, QUESTION, _COUNTS)
    peers = numbered(found, PEER)
    if whole is None:
        in_order = found.take(pa.array(np.argsort(peers)))
        firsts = [*range(0, len(in_order), _AT_ONCE)]
    else:
        together = numbered(pa.table({_WHOLE: whole.of(found)}), (_WHOLE,))
        order = np.lexsort((peers, together))
        in_order, firsts = found.take(pa.array(order)), _starts(together[order], whole.at_once)
    for first, end in pairwise([*firsts, len(in_order)]):
        yield from decoded(in_order.slice(first, end - first), schema).to_batches()


def _starts(together: NDArray[np.int64], least: int) -> list[int]:
    """Return where to cut rows, so that those with equal numbers, which follow one another, stay.

    ``least`` is how many rows there are between two cuts at least.
    """
    found = [0] if len(together) else []
    for start in np.flatnonzero(np.diff(together)).tolist():
        if start + 1 - found[-1] >= least:
            found.append(start + 1)
    return found


def hosts_of(sets: RuleSets) -> Hosts:
    """Return the classes of hosts that some rules tell apart."""
    return Hosts(ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())


def tells_listeners(sets: RuleSets) -> bool:
    """Tell whether some rules decide by the listener, as they do for broker users alone."""
    rules = (ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())
    return any(ruleset.broker_users.principals for ruleset in rules)


def keyed(usage: DataFrame, sets: RuleSets) -> DataFrame:
    """Return usage with the columns of `QUESTION` as `gathered` has them.

    By these the usage behind a question is found. ``example_host`` is the host itself.
    """
    classed = _with_class(usage, hosts_of(sets))
    if tells_listeners(sets):
        return classed
    return classed.withColumn("listener", F.lit(None).cast("string"))


def _with_class(usage: DataFrame, hosts: Hosts) -> DataFrame:
    """Return usage whose ``host`` is a class; the host itself is ``example_host``."""
    kept = usage.withColumn("example_host", F.col("host"))
    if hosts.has_subnets:
        return kept.withColumn("host", _class_function(hosts)("host"))
    if not hosts.named:
        return kept.withColumn("host", F.lit(None).cast("string"))
    named = usage.sparkSession.createDataFrame([(each,) for each in hosts.named], "host string")
    known = F.broadcast(named.withColumn("is_named", F.lit(True)))
    joined = kept.join(known, "host", "left")
    return joined.withColumn("host", F.when(F.col("is_named"), F.col("host"))).drop("is_named")


def _class_function(hosts: Hosts) -> Callable[[str], Column]:
    def classes(column: pa.Array) -> pa.Array:
        encoded = column.dictionary_encode()
        found = [hosts.class_of(host) for host in encoded.dictionary.to_pylist()]
        return pa.array(found, pa.string()).take(encoded.indices)

    function: Callable[[str], Column] = F.arrow_udf(classes, "string")
    return function
