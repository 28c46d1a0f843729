"""The log as tables: counted from log files at once, or as the job `ingest` gathered them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from aclbroker.pipeline.acls.broker_properties import client_properties
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest.copies import copies
from aclbroker.pipeline.ingest.positioned import Mark, read_positioned
from aclbroker.pipeline.ingest.read import LogForm, Reading, positioned, usage
from aclbroker.pipeline.ingest.sources import head, lines, local_files
from aclbroker.pipeline.ingest.stored import HOURS, QUARANTINE, has_tables, read_table, read_usage
from aclbroker.pipeline.ingest.tables import BatchProgress, follow, ingest
from aclbroker.pipeline.ingest.topic import is_topic
from aclbroker.pipeline.ingest.unread import UnreadFile, unread_files
from aclbroker.pipeline.jobs import ingest as ingest_job
from aclbroker.pipeline.usage.summary import of_part
from aclbroker.pipeline.usage.table import Usage, of_days

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

UNNAMED_CLUSTER: Final = "kafka"
"""What the cluster of a Kafka's log is called if nobody names it."""

Told = Callable[[BatchProgress], None]


class LogTables(NamedTuple):
    """The tables `pipeline.schemas.usage` and ``quarantine`` of the inputs.

    With ``is_new``, log files are read for the tables. ``unread`` returns the files without any
    event. ``positioned`` returns the same events as rows of `pipeline.ingest.positioned`; it reads
    the log a second time. ``summary`` returns the summary (`usage.summary`) of the usage and the
    quarantine; None if the tables have none. ``hours`` returns the rows of
    `pipeline.schemas.hours`, or of `usage.hours`. ``notes`` name the files of the inputs that are
    not read.
    """

    usage: Usage
    quarantine: DataFrame
    is_new: bool
    unread: Callable[[], Sequence[UnreadFile]] = tuple
    positioned: Callable[[Mark], Usage] | None = None
    summary: Callable[[], pa.Table] | None = None
    hours: Callable[[], pa.Table] | None = None
    notes: Sequence[str] = ()


def load(spark: SparkSession, options: AuditOptions, named_cluster: str | None) -> LogTables:
    """Return the tables of the inputs. Log files are read once, when the first rows are needed.

    ``named_cluster`` is what a Kafka's log is called unless the options say.

    Raises InputError if the inputs are of both kinds, IngestError if one cannot be read.
    """
    topics = [each for each in options.inputs if is_topic(each)]
    if topics:
        raise InputError(f"--input {topics[0]}: only the job ingest reads topics")
    places = [each.rstrip("/") for each in options.inputs]
    are_tables = [has_tables(spark, place) for place in places]
    if all(are_tables):
        return of_options(gathered(spark, places), options)
    if any(are_tables):
        raise InputError("--input: either logs or directories that the job ingest wrote, not both")
    _check_apart(options.inputs, options.output)
    inputs, notes = _without_copies(spark, options)
    if options.columns is None:
        rows = lines(spark, inputs)
    else:
        # Small logs are read without Spark, whose errors this knows.
        from aclbroker.pipeline.ingest.foreign_tables import foreign_rows

        rows = foreign_rows(spark, inputs, options.columns)
    how = reading(spark, options, named_cluster)
    counted = usage(rows, how)
    counted.kept.persist()
    unread = partial(unread_files, counted.quarantine, counted.read)
    again = partial(positioned, rows, how)
    found = LogTables(
        counted.usage,
        counted.quarantine,
        True,
        unread,
        again,
        counted.summary,
        counted.hours,
        notes,
    )
    return of_options(found, options)


