"""Replays a log under two sets of rules and sums up what flips; for the jobs that compare rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.coverage import coverage_warnings, too_little
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.wording import clusters_in_short
from aclbroker.pipeline.replay.drift import Drift, drift_warnings
from aclbroker.pipeline.replay.flips.comparing import NEWLY_ALLOWED, NEWLY_DENIED
from aclbroker.pipeline.replay.flips.find import Flips, FlipTotal, find_flips
from aclbroker.pipeline.replay.flips.summary import FlipsReport, report_flips

_BROKEN: Final = "newly-denied"
_ALARMS: Final = {_BROKEN: NEWLY_DENIED, "newly-allowed": NEWLY_ALLOWED}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The flips, the report about them, and the warnings.

    With ``is_use_known``, the log has enough coverage. Then no newly denied event means that
    nothing breaks.
    """

    flips: Flips
    report: FlipsReport
    warnings: Sequence[str]
    is_use_known: bool

    def summary(self, rules: str) -> str:
        """Return one sentence on what flips. ``rules``: what the new rules are called."""
        events = self.flips.events
        if not self.flips.totals:
            return f"Nothing flips: all {events:,} events are decided as before."
        return (
            f"Of {events:,} events the {rules} newly deny {self._count(NEWLY_DENIED)} and newly "
            f"allow {self._count(NEWLY_ALLOWED)}."
        )

    @property
    def alarms(self) -> dict[str, int]:
        """The events that flip, and those of drift, for `JobResult.alarms`."""
        flipped = {
            alarm: self.flips.totals.get(direction, FlipTotal()).events
            for alarm, direction in _ALARMS.items()
        }
        if not self.is_use_known and not flipped[_BROKEN]:
            # The log could not show any newly denied event, so 0 would promise too much.
            del flipped[_BROKEN]
        return flipped | {"drift": self.flips.drift_denied + self.flips.drift_allowed}

    def _count(self, direction: str) -> str:
        events = self.flips.totals.get(direction, FlipTotal()).events
        principals = self.report.principals[direction]
        return f"{events:,} ({principals:,} principal{'' if principals == 1 else 's'})"


def compare(
    inputs: Inputs,
    before: Mapping[str, Ruleset],
    after: Mapping[str, Ruleset],
    *,
    job: str,
    rules: str,
    top: int,
    min_coverage: float,
) -> Comparison:
    """Replay the clusters in ``after``; write the tables ``JOB/flips`` and ``JOB/causes``.

    Clusters that are not in ``before`` are compared with the decisions of their log. ``rules`` is
    the word for the rules ``after``, in messages. ``min_coverage`` is the percentage of hours that
    must have allowed events, so that a cluster's use counts as known. Raises InputError if the log
    has no such cluster.
    """
    before = {cluster: before[cluster] for cluster in after if cluster in before}
    flips = find_flips(inputs.usage, before, after, inputs.output, f"{job}/flips", top=top)
    warnings = _left_out(inputs, after, flips.events, rules)
    report = report_flips(flips, inputs.output, job, inputs.window.days, top)
    drift = Drift(flips.drift_denied, flips.drift_allowed, flips.drift_mixed)
    warnings += drift_warnings(drift, inputs.usage, before)
    silent = coverage_warnings(inputs, after, "Unlogged use is not replayed.")
    is_known = not too_little(inputs, after, min_coverage)
    warnings += _doubtful(inputs, before, after, rules)
    return Comparison(flips, report, [*silent, *warnings], is_known)


def _doubtful(
    inputs: Inputs, before: Mapping[str, Ruleset], after: Mapping[str, Ruleset], rules: str
) -> list[str]:
    """Return a warning if there are quarantined lines, with the number of ALLOWs at risk.

    These are the ALLOWs that such lines may have used, and that the rules ``after`` lack.
    """
    if not inputs.window.quarantined:
        return []
    lost = 0
    for name, now in before.items():
        doubted = {now.acls[at] for at in inputs.quarantine.doubted(name, now.acls)}
        lost += len(doubted.difference(after[name].acls))
    told = (
        f"{inputs.window.quarantined:,} lines of the log cannot be read reliably, and are not "
        "replayed"
    )
    if lost:
        told += f". They may have used {lost:,} ALLOWs that the {rules} lack"
    return [told]


def _left_out(
    inputs: Inputs, replayed: Mapping[str, Ruleset], events: int, rules: str
) -> list[str]:
    """Return a warning if the log has further clusters."""
    if events and events >= inputs.window.events:
        return []
    rows = inputs.usage.by("cluster").select("cluster").distinct().collect()
    others = sorted(str(row["cluster"]) for row in rows if row["cluster"] not in replayed)
    if len(others) == len(rows):
        raise InputError(
            f"the log is of {clusters_in_short(others)}, but {rules} are only given for "
            f"{clusters_in_short(sorted(replayed))}"
        )
    return [f"left out, since no {rules} are given: {clusters_in_short(others)}"] if others else []
