"""Clusters that an answer is not about, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.pipeline.interface.result import Table
from aclbroker.pipeline.interface.wording import in_short

_MOST_REASONS: Final = 5


def left_out_lines(left_out: Mapping[str, str]) -> list[str]:
    """Return few lines that tell which clusters are left out, and why.

    ``left_out`` has the reason of each cluster. The reason that most clusters have comes first.
    """
    by_reason: dict[str, list[str]] = {}
    for cluster, reason in sorted(left_out.items()):
        by_reason.setdefault(reason, []).append(cluster)
    reasons = sorted(by_reason.items(), key=lambda each: -len(each[1]))
    lines = [f"{_named(clusters)} left out: {reason}" for reason, clusters in reasons]
    rest = sum(len(clusters) for _, clusters in reasons[_MOST_REASONS:])
    return [*lines[:_MOST_REASONS], *([f"and {rest:,} more, for other reasons"] if rest else [])]


def left_out_table(left_out: Mapping[str, str]) -> Table:
    """Return which clusters are left out, and why, for a report."""
    rows = sorted(left_out.items())
    note = "Nothing is proposed of them, and their files have their ACLs as they are."
    return Table("Clusters left out", ("Cluster", "Why"), rows, len(rows), note)


def _named(clusters: list[str]) -> str:
    if len(clusters) == 1:
        return f"cluster {clusters[0]} is"
    return f"{len(clusters):,} clusters ({in_short(clusters)}) are"
