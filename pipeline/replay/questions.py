"""Gathers what a log asked of its authorizer: what differs to one, each once.

Each principal, operation and resource is one question, however often it was asked. A host counts
only if some ACL names it; all others are one to every ACL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from aclbroker.pipeline import schemas
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.spark.tasks import shuffle_tasks
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, grouped, numbered
from aclbroker.pipeline.usage.packing import decoded, of_parts, parted, parts_type, unpacked
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
"""The columns of `gathered` that differ from question to question; null is a value."""

PEER: Final = QUESTION[:5]
"""Those that tell who asks."""

_COUNTS: Final = {
    **dict.fromkeys(("events", "allowed_events", "loud_events", "reference_count"), "sum"),
    "first_seen": "min",
    "last_seen": "max",
    "example_host": "min",
}
"""The other columns of `gathered`, and how those of two rows become one."""


def asked_type() -> StructType:
    """Return the columns of the questions that are `gathered`."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    usage = schemas.usage()
    types = {name: usage[name].dataType for name in ("first_seen", "last_seen")}
    types["example_host"] = StringType()
    return StructType(
        [
            *(usage[name] for name in QUESTION),
            *(StructField(name, types.get(name, LongType())) for name in _COUNTS),
        ]
    )


def gathered(
    usage: Usage, sets: RuleSets, function: Callable[[Batches], Batches], schema: StructType
) -> DataFrame:
    """Return what a function makes of batches of questions, with one row for each that differs.

    Their columns are those of `QUESTION`, of which ``listener`` is null unless some rules have
    broker users, and ``host`` is a class of `pipeline.replay.hosts`. Of all the events that asked a
    question there are ``events``, ``allowed_events`` (how many of them were allowed),
    ``loud_events`` (how many did not only filter an answer), ``reference_count``, ``first_seen``,
    ``last_seen``, and ``example_host``, one of their hosts; it is null if no ACL means it, as
    ``host`` is. Those of one peer come one after the other.
    """
    tasks = shuffle_tasks(usage.spark)
    gather = partial(_gather, hosts_of(sets), tells_listeners(sets), tasks)
    parts = of_parts(usage.map(gather, parts_type(), _NEEDED), tasks)
    return parts.mapInArrow(partial(_merge, function, schemas.arrow(asked_type())), schema)


_NEEDED: Final = (*QUESTION, "allowed", "quiet", *COUNTS)
_AT_ONCE: Final = 50_000


def _gather(hosts: Hosts, tells_listeners: bool, tasks: int, tables: Tables) -> Tables:
    """Yield the questions, packed, and by whose task they are to be added up."""
    rows = (_keyed(table, hosts, tells_listeners) for table in tables)
    for found in counted(rows, QUESTION, _COUNTS):
        yield from parted(found, "principal", tasks)


def _keyed(table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    table = encoded(table)
    asked, events = questions_of(table, hosts, tells_listeners), table["events"]
    is_meant = pc.is_valid(asked["host"])
    columns = {
        **{name: asked[name] for name in QUESTION},
        "allowed_events": pc.if_else(table["allowed"], events, 0),
        "loud_events": pc.if_else(pc.fill_null(table["quiet"], False), 0, events),
        "example_host": pc.if_else(is_meant, table["host"].cast(pa.string()), None),
    }
    return pa.table(
        {name: columns[name] if name in columns else table[name] for name in (*QUESTION, *_COUNTS)}
    )


def questions_of(table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    """Return the columns `QUESTION` of an `encoded` table of usage, as `gathered` has them."""
    host = table["host"].combine_chunks()
    columns = {"host": _classes(hosts, host.dictionary).take(host.indices)}
    if not tells_listeners:
        columns["listener"] = pa.nulls(len(table), pa.string())
    return pa.table({name: columns[name] if name in columns else table[name] for name in QUESTION})


def _classes(hosts: Hosts, each: pa.Array) -> pa.Array:
    if hosts.has_subnets:
        return pa.array([hosts.class_of(host) for host in each.to_pylist()], pa.string())
    named = pa.array(sorted(hosts.named), pa.string())
    return pc.if_else(pc.is_in(each, value_set=named), each, None)


def _merge(function: Callable[[Batches], Batches], schema: pa.Schema, batches: Batches) -> Batches:
    tables = [table for batch in batches for table in unpacked(batch.column("packed"))]
    if tables:
        found = grouped(pa.concat_tables(tables), QUESTION, _COUNTS)
        in_order = found.take(pa.array(np.argsort(numbered(found, PEER))))
        yield from function(
            batch
            for first in range(0, len(in_order), _AT_ONCE)
            for batch in decoded(in_order.slice(first, _AT_ONCE), schema).to_batches()
        )


def hosts_of(sets: RuleSets) -> Hosts:
    """Return which hosts differ to some rules."""
    return Hosts(ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())


def tells_listeners(sets: RuleSets) -> bool:
    """Tell whether the listener differs to some rules."""
    rules = (ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())
    return any(ruleset.broker_users.principals for ruleset in rules)


def keyed(usage: DataFrame, sets: RuleSets) -> DataFrame:
    """Return usage with the columns of `QUESTION` as `gathered` has them.

    So the usage behind a question can be found. The host itself is in ``example_host``.
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
