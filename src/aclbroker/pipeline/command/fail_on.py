"""The option `--fail-on`: numbers above which a run ends with a status of its own."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from aclbroker.pipeline.interface.alarms import ALARMS
from aclbroker.pipeline.interface.job import zero_or_more


class Bound(NamedTuple):
    """The largest number of an alarm that is not a failure."""

    alarm: str
    most: int = 0


class Verdict(NamedTuple):
    """What `judged` found, as sentences: numbers above their bound, and what nobody counted."""

    exceeded: list[str]
    not_counted: list[str]


def bounds(text: str) -> list[Bound]:
    """Read ``NAME[=MOST],...``; the error is one that argparse shows."""
    found = []
    for each in text.split(","):
        name, equals, most = each.strip().partition("=")
        if name not in ALARMS:
            raise argparse.ArgumentTypeError(
                f"{name!r} is none of {', '.join(ALARMS)}, each of which may end in =NUMBER"
            )
        found.append(Bound(name, zero_or_more(most) if equals else 0))
    return found


def impossible(given: Iterable[Bound], running: Collection[str]) -> str | None:
    """Return why a bound can never be held against anything; None if all can.

    ``running``: the jobs that will run.
    """
    seen: set[str] = set()
    for alarm, _ in given:
        if alarm in seen:
            return f"--fail-on {alarm} is given twice"
        seen.add(alarm)
        jobs = ALARMS[alarm].jobs
        if jobs and not set(jobs) & set(running):
            return f"--fail-on {alarm}: {_jobs(jobs)} for it, and none of these would run"
    return None


def _jobs(names: Sequence[str]) -> str:
    *others, last = names
    return f"the jobs {', '.join(others)} and {last} look" if others else f"the job {last} looks"


def judged(given: Iterable[Bound], counted: Mapping[str, Mapping[str, int]]) -> Verdict:
    """Hold the alarms of all jobs against the bounds, each by itself.

    ``counted`` has the alarms of each job. One that no job has was looked for by nobody, which is
    not the same as 0.
    """
    exceeded, not_counted = [], []
    for alarm, most in given:
        counts = {job: alarms[alarm] for job, alarms in counted.items() if alarm in alarms}
        if not counts:
            not_counted.append(f"--fail-on {alarm}: no job that ran has counted it")
        exceeded += [
            f"failed on {alarm}: {job} counts {count:,} {ALARMS[alarm].counts}"
            + (f", {most:,} at most are accepted" if most else "")
            for job, count in counts.items()
            if count > most
        ]
    return Verdict(exceeded, not_counted)
