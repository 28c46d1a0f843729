"""The arguments of `aclbroker audit` and of `pipeline/__main__.py`; nothing of Spark is imported.

Options of a single job have the names of the fields of that job's options, with hyphens.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from pipeline.options import AuditOptions, Given

ALL: Final = "all"
"""The job that runs every other one that its inputs allow."""

# A cluster's id or name, which no path with a directory, URL or principal can be mistaken for.
_CLUSTER: Final = re.compile(r"([^:/=]+)=(.*)", re.DOTALL)


class Option(NamedTuple):
    """An option of one job: its name, how its value is read, its name in the help, and the help."""

    flag: str
    read: Callable[[str], Any] | None
    shown: str
    does: str

    @property
    def field(self) -> str:
        """The field of the job's options that it sets."""
        return self.flag.replace("-", "_")


class Job(NamedTuple):
    """A job: what it answers, which sets of ACLs it cannot do without, and its own options."""

    does: str
    needs: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


JOBS: Final[dict[str, Job]] = {
    "ingest": Job("read logs into the tables that all jobs can read instead of the logs"),
    "matrix": Job("tell who used what, how often and when"),
    "unused": Job("find the ACLs that can go, with the proof by a replay", ("acls",)),
    "redundant": Job("find ACLs that others cover, duplicates and contradictions", ("acls",)),
    "denials": Job("tell what was denied, and the smallest ACL that would allow it", ("acls",)),
    "what-if": Job("replay the log under a proposed set of ACLs", ("acls", "proposed")),
    "recommend": Job("find the smallest set of ACLs that allows what was used", ("acls",)),
    "diff": Job("compare two sets of ACLs, and replay the log under both", ("acls", "other")),
    "sessions": Job("find new hosts, first uses and sudden peaks"),
    ALL: Job("run every job that the given files allow, with one report"),
}


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the jobs with their options to the parser of the command."""
    shared = _shared()
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")
    for name, job in JOBS.items():
        own = jobs.add_parser(
            name,
            help=job.does,
            description=f"{job.does[0].upper()}{job.does[1:]}.",
            parents=[shared],
            allow_abbrev=False,
        )
        for owner in JOBS if name == ALL else (name,):
            if JOBS[owner].options:
                group = own.add_argument_group(f"options of {owner}")
                for option in JOBS[owner].options:
                    _add(group, owner, option)
        own.set_defaults(check=own)


def audit_options(arguments: argparse.Namespace, command: Sequence[str]) -> AuditOptions:
    """Return the options of parsed arguments; ``command`` are the words the user typed.

    Ends the process with status 2 and a message if they contradict each other.
    """
    given = vars(arguments).copy()
    parser: argparse.ArgumentParser = given.pop("check")
    if given["days"] and (given["since"] or given["until"]):
        parser.error("argument --days: not beside --since or --until")
    since, until = given.pop("days") or (given["since"], given["until"])
    if since and until and since > until:
        parser.error(f"the first day, {since}, is after the last, {until}")
    missing = [name for name in JOBS[given["job"]].needs if not given[name]]
    if missing:
        parser.error(f"{given['job']} needs {' and '.join(f'--{name}' for name in missing)}")
    if given["broker_users"] and not given["broker_listener"]:
        parser.error("--broker-user needs --broker-listener NAME, on which they may do everything")
    own: dict[str, dict[str, Any]] = {}
    for key in [key for key in given if "." in key]:
        value = given.pop(key)
        if value is not None:
            job, _, field = key.partition(".")
            own.setdefault(job, {})[field] = value
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.items()
        if key in AuditOptions.__dataclass_fields__
    }
    fields |= {
        "since": since,
        "until": until,
        "spark": dict(given["spark"]),
        "job_options": own,
        "command": shlex.join(command),
    }
    return AuditOptions(**fields)


def _add(group: Any, owner: str, option: Option) -> None:
    dest = f"{owner}.{option.field}"
    if option.read is None:
        group.add_argument(
            f"--{option.flag}", dest=dest, action="store_true", default=None, help=option.does
        )
    else:
        group.add_argument(
            f"--{option.flag}", dest=dest, type=option.read, metavar=option.shown, help=option.does
        )


def _shared() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_log(parser.add_argument_group("the log"))
    _add_rules(parser.add_argument_group("the rules"))
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--output", metavar="DIR", required=True, help="where tables and the report are written"
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
        "for; or a directory that the job ingest wrote",
    )
    group.add_argument(
        "--form",
        choices=("jsonl", "kafka"),
        help="our own audit log, or Kafka's authorizer log; without it, as the content looks",
    )
    group.add_argument(
        "--cluster",
        metavar="NAME",
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


def _add_rules(group: Any) -> None:
    sets = {
        "acls": "the ACLs in force",
        "proposed": "the ACLs to try",
        "other": "the ACLs to compare with: of another cluster, or another day",
        "earlier": "the ACLs as they were when the log begins",
    }
    for name, does in sets.items():
        where = "FILE|kafka://HOST:PORT" if name in ("acls", "other") else "FILE"
        group.add_argument(
            f"--{name}",
            metavar=f"[CLUSTER=]{where}",
            type=_given,
            action="append",
            default=[],
            help=f"{does}: a policy file, or what kafka-acls.sh --list printed"
            + (", or a broker to ask" if where != "FILE" else ""),
        )
    group.add_argument(
        "--command-config",
        metavar="FILE",
        help="a Kafka client's properties file, to ask a broker for its ACLs",
    )
    group.add_argument(
        "--properties",
        metavar="[CLUSTER=]FILE",
        type=_given,
        action="append",
        default=[],
        help="a broker's server.properties, to take super.users, broker.users, their listener and "
        "allow.everyone.if.no.acl.found from",
    )
    for name, does in (
        ("super", "may do everything"),
        ("broker", "may do so on the brokers' listener"),
    ):
        group.add_argument(
            f"--{name}-user",
            dest=f"{name}_users",
            metavar="[CLUSTER=]Type:name",
            type=_given_principal,
            action="append",
            default=[],
            help=f"a principal who {does}; may be given several times",
        )
    group.add_argument("--broker-listener", metavar="NAME", type=str.upper, help="that listener")
    group.add_argument(
        "--allow-everyone-if-no-acl-found",
        dest="open_clusters",
        metavar="CLUSTER",
        nargs="?",
        action="append",
        default=[],
        help="what no ACL is about is open to all, in this cluster or in all of them",
    )
    group.add_argument(
        "--cidr",
        action="store_true",
        help="hosts such as 10.0.0.0/8 are subnets, as with aclbroker.acl.host.cidr=true",
    )


def _given(text: str) -> Given:
    match = _CLUSTER.fullmatch(text)
    cluster, value = (match[1], match[2]) if match else (None, text)
    if not value:
        raise argparse.ArgumentTypeError("expected FILE or CLUSTER=FILE")
    return Given(cluster, value)


def _given_principal(text: str) -> Given:
    match = _CLUSTER.fullmatch(text)
    cluster, value = (match[1], match[2]) if match else (None, text)
    if ":" not in value:
        raise argparse.ArgumentTypeError(
            "expected Type:name or CLUSTER=Type:name, such as User:admin"
        )
    return Given(cluster, value)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        # The text is not shown, because it may hold a password.
        raise argparse.ArgumentTypeError("expected spark.NAME=VALUE")
    return name, value


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, OSError, ValueError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time zone known here, such as UTC or Europe/Berlin"
        ) from None
    return text


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
