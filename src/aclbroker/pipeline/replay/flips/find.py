"""Finds the questions that two sets of rules decide differently, and why, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.frames import new_observation
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.flips.comparing import (
    AFTER,
    BEFORE,
    COUNTS,
    DIRECTIONS,
    LISTS,
    Comparer,
)
from aclbroker.pipeline.replay.flips.digest import Digest, digested
from aclbroker.pipeline.replay.flips.usage import FlippedUsage, are_few, flipped_usage
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class FlipTotal(NamedTuple):
    """What flips in one direction: how many questions and events, the first and the last day.

    ``only_filtering``: how many of the questions were only asked to filter an answer.
    """

    questions: int = 0
    events: int = 0
    only_filtering: int = 0
    first_day: str = ""
    last_day: str = ""


@dataclass(frozen=True, slots=True)
class Flips:
    """What `find_flips` found.

    ``table``: the flips, as they were written; ``digest``: what is shown of them. ``usage``: the
    usage behind them; each time it is used, all usage is read again. ``questions`` and ``events``:
    how many were decided. ``totals``: what flips in each
    direction, if anything does. ``drift_denied`` and ``drift_allowed``: how many events were
    recorded as allowed which the rules before deny, and the other way round; of them,
    ``drift_mixed`` are of questions that were decided both ways within the log.
    """

    table: DataFrame
    digest: Digest
    usage: FlippedUsage
    questions: int
    events: int
    totals: Mapping[str, FlipTotal]
    drift_denied: int
    drift_allowed: int
    drift_mixed: int


def find_flips(
    usage: Usage,
    before: Mapping[str, Ruleset],
    after: Mapping[str, Ruleset],
    output: Output,
    name: str,
    *,
    top: int = 20,
) -> Flips:
    """Write the table ``name`` of all questions that flip from ``before`` to ``after``.

    ``top`` is how many flips of each direction the digest has as examples.

    Only clusters in ``after`` are looked at. For a cluster that is not in ``before``, the decisions
    of the log are taken for those before; then one question may have events of both decisions.

    The columns are those of `questions.gathered`, those of `replay.decided` for the names
    ``before`` and ``after``, and

    - ``direction``: `NEWLY_DENIED` or `NEWLY_ALLOWED`
    - ``flipped_events``: how many of the question's events are decided differently
    - ``before_allows``, ``before_denies``, ``after_allows``, ``after_denies`` (array<string>): the
      ACLs that allow or deny it, as `acl_text` writes them
    - ``removed``, ``added``, ``settings`` (array<string>): what has to be undone for the decision
      to be as before (see `pipeline.analysis.causes`); empty if it was the log's
    """
    from aclbroker.pipeline.frames.types import ArrayType, LongType, StringType, StructField

    sets = {BEFORE: before, AFTER: after}
    covered = usage.part(after)
    added = [
        *replay.added_fields(sets),
        StructField("direction", StringType()),
        StructField("flipped_events", LongType()),
        *(StructField(each, ArrayType(StringType())) for each in LISTS),
        *(StructField(each, LongType()) for each in COUNTS),
    ]
    totals = new_observation()
    compared = replay.replayed_by(covered, sets, Comparer(), added)
    observed = compared.observe(totals, *_totals())
    flips = observed.where(F.col("flipped_events") > 0).drop(*COUNTS)
    table = output.table(name, flips)
    found = totals.get
    counts = {name.removeprefix("all_"): found[name] or 0 for name in COUNTS}
    by_direction = {each: FlipTotal(**found[each].asDict()) for each in DIRECTIONS}
    flipping = sum(total.questions for total in by_direction.values())
    digest = digested(table, top, with_marks=are_few(flipping))
    return Flips(
        table,
        digest,
        flipped_usage(table, digest.marks, covered, sets),
        totals={each: total for each, total in by_direction.items() if total.questions},
        **counts,
    )


def _totals() -> list[Column]:
    return [
        *(F.sum(name).alias(name) for name in COUNTS),
        *(_total(direction).alias(direction) for direction in DIRECTIONS),
    ]


def _total(direction: str) -> Column:
    """The columns of `FlipTotal`."""
    flips = F.col("direction") == direction

    def day(of: Column) -> Column:
        return F.coalesce(F.date_format(of, "yyyy-MM-dd"), F.lit(""))

    return F.struct(
        F.count_if(flips).alias("questions"),
        F.coalesce(F.sum(F.when(flips, F.col("flipped_events"))), F.lit(0)).alias("events"),
        F.count_if(flips & (F.col("loud_events") == 0)).alias("only_filtering"),
        day(F.min(F.when(flips, F.col("first_seen")))).alias("first_day"),
        day(F.max(F.when(flips, F.col("last_seen")))).alias("last_day"),
    )
