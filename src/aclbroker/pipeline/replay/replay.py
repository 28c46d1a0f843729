"""Decides what was asked under any sets of rules, with the broker's own authorizer core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from aclbroker.pipeline.replay.deciding import Rules, ShippedSets, decide
from aclbroker.pipeline.replay.questions import PEER, RuleSets, asked_type, gathered
from aclbroker.pipeline.replay.reasons import Reasons
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.table import Batches, Usage

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

WorkerFunction = Callable[[pa.RecordBatch, ShippedSets], Iterable[pa.RecordBatch]]
"""Makes rows of a batch of questions, with the rules that `decide` needs."""


def replayed(
    usage: Usage, sets: RuleSets, *, hosts_of: RuleSets | None = None, explain: bool = False
) -> DataFrame:
    """Gather the questions of usage, and decide them in the same worker.

    The columns are those of `gathered` and of `decided`.

    ``hosts_of``: the rules whose hosts are told apart, if they are not ``sets``.
    """
    added = added_fields(sets, explain=explain)
    return replayed_by(usage, sets, partial(_answered, explain), added, hosts_of=hosts_of)


def replayed_by(
    usage: Usage,
    sets: RuleSets,
    function: WorkerFunction,
    added: Sequence[StructField],
    *,
    hosts_of: RuleSets | None = None,
) -> DataFrame:
    """Gather the questions of usage, and give them to a function in the same worker.

    ``function`` is given a batch and the rules for `decide`, and returns batches with the columns
    ``added`` behind those of the questions. ``hosts_of``: see `replayed`.
    """
    from aclbroker.pipeline.frames.types import StructType

    work = _work(usage.spark.sparkContext, sets, function)
    return gathered(usage, hosts_of or sets, work, StructType([*asked_type().fields, *added]))


def decided(questions: DataFrame, sets: RuleSets, *, explain: bool = False) -> DataFrame:
    """Return the questions with what each set of rules decides.

    For each name in ``sets`` there are the columns ``NAME_allowed`` (boolean) and ``NAME_rule`` (a
    value of `RuleKind`); both are null if the set has no rules for the cluster. With ``explain``
    also ``NAME_allows`` and ``NAME_denies`` (array<int>): which ACLs allow and deny it, as
    positions in ``Ruleset.acls``, implications included; and where
    ``allow_everyone_if_no_acl_found`` holds, ``NAME_on_resource`` (array<int>, else null): all ACLs
    on the resource, whomever they name, since only without any of them the default applies. And
    ``NAME_alone`` (array<int>): the ACLs of which each one decides, so that without it alone the
    answer would be another. Of a right on any topic see `pipeline.replay.any_topic`.
    """
    from aclbroker.pipeline.frames.types import StructType

    work = _work(questions.sparkSession.sparkContext, sets, partial(_answered, explain))
    # Sorted by peer, so that the ACLs of each peer are looked up once.
    ordered = questions.sortWithinPartitions(*PEER)
    added = added_fields(sets, explain=explain)
    return ordered.mapInArrow(work, StructType([*questions.schema.fields, *added]))


def _answered(explain: bool, batch: pa.RecordBatch, rules: ShippedSets) -> list[pa.RecordBatch]:
    return [decide(batch, rules, explain=explain)]


def _work(
    context: SparkContext, sets: RuleSets, function: WorkerFunction
) -> Callable[[Batches], Batches]:
    with uncollected(in_worker=False):
        shipped = context.broadcast({name: Rules(by_cluster) for name, by_cluster in sets.items()})

    def work(batches: Batches) -> Batches:
        rules = shipped.value
        with uncollected():
            for batch in batches:
                yield from function(batch, rules)

    return work


def added_fields(sets: RuleSets, *, explain: bool = False) -> list[StructField]:
    """Return the columns that `decided` adds."""
    return [field for name in sets for field in _fields(name, explain)]


def _fields(name: str, explain: bool) -> list[StructField]:
    from aclbroker.pipeline.frames.types import (
        ArrayType,
        BooleanType,
        IntegerType,
        StringType,
        StructField,
    )

    fields = [
        StructField(f"{name}_allowed", BooleanType()),
        StructField(f"{name}_rule", StringType()),
    ]
    if explain:
        fields += [
            StructField(f"{name}_{which}", ArrayType(IntegerType())) for which in Reasons._fields
        ]
    return fields
