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
"""The table of what was denied."""

SELDOM: Final = "denials/seldom"
"""The table of what was denied seldom, by kind of resource."""


@dataclass(frozen=True, slots=True)
class Denials:
    """What was denied. ``suggestions`` are those for the most frequent denials, in their order.

    ``days`` has the denied events of each day: those that are told, and the quiet ones.
    ``principals`` are those denied most, with their events. ``seldom`` is the table of what is not
    told one by one, and ``suspects`` are principals that behave like intruders.
    """

    counts: DenialCounts
    suggestions: Sequence[Suggestion]
    proof: SuggestionProof
    days: Mapping[date, tuple[int, int]]
    principals: Sequence[tuple[str, int]]
    seldom: DataFrame
    suspects: Sequence[Suspect]


def find(inputs: Inputs, *, min_events: int, most: int, most_hosts: int | None) -> Denials:
    """Write the table of what was denied, and look for what would allow the first of it.

    Put together is what was asked less than ``min_events`` times; the first are ``most``.
    ``most_hosts``: see `pipeline.analysis.grant.remedy`.
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
