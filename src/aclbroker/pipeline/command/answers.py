"""Runs jobs over one log, in one session, and puts their answers into one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.pipeline.acls import snapshots
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.coverage import Coverage, coverages
from aclbroker.pipeline.command.log_content import Content, content
from aclbroker.pipeline.command.log_tables import LogTables, gather, gathered, load, of_options
from aclbroker.pipeline.command.options import ALL, AuditOptions
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import ClusterRules, RuleFiles
from aclbroker.pipeline.errors import DoubtedLogError, InputError
from aclbroker.pipeline.ingest.tables import BatchProgress
from aclbroker.pipeline.ingest.unread import UnreadFile, others_told, told
from aclbroker.pipeline.interface.coverage import logged_hours, whole_days
from aclbroker.pipeline.interface.inputs import Inputs, Window
from aclbroker.pipeline.interface.job import Job
from aclbroker.pipeline.interface.left_out import left_out_lines
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.quarantine import Quarantine
from aclbroker.pipeline.interface.result import JobResult
from aclbroker.pipeline.jobs import JOBS, ingest
from aclbroker.pipeline.report.content import AuditReport, LoggedCluster
from aclbroker.pipeline.report.findings import findings_json
from aclbroker.pipeline.report.html import page
from aclbroker.pipeline.report.summary import summary_json
from aclbroker.pipeline.report.words import counted
from aclbroker.pipeline.report.written import read_written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUMMARY: Final = "summary.json"
FINDINGS: Final = "findings.sarif"
"""What programs read of the last run, beside the report."""

_NAMED: Final = 3
"""How many principals, or clusters, a warning names."""


def answered(
    spark: SparkSession, options: AuditOptions, rules: RuleFiles, progress: Progress
) -> AuditReport:
    """Answer what the options ask for and write everything below their output.

    Raises InputError if a job cannot answer; with the job ``all`` the report says so instead.
    """
    output = Output(spark, options.output)
    with progress.step("log") as step:
        tables = _tables(spark, options, rules, progress)
        found = content(tables.usage, tables.quarantine, tables.summary and tables.summary())
        files = tables.unread() if found.quarantined or found.not_decisions else ()
        unread = told(files)
        if tables.is_new:
            step.lines = found.window.events + found.window.quarantined
    by_cluster = rules.by_cluster(list(found.clusters))
    inputs = Inputs(
        spark,
        tables.usage,
        found.window,
        output,
        by_cluster.current,
        by_cluster.proposed,
        by_cluster.other,
        by_cluster.earlier or _noted_before(spark, options, found.window, tables),
        by_cluster.names,
        by_cluster.histories,
        tables.positioned,
        coverage=_coverage(tables, found),
        quarantine=Quarantine(tables.quarantine, list(found.clusters)),
    )
    answers = _answers(inputs, options, progress)
    report = AuditReport(
        answers.results,
        datetime.now(UTC),
        found.window,
        [
            _cluster(name, events, by_cluster, inputs.coverage.get(name))
            for name, events in sorted(found.clusters.items(), key=lambda each: -each[1])
        ],
        found.quarantined,
        answers.unanswered,
        [*unread, *others_told(files), *tables.notes, *_warnings(found, by_cluster)],
        [*((place, "log") for place in options.inputs), *rules.read],
        options.output,
        options.command,
        is_unread=bool(unread),
        sources=rules.sources,
        refused=answers.refused,
        is_doubted=answers.is_doubted,
        not_decisions=found.not_decisions,
    )
    with progress.step("report") as step:
        outputs = [
            name for each in answers.results for name in each.outputs if each.job != ingest.JOB.name
        ]
        report = replace(report, stored=read_written(spark, output.place, outputs))
        name = "report.html" if options.job == ALL else f"{options.job}.html"
        output.text(name, page(report))
        output.text(SUMMARY, summary_json(report))
        output.text(FINDINGS, findings_json(report))
        step.name += f" {output.place}/{name}"
    return report


def _coverage(tables: LogTables, found: Content) -> dict[str, Coverage]:
    """Return the coverage of each cluster's log.

    Tables of an older version have no hours, so each of their days counts as one hour, also if
    other tables have hours of that day.
    """
    rows = [] if tables.hours is None else tables.hours().to_pylist()
    hours = [each for each in logged_hours(rows) if (each[0], each[1].start.date()) in found.days]
    return coverages([*hours, *whole_days(found.days, hours)])


def _noted_before(
    spark: SparkSession, options: AuditOptions, window: Window, tables: LogTables
) -> dict[str, Ruleset]:
    """The ACLs that were noted beside gathered logs when the window began."""
    found: dict[str, Ruleset] = {}
    looks_back = options.job == ALL or JOBS[options.job].looks_back
    if not tables.is_new and looks_back:
        for place in options.inputs:
            found |= snapshots.earlier(spark, place.rstrip("/"), window.first_day)
    return found


def _tables(
    spark: SparkSession, options: AuditOptions, rules: RuleFiles, progress: Progress
) -> LogTables:
    if options.job != ingest.JOB.name:
        return load(spark, options, rules.named_cluster)

    unread: list[UnreadFile] = []

    def note(batch: BatchProgress) -> None:
        progress.note(f"batch {batch.batch}: {batch.lines:,} lines")
        unread.extend(batch.unread)

    gather(spark, options, rules.named_cluster, note, progress.note)
    found = gathered(spark, [options.output.rstrip("/")])._replace(unread=lambda: unread)
    return of_options(found, options)


class _Answers(NamedTuple):
    """The results of the jobs, and why other jobs have none.

    ``refused`` has the alarms that jobs without a result counted. With ``is_doubted``, a job left
    out clusters because of quarantined lines, or because too few hours have allowed events.
    """

    results: list[JobResult]
    unanswered: dict[str, str]
    refused: dict[str, dict[str, int]]
    is_doubted: bool


def _answers(inputs: Inputs, options: AuditOptions, progress: Progress) -> _Answers:
    results: list[JobResult] = []
    unanswered: dict[str, str] = {}
    refused: dict[str, dict[str, int]] = {}
    is_doubted = False
    for job in _asked(options):
        missing = [f"--{name}" for name in job.needs if not getattr(options, name)]
        if missing:
            unanswered[job.name] = f"it needs {' and '.join(missing)}"
            continue
        try:
            with progress.step(job.name):
                result = job.answer(inputs, options.job_options.get(job.name, {}))
            results.append(result)
            is_doubted = is_doubted or result.is_doubted
            for line in left_out_lines(result.left_out):
                progress.note(f"{job.name}: {line}")
        except InputError as error:
            if options.job != ALL:
                raise
            unanswered[job.name] = str(error)
            is_doubted = is_doubted or isinstance(error, DoubtedLogError)
            if error.alarms:
                refused[job.name] = error.alarms
    return _Answers(results, unanswered, refused, is_doubted)


def _asked(options: AuditOptions) -> list[Job[Any]]:
    if options.job == ALL:
        return [job for job in JOBS.values() if job is not ingest.JOB]
    return [JOBS[options.job]]


def _cluster(
    name: str, events: int, rules: ClusterRules, coverage: Coverage | None
) -> LoggedCluster:
    current, proposed, other = (
        each.get(name) for each in (rules.current, rules.proposed, rules.other)
    )
    return LoggedCluster(name, events, current, proposed, other, coverage)


def _warnings(log: Content, rules: ClusterRules) -> list[str]:
    found = []
    if rules.left_out:
        found.append(
            f"The log holds nothing of {_clusters(rules.left_out)}: what was given for "
            f"{'it is' if len(rules.left_out) == 1 else 'them is'} left out."
        )
    if not rules.current:
        return found
    unknown = [name for name in log.clusters if name not in rules.current]
    if unknown:
        events = sum(log.clusters[name] for name in unknown)
        found.append(
            f"No ACLs of {_clusters(unknown)} were given with --acls: answers about ACLs leave out "
            f"{counted(events, 'event')}."
        )
    listed = {name: _without_acls(ruleset) for name, ruleset in rules.current.items()}
    missing = log.unlisted(listed)
    if not missing:
        return found
    names = _named([name for name, _ in missing.most_common()])
    found.append(
        f"The log calls {names} super users, and the options do not "
        f"({counted(missing.total(), 'event')}): they are judged by ACLs alone. Name them "
        "with --super-user or --broker-user, or give the broker's --properties."
    )
    return found


def _clusters(names: Sequence[str]) -> str:
    return f"cluster{'' if len(names) == 1 else 's'} {_named(names)}"


def _named(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    others = len(names) - _NAMED
    more = f" and {counted(others, 'other')}" if others > 0 else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _without_acls(ruleset: Ruleset) -> frozenset[str]:
    return ruleset.super_users | ruleset.broker_users.principals
