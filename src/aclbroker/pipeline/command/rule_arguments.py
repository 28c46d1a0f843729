"""The arguments for sets of ACLs, and for settings of brokers, in force and proposed."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Final

from aclbroker.pipeline.command.options import Given
from aclbroker.pipeline.command.proposed import NOBODY

PROPOSED_SETTINGS: Final = (
    *("proposed_properties", "proposed_super_users", "proposed_broker_users"),
    *("proposed_allow_everyone", "proposed_cidr"),
)
"""The names of the arguments for settings to try."""

# A cluster's id or name, which no path with a directory, URL or principal can be mistaken for.
_CLUSTER: Final = re.compile(r"([^:/=]+)=(.*)", re.DOTALL)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add all of them, in groups."""
    rules = parser.add_argument_group("the rules")
    _add_sets(rules)
    _add_settings(rules)
    _add_proposed(parser.add_argument_group("the settings to try"))


def _add_sets(group: Any) -> None:
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
            help=f"{does}: a policy file, a list of kafka-acls.sh, or a file of another tool"
            + (", or a broker to ask" if where != "FILE" else "")
            + "; also sqlite:///FILE, a store, and kraft:///DIR, a controller's metadata log",
        )
    group.add_argument(
        "--history",
        metavar="[CLUSTER=]sqlite:///FILE",
        type=_given,
        action="append",
        default=[],
        help="the store of a broker, or a backup of it, with the history of its ACLs, for the job "
        "point-in-time; a broker may be using it; also kafka://HOST:PORT/TOPIC, a store that is a "
        "topic",
    )
    group.add_argument(
        "--topics",
        metavar="[CLUSTER=]FILE",
        type=_given,
        action="append",
        default=[],
        help="the topics that exist, one a line, as kafka-topics.sh --list prints them: the job "
        "recommend counts what a prefix would newly allow among them and those in the log",
    )
    group.add_argument(
        "--command-config",
        metavar="FILE",
        help="a Kafka client's properties file, to ask a broker for its ACLs, or to read a topic",
    )


def _add_settings(group: Any) -> None:
    _add_properties(
        group,
        "",
        "a broker's server.properties, to take super.users, broker.users, their listener and "
        "allow.everyone.if.no.acl.found from",
    )
    _add_users(group, "", "super", "a principal who may do everything", _given_principal)
    of_brokers = "a principal who may do so on the brokers' listener"
    _add_users(group, "", "broker", of_brokers, _given_principal)
    _add_listener(group, "", "that listener")
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


def _add_proposed(group: Any) -> None:
    group.description = (
        "For the job what-if: settings in place of those in force. Without --proposed they are "
        "tried with the ACLs of --acls."
    )
    does = "a server.properties with all the settings that --properties takes"
    _add_properties(group, _PROPOSED, does)
    for kind in ("super", "broker"):
        does = f"in place of all {kind} users, or {NOBODY}"
        _add_users(group, _PROPOSED, kind, does, _proposed_principal)
    does = "the listener of these broker users, if it is not the one now"
    _add_listener(group, _PROPOSED, does)
    for name, dest in (
        ("allow-everyone-if-no-acl-found", "proposed_allow_everyone"),
        ("cidr", "proposed_cidr"),
    ):
        group.add_argument(
            f"--proposed-{name}",
            dest=dest,
            metavar="[CLUSTER=]true|false",
            type=_flag,
            action="append",
            default=[],
            help=f"in place of what is so with or without --{name}",
        )


_PROPOSED: Final = "proposed-"
"""What the names of options for settings to try begin with."""


def _add_properties(group: Any, prefix: str, does: str) -> None:
    group.add_argument(
        f"--{prefix}properties",
        metavar="[CLUSTER=]FILE",
        type=_given,
        action="append",
        default=[],
        help=does,
    )


def _add_users(group: Any, prefix: str, kind: str, does: str, read: Callable[[str], Given]) -> None:
    group.add_argument(
        f"--{prefix}{kind}-user",
        dest=f"{prefix.replace('-', '_')}{kind}_users",
        metavar="[CLUSTER=]Type:name",
        type=read,
        action="append",
        default=[],
        help=f"{does}; may be given several times",
    )


def _add_listener(group: Any, prefix: str, does: str) -> None:
    group.add_argument(f"--{prefix}broker-listener", metavar="NAME", type=str.upper, help=does)


def _of_cluster(text: str) -> tuple[str | None, str]:
    """Return the cluster that a value is said to be of, if any, and the value."""
    match = _CLUSTER.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


def _flag(text: str) -> tuple[str | None, bool]:
    cluster, value = _of_cluster(text)
    if value not in ("true", "false"):
        raise argparse.ArgumentTypeError("expected true, false, CLUSTER=true or CLUSTER=false")
    return cluster, value == "true"


def _proposed_principal(text: str) -> Given:
    cluster, value = _of_cluster(text)
    return Given(cluster, NOBODY) if value == NOBODY else _given_principal(text)


def _given(text: str) -> Given:
    cluster, value = _of_cluster(text)
    if not value:
        raise argparse.ArgumentTypeError("expected FILE or CLUSTER=FILE")
    return Given(cluster, value)


def _given_principal(text: str) -> Given:
    cluster, value = _of_cluster(text)
    if ":" not in value:
        raise argparse.ArgumentTypeError(
            "expected Type:name or CLUSTER=Type:name, such as User:admin"
        )
    return Given(cluster, value)
