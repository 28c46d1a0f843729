"""`aclbroker history`: who granted and revoked which ACLs, when, from where, at which position."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aclbroker.cli.rules_source import principal
from aclbroker.cli.words import TYPES_HELP, name_of, type_of

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclFilter
    from aclbroker.broker.stores.reading import PastChange
    from aclbroker.cli.answers import Answer

BROKER = "broker"
"""Who made a change that nobody asked for, as in the audit log."""


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--store",
        metavar="URL",
        help="the store, such as sqlite:///aclbroker.db or kafka://HOST:PORT/TOPIC",
    )
    source.add_argument(
        "--config",
        metavar="FILE",
        help="a broker's server.properties, whose store is read; the default settings without it",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a Kafka client's properties, to log in with where the store is a topic",
    )
    parser.add_argument(
        "--resource",
        dest="resources",
        metavar="TYPE:NAME",
        action="append",
        default=[],
        help="only ACLs that concern this resource, also by a prefix or '*'; TYPE is "
        f"{TYPES_HELP}; may be repeated",
    )
    parser.add_argument(
        "--principal", metavar="PRINCIPAL", type=principal, help="only ACLs of this principal"
    )
    parser.add_argument(
        "--by", metavar="PRINCIPAL", help=f"only what this principal changed, or '{BROKER}'"
    )


def told(options: argparse.Namespace) -> tuple[int, Answer]:
    """Return the changes that the options select. Raises SourceError, ValueError."""
    from aclbroker.cli.answers import Answer
    from aclbroker.cli.store_source import past_of

    filters = [_filter(text) for text in options.resources]
    history = past_of(options.store, options.config, options.command_config).history()
    rows, lines = [], []
    for change in history.changes:
        acl = change.binding
        if filters and not any(each.matches(acl) for each in filters):
            continue
        if options.principal is not None and acl.principal != options.principal:
            continue
        row = _row(change)
        if options.by is not None and row["by"] != options.by:
            continue
        rows.append(row)
        lines.append(_line(change, row))
    left_out = (f"aclbroker: {history.left_out}",) if history.left_out else ()
    return 0, Answer(rows, lines or ["no changes"], left_out)


def _filter(text: str) -> AclFilter:
    from aclbroker.acl.bindings import AclFilter, PatternType

    kind, colon, name = text.partition(":")
    resource_type = type_of(kind)
    named = name_of(resource_type, name if colon and name else None)
    return AclFilter(resource_type, named, PatternType.MATCH)


def _row(change: PastChange) -> dict[str, Any]:
    from aclbroker.broker.stores.times import written_time

    acl, origin = change.binding, change.origin
    by = None if origin is None else origin.principal or BROKER
    return {
        "position": change.position,
        "time": None if origin is None else written_time(origin.time_ms),
        "by": by,
        "from": None if origin is None else origin.host or None,
        "change": "revoked" if change.removed else "granted",
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def _line(change: PastChange, row: dict[str, Any]) -> str:
    from aclbroker.acl.acl_text import acl_text, word

    if change.origin is None:
        return f"{change.position} (not known who) {row['change']}: {acl_text(change.binding)}"
    where = f" from {word(row['from'])}" if row["from"] else ""
    who = f"{row['time']} {word(row['by'])}{where}"
    return f"{change.position} {who} {row['change']}: {acl_text(change.binding)}"
