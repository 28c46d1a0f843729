"""Finds what was denied most, and what would allow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.denials.denied import (
    KEY,
    DenialCounts,
    by_day,
    by_principal,
    counts_of,
    grouped,
    with_allowed,
)
from aclbroker.pipeline.jobs.denials.remedies import Suggestion, SuggestionProof, suggestions_for

DENIED: Final = "denials/denied"
"""The table of what was denied."""


@dataclass(frozen=True, slots=True)
class Denials:
    """What was denied. ``suggestions`` are those for the most frequent denials, in their order.

    ``days`` has the denied events of each day: those that are told, and the quiet ones.
    ``principals`` are those denied most, with their events.
    """

    counts: DenialCounts
    suggestions: Sequence[Suggestion]
    proof: SuggestionProof
    days: Mapping[date, tuple[int, int]]
    principals: Sequence[tuple[str, int]]


def find(inputs: Inputs, *, min_events: int, most: int, most_hosts: int | None) -> Denials:
    """Write the table of what was denied, and look for what would allow the first of it.

    Left out is what was asked less than ``min_events`` times; the first are ``most``.
    ``most_hosts``: see `pipeline.analysis.grant.remedy`.
    """
    denied = grouped(inputs.usage.part(allowed=False).rows).persist()
    try:
        counts = counts_of(denied, min_events)
        allowed = inputs.usage.part(allowed=True).rows
        kept = denied.where(F.col("events") >= min_events)
        table = inputs.output.table(DENIED, with_allowed(kept, allowed))
    finally:
        denied.unpersist()
    first = table.orderBy(F.desc("events"), *KEY).limit(most)
    suggestions, proof = suggestions_for(inputs, first.toArrow().to_pylist(), most_hosts)
    days = by_day(inputs.usage.part(allowed=False).by("day", "quiet"))
    return Denials(counts, suggestions, proof, days, by_principal(table))
