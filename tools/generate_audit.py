"""Writes synthetic audit data: the log of a made-up cluster, its ACLs, and what is true of both.

    python tools/generate_audit.py OUTPUT --events 1000000 --days 30 --seed 7

OUTPUT/log/ holds the log, as our JSON Lines (docs/audit.md) or, with --format kafka, as the text
that a real Kafka 4.3 writes, in UTC and without escapes. OUTPUT/acls.yaml holds the ACLs that
decided (docs/policy.md), proposed.yaml a changed set to ask what it would break, and truth.json the
counts to compare results with. The same options and seed give the same bytes. Every event was
decided by broker.acl. Memory depends on the size of the cluster, not on the number of events.

In truth.json, `events` counts the events that the log reliably tells, `lines` its physical lines,
and `unreliable_lines` those that must not be taken for events. `forged` counts the attempts by kind
(see tools/audit_data/forgery.py): each claims that the `victim` was allowed something, who in truth
never asked. A `newline` attempt is a true event of the `forger`, told on one line, and counted in
`events`. A `complete` one has a line that looks like any other; only its neighbours give it away.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aclbroker.acl.files.policy import Policy, write_policy
from tools.audit_data.forgery import FORGER, VICTIM
from tools.audit_data.lines import CLUSTER_ID, Form, JsonLines, KafkaText
from tools.audit_data.log import write_log
from tools.audit_data.traffic import Traffic
from tools.audit_data.world import SUPER_USER, Sizes, World, make_acls, propose

FORMS: dict[str, type[Form]] = {"jsonl": JsonLines, "kafka": KafkaText}


def main(arguments: list[str] | None = None) -> None:
    """Write what the command line asks for; end the program with a message if that fails."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        truth = generate(options)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(
        f"{truth['events']} events ({truth['allowed']} allowed, {truth['denied']} denied) "
        f"in {len(truth['files'])} files, {truth['acls']} ACLs: {options.output}"
    )


def generate(options: argparse.Namespace) -> dict[str, Any]:
    """Write everything, and return what truth.json holds. Raises OSError, ValueError."""
    if options.group_members and options.format == "kafka":
        raise ValueError("Kafka's log names one principal a session: --group-members needs jsonl")
    sizes = Sizes(options.principals, options.topics, options.groups, options.acls)
    world, form = World(sizes), FORMS[options.format]()
    acls = make_acls(world, options.seed)
    traffic = Traffic(
        world,
        acls,
        form,
        options.seed,
        ephemeral_hosts=options.ephemeral_hosts,
        group_members=options.group_members,
    )
    paths = _log_paths(options)
    truth = write_log(
        paths,
        traffic,
        form,
        events=options.events,
        first_day=options.first_day,
        days=options.days,
        forged=options.forged,
        seed=options.seed,
    )
    write_policy(Policy(acls, CLUSTER_ID), options.output / "acls.yaml")
    proposed = propose(acls, world, options.seed)
    write_policy(Policy(proposed, CLUSTER_ID), options.output / "proposed.yaml")
    found = {
        "format": options.format,
        "seed": options.seed,
        "cluster_id": CLUSTER_ID,
        "super_users": [SUPER_USER],
        "forger": FORGER,
        "victim": VICTIM,
        "acls": len(acls),
        "proposed_acls": len(proposed),
        "files": [path.name for path in paths],
        "ephemeral_hosts": traffic.ephemeral_events,
        **truth.as_json(),
    }
    (options.output / "truth.json").write_text(json.dumps(found, indent=2) + "\n")
    return found


def _log_paths(options: argparse.Namespace) -> list[Path]:
    directory = options.output / "log"
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty: its files would be taken for this log's")
    ending = ("jsonl" if options.format == "jsonl" else "log") + (".gz" if options.gzip else "")
    return [directory / f"audit-{number:05}.{ending}" for number in range(options.files)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write synthetic audit data.", allow_abbrev=False)
    parser.add_argument("output", type=Path, help="the directory to write to")
    parser.add_argument("--events", type=_number, default=1_000_000, help="(default: %(default)s)")
    parser.add_argument("--days", type=_number, default=30, help="(default: %(default)s)")
    parser.add_argument(
        "--first-day", type=date.fromisoformat, default=date(2026, 1, 1), help="YYYY-MM-DD, in UTC"
    )
    parser.add_argument("--format", choices=list(FORMS), default="jsonl")
    parser.add_argument("--files", type=_number, default=4, help="(default: %(default)s)")
    parser.add_argument("--gzip", action="store_true", help="compress the files of the log")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument(
        "--forged", type=_count, default=0, help="attempts to forge lines, on top of the events"
    )
    parser.add_argument(
        "--ephemeral-hosts",
        type=_share,
        default=0.0,
        help="the share (0 to 1) of events from a host of their own",
    )
    parser.add_argument(
        "--group-members",
        type=_share,
        default=0.0,
        help="the share (0 to 1) of principals with a second principal in their sessions",
    )
    for field, default in vars(Sizes()).items():
        parser.add_argument(
            f"--{field}", type=_number, default=default, help="(default: %(default)s)"
        )
    return parser


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return share


if __name__ == "__main__":
    main()
