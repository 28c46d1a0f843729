"""The jobs that there are, and the options of each; nothing of Spark is imported."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

ALL: Final = "all"
"""The job that runs every other one that its inputs allow."""


class Option(NamedTuple):
    """An option of jobs, which sets a field of theirs; a dot leads into a field of a field.

    ``read`` makes the value of a text, which the help calls ``shown``; without it the option takes
    no text, and the value is ``flag``.
    """

    name: str
    field: str
    does: str
    read: Callable[[str], Any] | None = None
    shown: str = ""
    flag: bool = True


class Job(NamedTuple):
    """A job: what it answers, which sets of ACLs it cannot do without, and its own options.

    ``looks_back``: whether it asks which ACLs there were when the log begins.
    """

    does: str
    needs: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    looks_back: bool = False


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return number


_TOP: Final = Option(
    "top", "top", "how many rows the tables of the report have (default: 20)", _whole, "N"
)
_UNUSED: Final = (
    Option(
        "no-filtering",
        "filtering",
        "do not count as use what only filtered an answer, as when a client lists all topics",
        flag=False,
    ),
    Option("unmatched-denies", "unmatched_denies", "also remove DENYs that no event met"),
)
_SESSIONS: Final = (
    Option(
        "baseline-days",
        "baseline_days",
        "how many days at the beginning of the log are taken for normal (default: half of them)",
        _whole,
        "N",
    ),
    Option(
        "spike-minimum",
        "spike.minimum",
        "how many on a day can be a peak at all (default: 10)",
        _whole,
        "N",
    ),
    Option(
        "spike-factor",
        "spike.factor",
        "how many deviations above the median a peak lies (default: 6)",
        _positive,
        "X",
    ),
    _TOP,
)

JOBS: Final[dict[str, Job]] = {
    "ingest": Job(
        "gather logs in tables, each file once, which all jobs can read instead of logs",
        (),
        (Option("follow", "follow", "go on with files as they appear, until interrupted"),),
    ),
    "matrix": Job("tell who used what, how often and when", (), (_TOP,)),
    "unused": Job(
        "find the ACLs that can go, with the proof by a replay", ("acls",), _UNUSED, looks_back=True
    ),
    "redundant": Job(
        "find ACLs that others cover, duplicates and contradictions", ("acls",), (_TOP,)
    ),
    "denials": Job("tell what was denied, and the smallest ACL that would allow it", ("acls",)),
    "what-if": Job("replay the log under a proposed set of ACLs", ("proposed",), (_TOP,)),
    "recommend": Job("find the smallest set of ACLs that allows what was used", ("acls",)),
    "diff": Job(
        "compare two sets of ACLs, and replay the log under both", ("acls", "other"), (_TOP,)
    ),
    "sessions": Job("find new principals and hosts, first uses and sudden peaks", (), _SESSIONS),
    ALL: Job("run every job that the given files allow, with one report", looks_back=True),
}


def options_of(job: str) -> list[Option]:
    """Return the options of a job, or of all jobs, each once."""
    jobs = JOBS.values() if job == ALL else [JOBS[job]]
    return list(dict.fromkeys(option for each in jobs for option in each.options))
