"""The arguments of `aclbroker audit` and `python -m aclbroker.pipeline`; imports no Spark."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final
from zoneinfo import ZoneInfo

from aclbroker.pipeline.command.engine import Engine
from aclbroker.pipeline.command.fail_on import bounds, impossible
from aclbroker.pipeline.command.options import ALL, LOCAL_BYTES, AuditOptions
from aclbroker.pipeline.command.rule_arguments import PROPOSED_SETTINGS, add_rules
from aclbroker.pipeline.ingest.columns import OPTIONAL, REQUIRED, Columns, columns
from aclbroker.pipeline.ingest.conversion_pattern import PatternError, compiled
from aclbroker.pipeline.ingest.record import is_cluster
from aclbroker.pipeline.interface.alarms import ALARMS
from aclbroker.pipeline.interface.job import Option
from aclbroker.pipeline.jobs import JOBS, ingest


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the jobs with their options to the parser of the command."""
    shared = _shared()
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for job in JOBS.values():
        former = [job.former_name] if job.former_name else []
        _add_job(jobs, shared, job.name, job.does, job.arguments, former)
    # Several jobs have the same option, which is given once for all of them.
    every = {option.name: option for job in JOBS.values() for option in job.arguments}
    does = "run every job that the given files allow, with one report"
    _add_job(jobs, shared, ALL, does, every.values())


def _add_job(
    jobs: Any,
    shared: argparse.ArgumentParser,
    name: str,
    does: str,
    options: Iterable[Option],
    former_names: Sequence[str] = (),
) -> None:
    own = jobs.add_parser(
        name,
        aliases=former_names,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        parents=[shared],
        allow_abbrev=False,
    )
    group = own.add_argument_group("the answer")
    for option in options:
        _add(group, option)
    # Called by a former name, it is the same job.
    own.set_defaults(job=name, check=own)


def audit_options(arguments: argparse.Namespace, command: Sequence[str]) -> AuditOptions:
    """Return the options of parsed arguments; ``command`` are the words the user typed.

    Ends the process with status 2 and a message if they contradict each other.
    """
    given = vars(arguments).copy()
    parser: argparse.ArgumentParser = given.pop("check")
    if given["days"] and (given["since"] or given["until"]):
        parser.error("argument --days: not beside --since or --until")
    if given["columns"]:
        _check_columns(given, parser)
    since, until = given.pop("days") or (given["since"], given["until"])
    if since and until and since > until:
        parser.error(f"the first day, {since}, is after the last, {until}")
    if any(given[name] for name in PROPOSED_SETTINGS):
        given["proposed"] = given["proposed"] or given["acls"]
        if not given["proposed"]:
            parser.error("proposed settings need --acls, or --proposed: who is allowed what else")
    needs = () if given["job"] == ALL else JOBS[given["job"]].needs
    missing = [name for name in needs if not given[name]]
    if missing:
        options = " and ".join(f"--{name}" for name in missing)
        or_else = ", or a proposed setting" if missing == ["proposed"] else ""
        parser.error(f"{given['job']} needs {options}{or_else}")
    problem = impossible(given["fail_on"], _running(given))
    if problem:
        parser.error(problem)
    if given["proposed_broker_listener"] and not given["proposed_broker_users"]:
        parser.error("--proposed-broker-listener is for --proposed-broker-user")
    if given["broker_users"] and not given["broker_listener"]:
        parser.error("--broker-user needs --broker-listener NAME, on which they may do everything")
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.items()
        if key in AuditOptions.__dataclass_fields__
    }
    fields |= {
        "since": since,
        "until": until,
        "spark": dict(given["spark"]),
        "job_options": {name: own for name in JOBS if (own := _fields(name, given))},
        "command": shlex.join(command),
    }
    return AuditOptions(**fields)


def _check_columns(given: Mapping[str, Any], parser: argparse.ArgumentParser) -> None:
    if given["form"] or given["pattern"]:
        parser.error("argument --columns: not beside --form or --pattern, which are for lines")
    if given["job"] == ingest.JOB.name:
        parser.error("argument --columns: the other jobs read such tables, ingest gathers logs")


def _running(given: Mapping[str, Any]) -> list[str]:
    """The jobs that will run."""
    if given["job"] != ALL:
        return [given["job"]]
    return [name for name, job in JOBS.items() if all(given[each] for each in job.needs)]


def _add(group: Any, option: Option) -> None:
    if option.read is None:
        how: dict[str, Any] = {"action": "store_const", "const": option.flag}
    else:
        how = {"type": option.read, "metavar": option.shown}
        if option.many:
            how["action"] = "extend"
    group.add_argument(f"--{option.name}", dest=_dest(option), help=option.does, **how)


