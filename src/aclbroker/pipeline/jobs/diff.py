"""How two clusters, or two snapshots of one, differ: as sets of ACLs, and in what they decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.difference import AclDifference, difference, setting_differences
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import MIN_COVERAGE, TOP, Job
from aclbroker.pipeline.interface.result import Cell, Figure, JobResult, Table
from aclbroker.pipeline.interface.wording import clusters_in_short, in_short

if TYPE_CHECKING:
    from aclbroker.pipeline.replay.comparison import Comparison


_ACLS: Final = "diff/acls"


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How the answer is judged and shown.

    - ``min_coverage``: the percentage of a cluster's logged hours that must have allowed events,
      for "none newly denied" to count as an answer
    - ``top``: the number of rows in the tables of the summary
    """

    min_coverage: float = 100.0
    top: int = 20


class _Pair(NamedTuple):
    """The rules of one cluster on both sides; ``name`` is that on the current side."""

    name: str
    current: Ruleset
    other: Ruleset
    acls: AclDifference


def run(inputs: Inputs, options: DiffOptions | None = None) -> JobResult:
    """Compare the current rules with the other ones, and replay the log under both.

    Clusters are matched by name; where both sides have a single one, these two are. Two ACLs are
    one if they differ only in how an address is written (`pipeline.analysis.difference`). Writes
    what only one side has as policy files, and, if the log is of a cluster of the current side, the
    tables ``diff/flips`` and ``diff/causes``: what of its use the other rules would decide
    otherwise.

    Raises InputError if a side is missing, or no cluster is on both.
    """
    from aclbroker.pipeline.interface.acl_differences import differences_frame

    options = options or DiffOptions()
    pairs, warnings = _pairs(inputs)
    # Named for where they are: the commands beside a policy file add what is in it.
    outputs = inputs.output.acls("diff/only-current", {p.name: p.acls.removed for p in pairs})
    outputs |= inputs.output.acls("diff/only-other", {p.name: p.acls.added for p in pairs})
    differing = {pair.name: pair.acls for pair in pairs}
    inputs.output.table(_ACLS, differences_frame(inputs.spark, differing))
    outputs[_ACLS] = "every ACL that one side has alone, and what it has changed into"
    tables = [table for table in _tables(pairs, options.top) if table.total]
    replayed = _replayed(inputs, pairs, options)
    if replayed is None:
        warnings.append("the log is of none of these clusters: nothing was replayed")
        return _result(pairs, tables, warnings, outputs)
    warnings += replayed.warnings
    outputs |= replayed.report.outputs
    return _result(pairs, tables, warnings, outputs, replayed)


def _pairs(inputs: Inputs) -> tuple[list[_Pair], list[str]]:
    """Match the clusters of both sides; return also warnings on those of one side only."""
    current, other = inputs.current, inputs.other
    for side, rules in (("current", current), ("other", other)):
        if not rules:
            raise InputError(f"diff needs two sets of ACLs; the {side} one is missing")
    if len(current) == len(other) == 1:
        (name,), (match,) = current, other
        return [_pair(name, current[name], other[match])], []
    both = sorted(current.keys() & other.keys())
    if not both:
        raise InputError(
            "diff matches clusters by name, and no name is on both sides: the current ACLs are of "
            f"{in_short(sorted(current))}, the other ones of {in_short(sorted(other))}"
        )
    alone = [
        f"only the {side} ACLs are of {clusters_in_short(sorted(rules.keys() - set(both)))}: "
        "left out"
        for side, rules in (("current", current), ("other", other))
        if rules.keys() - set(both)
    ]
    return [_pair(name, current[name], other[name]) for name in both], alone


def _pair(name: str, current: Ruleset, other: Ruleset) -> _Pair:
    return _Pair(name, current, other, difference(current, other))


