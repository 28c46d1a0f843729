"""What a proposed set of rules would break and open, had it been in force when the log was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.difference import setting_differences
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import MIN_COVERAGE, TOP, Job
from aclbroker.pipeline.interface.result import Figure, JobResult, Table


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """How the answer is judged and shown.

    - ``min_coverage``: the percentage of a cluster's logged hours that must have allowed events,
      for "none newly denied" to count as an answer
    - ``top``: the number of rows in the tables of the summary
    """

    min_coverage: float = 100.0
    top: int = 20


def run(inputs: Inputs, options: WhatIfOptions | None = None) -> JobResult:
    """Decide everything in the log under the current and under the proposed rules.

    A cluster without current rules is compared with the decisions of its log. Writes the tables
    ``what-if/flips`` (see `pipeline.replay.flips.find`) and ``what-if/causes``: which changes make
    how many decisions flip. Events that the log and the current rules decide differently are
    counted in a warning, with the likeliest reasons.

    Raises InputError if no rules are proposed for any cluster of the log.
    """
    from aclbroker.pipeline.replay.comparison import compare

    options = options or WhatIfOptions()
    if not inputs.proposed:
        raise InputError("what-if needs a proposed set of ACLs to replay the log under")
    rules = _called(inputs.current, inputs.proposed)
    found = compare(
        inputs,
        inputs.current,
        inputs.proposed,
        job=JOB.name,
        rules=rules,
        top=options.top,
        min_coverage=options.min_coverage,
    )
    return JobResult(
        job=JOB.name,
        title=f"What the {rules} would change",
        summary=found.summary(rules),
        figures=[*found.report.figures, *_set_figures(inputs.current, inputs.proposed)],
        tables=[*_settings_tables(inputs.current, inputs.proposed), *found.report.tables],
        charts=found.report.charts,
        warnings=found.warnings,
        outputs=dict(found.report.outputs),
        alarms=found.alarms,
    )


def _called(current: Mapping[str, Ruleset], proposed: Mapping[str, Ruleset]) -> str:
    """What is proposed, in words."""
    pairs = [(current[name], proposed[name]) for name in proposed.keys() & current.keys()]
    if not any(setting_differences(*pair) for pair in pairs):
        return "proposed ACLs"
    are_others = len(pairs) < len(proposed) or any(one.acls != other.acls for one, other in pairs)
    return "proposed ACLs and settings" if are_others else "proposed settings"


def _settings_tables(
    current: Mapping[str, Ruleset], proposed: Mapping[str, Ruleset]
) -> list[Table]:
    rows = [
        [name, *values]
        for name in sorted(proposed.keys() & current.keys())
        for values in setting_differences(current[name], proposed[name])
    ]
    columns = ("Cluster", "Setting", "Now", "Proposed")
    return [Table("Settings that differ", columns, rows, len(rows))] if rows else []


def _set_figures(current: Mapping[str, Ruleset], proposed: Mapping[str, Ruleset]) -> list[Figure]:
    removed = added = 0
    for cluster in proposed.keys() & current.keys():
        before, after = current[cluster].acls, proposed[cluster].acls
        both = len(set(before).intersection(after))
        removed += len(before) - both
        added += len(after) - both
    return [
        Figure("ACLs proposed", sum(len(rules.acls) for rules in proposed.values())),
        Figure("ACLs removed", removed, "from clusters whose current ACLs are known"),
        Figure("ACLs added", added, "to clusters whose current ACLs are known"),
    ]


JOB: Final = Job(
    "what-if",
    "replay the log under a proposed set of ACLs",
    WhatIfOptions,
    run,
    (MIN_COVERAGE, TOP),
    needs=("proposed",),
)