def _dest(option: Option) -> str:
    # No field of AuditOptions, and no other argument, has such a name.
    return f"--{option.name}"


def _fields(job: str, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a job's options that were given."""
    found = {option.field: given.get(_dest(option)) for option in JOBS[job].arguments}
    return {field: value for field, value in found.items() if value is not None}


def _shared() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_log(parser.add_argument_group("the log"))
    add_rules(parser)
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--output", metavar="DIR", required=True, help="where tables and the report are written"
    )
    run.add_argument(
        "--fail-on",
        metavar="NAME[=MOST],...",
        type=bounds,
        action="extend",
        default=[],
        help="end with status 3, when all is written, if there are more than MOST (default: 0) of: "
        + ", ".join(ALARMS),
    )
    run.add_argument(
        "--engine",
        choices=tuple(Engine),
        default=Engine.AUTO,
        help="what decides: this process alone (local), Spark, or (auto, the default) this process "
        "where it can and the log is no larger than --local-bytes",
    )
    run.add_argument(
        "--local-bytes",
        metavar="SIZE",
        type=_size,
        default=LOCAL_BYTES,
        help="up to which size of the log --engine auto does without Spark, such as 500M; a "
        "compressed file counts ten times (default: 200M)",
    )
    run.add_argument(
        "--master",
        metavar="URL",
        help="the Spark cluster; without it this machine, or what spark-submit says",
    )
    run.add_argument(
        "--spark",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of Spark, such as spark.driver.memory=6g; may be given several times",
    )
    return parser


def _add_log(group: Any) -> None:
    group.add_argument(
        "--input",
        dest="inputs",
        metavar="PATH",
        nargs="+",
        action="extend",
        required=True,
        help="log files, directories of them (.gz is read too) or URLs that Spark has a connector "
        "for; or a directory that the job ingest wrote. The job ingest also reads a topic, "
        "kafka://HOST:PORT/TOPIC, with Spark's Kafka connector",
    )
    group.add_argument(
        "--form",
        choices=("jsonl", "kafka"),
        help="our own audit log, or Kafka's authorizer log; without it, each file as it looks",
    )
    group.add_argument(
        "--pattern",
        metavar="PATTERN",
        type=_pattern,
        help="the conversion pattern of a Kafka's log in log4j's configuration, such as "
        "'%%d{ISO8601} %%p [%%t] %%c: %%m%%n'; without it, as the content looks",
    )
    group.add_argument(
        "--columns",
        metavar="WHAT=COLUMN,...",
        type=_columns,
        help="the inputs are Parquet that somebody else wrote (or Delta or Iceberg tables, with "
        "Spark's connector), with these columns, such as principal=user,operation=op. WHAT is "
        f"{', '.join(REQUIRED)}; and, where there are some, {', '.join(OPTIONAL)}",
    )
    group.add_argument(
        "--cluster",
        metavar="NAME",
        type=_cluster,
        help="look at this cluster alone; for a Kafka's log, which does not tell, its name",
    )
    group.add_argument(
        "--zone",
        metavar="NAME",
        type=_zone,
        default="UTC",
        help="the time zone of the clock of the broker that wrote a Kafka's log, such as "
        "Europe/Berlin (default: UTC)",
    )
    group.add_argument(
        "--days",
        metavar="FROM..TO",
        type=_days,
        help="the days (UTC) to look at, such as 2026-01-01..2026-01-31",
    )
    group.add_argument("--since", metavar="DAY", type=_day, help="the first day (UTC) to look at")
    group.add_argument("--until", metavar="DAY", type=_day, help="the last day (UTC) to look at")


_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15})([kMG]?)", text, re.ASCII | re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes such as 500M, or 2G")
    return int(match[1]) * _UNITS[match[2].lower()]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        # The text is not shown, because it may hold a password.
        raise argparse.ArgumentTypeError("expected spark.NAME=VALUE")
    return name, value


def _cluster(text: str) -> str:
    if not is_cluster(text):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} cannot be the name of a cluster: it is empty, has a NUL, "
            "or is too long for a directory"
        )
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, OSError, ValueError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time zone known here, such as UTC or Europe/Berlin"
        ) from None
    return text


def _pattern(text: str) -> str:
    try:
        compiled(text)
    except PatternError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _columns(text: str) -> Columns:
    try:
        return columns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day such as 2026-01-31") from None


def _days(text: str) -> tuple[date, date]:
    first, dots, last = text.partition("..")
    if not dots:
        raise argparse.ArgumentTypeError("expected FROM..TO, such as 2026-01-01..2026-01-31")
    return _day(first), _day(last)
