"""What a user asks of the pipeline, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

from aclbroker.pipeline.command.fail_on import Bound
from aclbroker.pipeline.ingest.columns import Columns

LOCAL_BYTES: Final = 200_000_000
"""How large a log may be, unless the options say, to be decided without Spark."""

ALL: Final = "all"
"""The job that stands for every other one that the given files allow, but for `ingest`."""


class Given(NamedTuple):
    """A value that was given for one cluster.

    Without a cluster it is for the only one there is, or for the one that the file itself names."""

    cluster: str | None
    value: str


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The options of all jobs.

    ``inputs`` are paths or URLs of logs, or of directories that the job ``ingest`` wrote. ``acls``,
    ``proposed``, ``other`` and ``earlier`` name files of ACLs (`pipeline.interface.inputs.Inputs`
    says what each is for), ``history`` stores that keep theirs, and ``topics`` files with the names
    of the topics that exist. The fields
    that begin with ``proposed_`` are settings to try (`pipeline.command.proposed`). ``form`` is a
    value of `pipeline.ingest.read.LogForm`; None means that each file tells by its first line.
    ``pattern`` is log4j's conversion pattern of a Kafka's log. ``columns`` are those of the
    inputs if these are tables that somebody else wrote.
    ``zone`` is the IANA name of the time zone of the broker that wrote a Kafka's log. ``since`` and
    ``until`` are the first and the last day (UTC) to look at. ``engine`` is a value of
    `pipeline.command.engine.Engine`, and ``local_bytes`` the size of a log up to which no Spark is
    started. ``spark`` are Spark's own settings.
    ``job_options`` are the fields of the jobs' options that were given, by job. ``fail_on`` are the
    numbers above which the run fails (`pipeline.command.fail_on`). ``command`` is what the user
    typed, for the report.
    """

    job: str
    inputs: tuple[str, ...]
    output: str
    acls: tuple[Given, ...] = ()
    proposed: tuple[Given, ...] = ()
    other: tuple[Given, ...] = ()
    earlier: tuple[Given, ...] = ()
    history: tuple[Given, ...] = ()
    topics: tuple[Given, ...] = ()
    super_users: tuple[Given, ...] = ()
    broker_users: tuple[Given, ...] = ()
    broker_listener: str | None = None
    open_clusters: tuple[str | None, ...] = ()
    properties: tuple[Given, ...] = ()
    cidr: bool = False
    proposed_properties: tuple[Given, ...] = ()
    proposed_super_users: tuple[Given, ...] = ()
    proposed_broker_users: tuple[Given, ...] = ()
    proposed_broker_listener: str | None = None
    proposed_allow_everyone: tuple[tuple[str | None, bool], ...] = ()
    proposed_cidr: tuple[tuple[str | None, bool], ...] = ()
    form: str | None = None
    pattern: str | None = None
    columns: Columns | None = None
    cluster: str | None = None
    zone: str = "UTC"
    since: date | None = None
    until: date | None = None
    engine: str = "auto"
    local_bytes: int = LOCAL_BYTES
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    command_config: str | None = None
    job_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fail_on: tuple[Bound, ...] = ()
    command: str = ""
