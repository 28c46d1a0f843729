"""What a proposed set of rules would break and open, had it been in force when the log was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.inputs import InputError, Inputs
from pipeline.jobs.drift import Drift, drift_warnings
from pipeline.jobs.flips import NEWLY_ALLOWED, NEWLY_DENIED, Flips, find_flips
from pipeline.jobs.flips_report import FlipsReport, report_flips
from pipeline.result import Figure, Result
from pipeline.ruleset import Ruleset

JOB = "what-if"


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """``top``: how many rows the tables of the summary show."""

    top: int = 20


def run(inputs: Inputs, options: WhatIfOptions | None = None) -> Result:
    """Decide everything in the log under the current and under the proposed rules.

    A cluster without current rules is compared with the decisions of its log. Writes the tables
    ``what-if/flips`` (see `pipeline.jobs.flips.find_flips`) and ``what-if/causes``: which changes
    make how many decisions flip. Events that the log and the current rules decide differently are
    counted in a warning, with the likeliest reasons.

    Raises InputError if no rules are proposed for any cluster of the log.
    """
    options = options or WhatIfOptions()
    if not inputs.proposed:
        raise InputError("what-if needs a proposed set of ACLs to replay the log under")
    current = {name: inputs.current[name] for name in inputs.proposed if name in inputs.current}
    flips = find_flips(inputs.usage, current, inputs.proposed, inputs.output, f"{JOB}/flips")
    warnings = uncovered(inputs, inputs.proposed, flips, "proposed")
    report = report_flips(flips, inputs.output, JOB, inputs.window.days, options.top)
    drift = Drift(flips.drift_denied, flips.drift_allowed, flips.drift_mixed)
    warnings += drift_warnings(drift, inputs.usage, current)
    return Result(
        job=JOB,
        title="What the proposed rules would change",
        summary=_summary(flips, report),
        figures=[*report.figures, *_set_figures(current, inputs.proposed)],
        tables=report.tables,
        charts=report.charts,
        warnings=warnings,
        outputs=dict(report.outputs),
    )


def uncovered(inputs: Inputs, rules: Mapping[str, Ruleset], flips: Flips, which: str) -> list[str]:
    """Return a warning if the log has clusters without ``rules``.

    Raises InputError if it has no others. ``which``: the word for the rules.
    """
    if flips.events and flips.events >= inputs.window.events:
        return []
    rows = inputs.usage.select("cluster").distinct().collect()
    left_out = sorted(str(row["cluster"]) for row in rows if row["cluster"] not in rules)
    if rows and len(left_out) == len(rows):
        raise InputError(
            f"the log is of {_clusters(left_out)}, but {which} ACLs are only given for "
            f"{_clusters(sorted(rules))}"
        )
    return [f"no {which} ACLs for {_clusters(left_out)}: left out"] if left_out else []


def _clusters(names: list[str]) -> str:
    return f"cluster{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _summary(flips: Flips, report: FlipsReport) -> str:
    denied, allowed = report.totals[NEWLY_DENIED], report.totals[NEWLY_ALLOWED]
    if not denied.events and not allowed.events:
        return f"Nothing flips: all {flips.events:,} events are decided as before."
    return (
        f"Of {flips.events:,} events the proposed rules newly deny {denied.events:,} (of "
        f"{denied.principals:,} principals) and newly allow {allowed.events:,} (of "
        f"{allowed.principals:,} principals)."
    )


def _set_figures(current: Mapping[str, Ruleset], proposed: Mapping[str, Ruleset]) -> list[Figure]:
    removed = added = 0
    for cluster, rules in current.items():
        before, after = set(rules.acls), set(proposed[cluster].acls)
        removed += len(before - after)
        added += len(after - before)
    return [
        Figure("ACLs proposed", sum(len(rules.acls) for rules in proposed.values())),
        Figure("ACLs removed", removed, "of clusters whose current ACLs are known"),
        Figure("ACLs added", added, "to clusters whose current ACLs are known"),
    ]
