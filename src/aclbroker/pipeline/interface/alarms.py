"""The numbers that a CI run may fail on: what each counts, and which jobs look for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Alarm(NamedTuple):
    """A number that a CI run may fail on.

    ``counts`` says in words what the number counts. ``jobs`` are the jobs that put it into
    `JobResult.alarms`. An alarm without jobs is about the log, and every job has it.
    """

    counts: str
    jobs: tuple[str, ...]


ALARMS: Final[Mapping[str, Alarm]] = {
    "newly-denied": Alarm(
        "events that the other rules deny and those in force allow", ("what-if", "diff")
    ),
    "newly-allowed": Alarm(
        "events that the other rules allow and those in force deny", ("what-if", "diff")
    ),
    "opened": Alarm(
        "rights that a proposal opens, whether anybody asked for them or not",
        ("unused", "redundant", "recommend"),
    ),
    "unused": Alarm("ACLs that can go", ("unused",)),
    "drift": Alarm(
        "events that the log decides otherwise than the rules in force",
        ("unused", "recommend", "what-if", "diff"),
    ),
    "suspects": Alarm("principals that were denied as an intruder would be", ("denials",)),
    "quarantined": Alarm("lines in quarantine, which may have been decisions", ()),
    "decided-otherwise": Alarm(
        "events that were decided otherwise than the ACLs of their time decide", ("point-in-time",)
    ),
}
"""Every alarm by its name."""