def _replayed(inputs: Inputs, pairs: Sequence[_Pair], options: DiffOptions) -> Comparison | None:
    from aclbroker.pipeline.replay.comparison import compare

    rows = inputs.usage.by("cluster").select("cluster").distinct().collect()
    logged = [pair for pair in pairs if pair.name in {row["cluster"] for row in rows}]
    if not logged:
        return None
    return compare(
        inputs,
        {pair.name: pair.current for pair in logged},
        {pair.name: pair.other for pair in logged},
        job=JOB.name,
        rules="other ACLs",
        top=options.top,
        min_coverage=options.min_coverage,
    )


def _result(
    pairs: Sequence[_Pair],
    tables: Sequence[Table],
    warnings: Sequence[str],
    outputs: Mapping[str, str],
    replayed: Comparison | None = None,
) -> JobResult:
    removed = sum(len(pair.acls.removed) for pair in pairs)
    added = sum(len(pair.acls.added) for pair in pairs)
    summary = f"The other side lacks {removed:,} ACLs and has {added:,} that the current one lacks."
    figures = [
        Figure("ACLs of the current side", sum(len(pair.current.acls) for pair in pairs)),
        Figure("ACLs of the other side", sum(len(pair.other.acls) for pair in pairs)),
        Figure("Removed", removed, "only on the current side"),
        Figure("Added", added, "only on the other side"),
        *(_changed(pairs, field) for field in ("permission", "host")),
    ]
    return JobResult(
        job=JOB.name,
        title="How two sets of ACLs differ",
        summary=f"{summary} {replayed.summary('other ACLs')}" if replayed else summary,
        figures=[*figures, *(replayed.report.figures if replayed else ())],
        tables=[*tables, *(replayed.report.tables if replayed else ())],
        charts=replayed.report.charts if replayed else (),
        warnings=warnings,
        outputs=dict(outputs),
        alarms=replayed.alarms if replayed else {},
    )


def _changed(pairs: Sequence[_Pair], field: str) -> Figure:
    count = sum(change.field == field for pair in pairs for change in pair.acls.changed)
    return Figure(f"Changed {field}", count, "of those removed and added, differing only in this")


def _tables(pairs: Sequence[_Pair], top: int) -> Iterator[Table]:
    settings: list[list[Cell]] = [
        [pair.name, *values]
        for pair in pairs
        for values in setting_differences(pair.current, pair.other)
    ]
    yield Table(
        "Settings that differ", ["Cluster", "Setting", "Current", "Other"], settings, len(settings)
    )
    principals = sorted(
        ((pair.name, *counts) for pair in pairs for counts in pair.acls.by_principal()),
        key=lambda row: -row[2] - row[3],
    )
    columns = ["Cluster", "Principal", "Removed", "Added"]
    title = "Differences by principal"
    yield Table(title, columns, principals[:top], len(principals), source=_ACLS)
    changes = [(pair.name, *change) for pair in pairs for change in pair.acls.changed]
    yield Table(
        "ACLs that changed",
        ["Cluster", "Field", "Current", "Other"],
        [[name, field, acl_text(old), acl_text(new)] for name, field, old, new in changes[:top]],
        len(changes),
        source=_ACLS,
    )
    yield _acls_table("Removed", [(pair.name, pair.acls.removed) for pair in pairs], top)
    yield _acls_table("Added", [(pair.name, pair.acls.added) for pair in pairs], top)


def _acls_table(title: str, sets: Sequence[tuple[str, Sequence[AclBinding]]], top: int) -> Table:
    rows = ([name, acl_text(acl)] for name, acls in sets for acl in acls)
    total = sum(len(acls) for _, acls in sets)
    return Table(title, ["Cluster", "ACL"], list(islice(rows, top)), total, source=_ACLS)


JOB: Final = Job(
    "diff",
    "compare two sets of ACLs, and replay the log under both",
    DiffOptions,
    run,
    (MIN_COVERAGE, TOP),
    needs=("acls", "other"),
)
