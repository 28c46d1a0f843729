"""Runs jobs over one log, in one session, and puts their answers into one report."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aclbroker.pipeline.acls import snapshots
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.command.log_content import Content, content
from aclbroker.pipeline.command.log_tables import LogTables, gather, gathered, load, of_options
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import ClusterRules, RuleFiles
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest.tables import EVENTS, QUARANTINE, USAGE
from aclbroker.pipeline.ingest.tables import Progress as Batch
from aclbroker.pipeline.interface.inputs import Inputs, Window
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.result import Figure, Result
from aclbroker.pipeline.known_jobs import ALL, JOBS
from aclbroker.pipeline.report.content import Cluster, Report
from aclbroker.pipeline.report.html import page
from aclbroker.pipeline.report.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INGEST: Final = "ingest"

_NAMED: Final = 3
"""How many principals a warning names."""


def answered(
    spark: SparkSession, options: AuditOptions, rules: RuleFiles, progress: Progress
) -> Report:
    """Answer what the options ask for and write everything below their output.

    Raises InputError if a job cannot answer; with the job ``all`` the report says so instead.
    """
    output = Output(spark, options.output)
    with progress.step("log") as step:
        tables = _tables(spark, options, rules, progress)
        found = content(tables.usage, tables.quarantine)
        if tables.is_new:
            step.lines = found.window.events + found.window.quarantined
    by_cluster = rules.by_cluster(list(found.clusters))
    place = options.output.rstrip("/")
    if options.job == INGEST:
        snapshots.take(spark, place, by_cluster.current, datetime.now(UTC))
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
    )
    results, unanswered = _results(inputs, options, progress)
    report = Report(
        results,
        datetime.now(UTC),
        found.window,
        [
            _cluster(name, events, by_cluster)
            for name, events in sorted(found.clusters.items(), key=lambda each: -each[1])
        ],
        found.quarantined,
        unanswered,
        _warnings(found, by_cluster),
        [*((place, "log") for place in options.inputs), *rules.read],
        options.output,
        options.command,
    )
    name = "report.html" if options.job == ALL else f"{options.job}.html"
    output.text(name, page(report))
    progress.note(f"report: {output.place}/{name}")
    return report


def _noted_before(
    spark: SparkSession, options: AuditOptions, window: Window, tables: LogTables
) -> dict[str, Ruleset]:
    """The ACLs that were noted beside gathered logs when the window began."""
    found: dict[str, Ruleset] = {}
    if not tables.is_new and JOBS[options.job].looks_back:
        for place in options.inputs:
            found |= snapshots.earlier(spark, place.rstrip("/"), window.first_day)
    return found


def _tables(
    spark: SparkSession, options: AuditOptions, rules: RuleFiles, progress: Progress
) -> LogTables:
    if options.job != INGEST:
        return load(spark, options, rules.named_cluster)

    def told(batch: Batch) -> None:
        progress.note(f"batch {batch.batch}: {batch.lines:,} lines")

    gather(spark, options, rules.named_cluster, told)
    return of_options(gathered(spark, [options.output.rstrip("/")]), options)


def _results(
    inputs: Inputs, options: AuditOptions, progress: Progress
) -> tuple[list[Result], dict[str, str]]:
    if options.job == INGEST:
        return [_ingested(inputs)], {}
    results, unanswered = [], {}
    names = [name for name in JOBS if name not in (ALL, INGEST)]
    for job in names if options.job == ALL else [options.job]:
        missing = [f"--{name}" for name in JOBS[job].needs if not getattr(options, name)]
        if missing:
            unanswered[job] = f"it needs {' and '.join(missing)}"
            continue
        try:
            with progress.step(job):
                results.append(run_job(job, inputs, options.job_options.get(job, {})))
        except InputError as error:
            if options.job != ALL:
                raise
            unanswered[job] = str(error)
    return results, unanswered


def run_job(job: str, inputs: Inputs, fields: Mapping[str, Any]) -> Result:
    """Return the answer of a job; ``fields`` are those of its options that were given."""
    module = job_module(job)
    found: Result = module.run(inputs, job_options(job, fields))
    return found


def job_options(job: str, fields: Mapping[str, Any]) -> Any:
    """Return the options of a job, as its module defines them; a dot leads into a field."""
    words = [word.capitalize() for word in job.split("-")]
    options = getattr(job_module(job), f"{''.join(words)}Options")()
    for name, value in fields.items():
        outer, _, inner = name.partition(".")
        if inner:
            value = replace(getattr(options, outer), **{inner: value})
        options = replace(options, **{outer: value})
    return options


def job_module(job: str) -> Any:
    """Return the module of a job."""
    return importlib.import_module(f"aclbroker.pipeline.jobs.{job.replace('-', '_')}")


def _cluster(name: str, events: int, rules: ClusterRules) -> Cluster:
    current, proposed, other = (
        each.get(name) for each in (rules.current, rules.proposed, rules.other)
    )
    return Cluster(name, events, current, proposed, other)


def _warnings(log: Content, rules: ClusterRules) -> list[str]:
    if not rules.current:
        return []
    found = [
        f"No ACLs of cluster {name} were given with --acls: answers about ACLs leave out "
        f"its {counted(events, 'event')}."
        for name, events in log.clusters.items()
        if name not in rules.current
    ]
    listed = {name: _without_acls(ruleset) for name, ruleset in rules.current.items()}
    missing = log.unlisted(listed)
    if not missing:
        return found
    names = ", ".join(name for name, _ in missing.most_common(_NAMED))
    others = len(missing) - _NAMED
    if others > 0:
        names += f" and {counted(others, 'other')}"
    found.append(
        f"The log calls {names} super users, and the options do not "
        f"({counted(missing.total(), 'event')}): they are judged by ACLs alone. Name them "
        "with --super-user or --broker-user, or give the broker's --properties."
    )
    return found


def _without_acls(ruleset: Ruleset) -> frozenset[str]:
    return ruleset.super_users | ruleset.broker_users.principals


def _ingested(inputs: Inputs) -> Result:
    window = inputs.window
    rows = inputs.usage.rows.count()
    lines = counted(window.quarantined, "line")
    return Result(
        INGEST,
        "What the log holds",
        f"The tables hold {counted(window.events, 'event')} in {counted(rows, 'row')} of usage, "
        f"and {lines} that are none.",
        [Figure("Rows of usage", rows, "events that differ in nothing but the time of a day")],
        outputs={
            EVENTS: "every event",
            USAGE: "the events of a day, counted by all that a decision depends on",
            QUARANTINE: "the lines that are no events, with the reason",
            snapshots.ACLS: "the ACLs given with --acls, and when each set was first seen",
        },
    )
