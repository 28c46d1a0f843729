"""Finds what was denied most, and what would allow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.denials.denied import (
    KEY,
    DenialCounts,
    by_day,
    by_principal,
    counts_of,
    grouped,
    is_told,
    seldom,
    with_allowed,
)
from aclbroker.pipeline.jobs.denials.remedies import Suggestion, SuggestionProof, suggestions_for
from aclbroker.pipeline.jobs.denials.suspects import Suspect, of_intruders, suspects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DENIED: Final = "denials/denied"
"""The table of denials that are listed one by one."""

SELDOM: Final = "denials/seldom"
"""The table of rare denials, by kind of resource."""


@dataclass(frozen=True, slots=True)
class Denials:
    """The denials of a log, with suggestions for the most frequent ones, in their order.

    ``days`` has two numbers of denied events for each day: the loud ones and the quiet ones.
    ``principals`` are the principals with the most denials, with their events. ``seldom`` is the
    table of rare denials. ``suspects`` are principals that behave like intruders.
    """

    counts: DenialCounts
    suggestions: Sequence[Suggestion]
    proof: SuggestionProof
    days: Mapping[date, tuple[int, int]]
    principals: Sequence[tuple[str, int]]
    seldom: DataFrame
    suspects: Sequence[Suspect]


def find(inputs: Inputs, *, min_events: int, most: int, most_hosts: int | None) -> Denials:
    """Write the tables of denials, and return them with suggestions for the most frequent ones.

    Denials with fewer than ``min_events`` events are grouped. The first ``most`` denials get
    suggestions. ``most_hosts``: see `pipeline.analysis.grant.remedy`.
    """
    denied = grouped(inputs.usage.part(allowed=False).rows).persist()
    try:
        counts = counts_of(denied, min_events)
        allowed = inputs.usage.part(allowed=True).rows
        table = inputs.output.table(
            DENIED, with_allowed(denied.where(is_told(min_events)), allowed)
        )
        together = inputs.output.table(SELDOM, seldom(denied, min_events))
        found = suspects(inputs, denied, together, min_events)
    finally:
        denied.unpersist()
    first = table.orderBy(F.desc("events"), *KEY).limit(most)
    rows = first.toArrow().to_pylist()
    suggestions, proof = suggestions_for(inputs, rows, most_hosts, of_intruders(found))
    days = by_day(inputs.usage.part(allowed=False).by("day", "quiet"))
    principals = by_principal(table)
    return Denials(counts, suggestions, proof, days, principals, together, found)