def _without_copies(
    spark: SparkSession, options: AuditOptions
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the inputs without copies of other files, and notes on the files left out."""
    notes = _hidden(options.inputs)
    if options.columns is not None:
        # The names of a table's directories hold columns that its files lack.
        return options.inputs, notes
    files = [local_files(spark, each) for each in options.inputs]
    paths = dict.fromkeys(path for some in files if some is not None for path in some)
    found = copies(list(paths))
    if not found:
        return options.inputs, notes
    notes += [f"{copy} is a copy of {one}, and counts once." for copy, one in found.items()]
    elsewhere = [name for name, some in zip(options.inputs, files, strict=True) if some is None]
    return [*elsewhere, *(path for path in paths if path not in found)], notes


def _hidden(inputs: Sequence[str]) -> list[str]:
    """Return a note for each hidden file. Spark skips files whose names begin with "." or "_"."""
    places = [Path(each) for each in inputs if "://" not in each]
    return [
        f"{path} is hidden by its name, and was left out."
        for place in places
        if place.is_dir()
        for path in sorted(place.iterdir())
        if path.name[0] in "._" and path.is_file() and path.stat().st_size
    ]


def gather(
    spark: SparkSession,
    options: AuditOptions,
    named_cluster: str | None,
    told: Told,
    noted: Callable[[str], None],
) -> None:
    """Bring what is new in the inputs into the tables at the output.

    With the option ``follow`` of the job, go on until interrupted. ``noted`` is called with what
    is left for the next time. Raises InputError and IngestError as `load` does.
    """
    _check_apart(options.inputs, options.output)
    for note in _hidden(options.inputs):
        noted(note)
    how = reading(spark, options, named_cluster)
    place = options.output.rstrip("/")
    client = client_properties(options.command_config) if options.command_config else None
    if options.job_options.get(options.job, {}).get("follow"):
        # A user who interrupts it wants to see what was gathered.
        with suppress(KeyboardInterrupt):
            follow(spark, options.inputs, how, place, told=told, noted=noted, client=client)
    else:
        ingest(spark, options.inputs, how, place, told=told, noted=noted, client=client)


def gathered(spark: SparkSession, places: Sequence[str]) -> LogTables:
    """Return the tables of all places as one."""
    counted = reduce(Usage.and_also, (read_usage(spark, place) for place in places))
    quarantine = _together(read_table(spark, place, QUARANTINE) for place in places)
    again = partial(_positioned, spark, tuple(places))
    hours = _together(read_table(spark, place, HOURS) for place in places)
    return LogTables(counted, quarantine, False, positioned=again, hours=hours.toArrow)


def _together(tables: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), tables)


def _positioned(spark: SparkSession, places: Sequence[str], mark: Mark) -> Usage:
    return reduce(Usage.and_also, (read_positioned(spark, place, mark) for place in places))


def of_options(tables: LogTables, options: AuditOptions) -> LogTables:
    """Return what is of the days and the cluster asked for.

    Quarantined lines are kept whichever cluster they name, since they cannot be trusted.
    """
    counted, quarantine, again = tables.usage, tables.quarantine, tables.positioned
    summary = tables.summary
    clusters = None if options.cluster is None else [options.cluster]
    days = options.since, options.until
    return tables._replace(
        usage=counted.part(clusters, *days),
        quarantine=of_days(quarantine, *days),
        positioned=again and (lambda mark: again(mark).part(clusters, *days)),
        summary=summary and (lambda: of_part(summary(), clusters, *days)),
    )


def reading(spark: SparkSession, options: AuditOptions, named_cluster: str | None) -> Reading:
    """Return how the inputs are to be read."""
    files = [each for each in options.inputs if not is_topic(each)]
    cluster = options.cluster or named_cluster or UNNAMED_CLUSTER
    if options.columns is not None:
        return Reading(None, cluster, ZoneInfo(options.zone), columns=options.columns)
    form = LogForm(options.form) if options.form else None
    # Topics hold our own form, as Kafka's log is written to files; and one may have nothing new to
    # look at.
    # A log that was gathered before may be empty now, since it was rotated.
    goes_on = options.job == ingest_job.JOB.name and has_tables(spark, options.output.rstrip("/"))
    first = head(spark, files, may_be_empty=goes_on) if files else b""
    if not files and form is None:
        form = LogForm.JSONL
    return Reading(form, cluster, ZoneInfo(options.zone), options.pattern, first)


def _check_apart(inputs: Sequence[str], output: str) -> None:
    """Refuse an output that the next run would take for a part of the log."""
    for each in inputs:
        if "://" not in each and "://" not in output:
            place = Path(output).resolve()
            if Path(each).resolve() in (place, *place.parents):
                raise InputError(
                    f"--output {output} lies within --input {each}: what is written there would "
                    "be read as a log the next time"
                )
