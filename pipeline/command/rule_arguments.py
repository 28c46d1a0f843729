"""The arguments for sets of ACLs, and for settings of brokers, in force and proposed."""

from __future__ import annotations

import argparse
import re
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
            help=f"{does}: a policy file, or what kafka-acls.sh --list printed"
            + (", or a broker to ask" if where != "FILE" else ""),
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


def _add_proposed(group: Any) -> None:
    group.description = (
        "For the job what-if: settings in place of those in force. Without --proposed they are "
        "tried with the ACLs of --acls."
    )
    group.add_argument(
        "--proposed-properties",
        metavar="[CLUSTER=]FILE",
        type=_given,
        action="append",
        default=[],
        help="a server.properties with all the settings that --properties takes",
    )
    for name in ("super", "broker"):
        group.add_argument(
            f"--proposed-{name}-user",
            dest=f"proposed_{name}_users",
            metavar="[CLUSTER=]Type:name",
            type=_proposed_principal,
            action="append",
            default=[],
            help=f"in place of all {name} users; may be given several times; or {NOBODY}",
        )
    group.add_argument(
        "--proposed-broker-listener",
        metavar="NAME",
        type=str.upper,
        help="the listener of these broker users, if it is not the one now",
    )
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


def _flag(text: str) -> tuple[str | None, bool]:
    match = _CLUSTER.fullmatch(text)
    cluster, value = (match[1], match[2]) if match else (None, text)
    if value not in ("true", "false"):
        raise argparse.ArgumentTypeError("expected true, false, CLUSTER=true or CLUSTER=false")
    return cluster, value == "true"


def _proposed_principal(text: str) -> Given:
    match = _CLUSTER.fullmatch(text)
    cluster, value = (match[1], match[2]) if match else (None, text)
    return Given(cluster, NOBODY) if value == NOBODY else _given_principal(text)


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
