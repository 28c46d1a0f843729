"""Command lines of `aclbroker acls` that add or remove given ACLs, quoted for a POSIX shell.

Names in ACLs come from clients and may hold anything. A line is given only if the command reads it
as these very ACLs.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Final

from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.cli.acls.checks import check
from aclbroker.cli.acls.options import Options, UsageError, parse
from aclbroker.cli.acls.wanted import NAMED, Wanted, to_add, to_remove

_OPTIONS: Final = {kind: f"--{option}" for option, kind in NAMED}
_WORDS: Final = {
    each: "".join(part.capitalize() for part in each.name.split("_")) for each in AclOperation
}

ANY_SERVER: Final = '--bootstrap-server "$BOOTSTRAP"'
"""Options for a cluster that is not known, quoted: the variable has its HOST:PORT."""


def add_line(acls: Sequence[AclBinding], server: str) -> str:
    """Return the line that adds ACLs which differ in their operation alone.

    ``server`` are options that name the cluster, quoted. Raises ValueError with the reason if the
    command cannot say it.
    """
    return _line(["--add"], to_add, acls, server)


def remove_line(acls: Sequence[AclBinding], server: str) -> str:
    """Return the line that removes ACLs, without asking; as `add_line`."""
    return _line(["--remove", "--force"], to_remove, acls, server)


def _line(
    action: Sequence[str],
    read: Callable[[Options], Wanted],
    acls: Sequence[AclBinding],
    server: str,
) -> str:
    words = [*action, *_words(acls)]
    line = f"aclbroker acls {server} {shlex.join(words)}"
    if not line.isprintable():
        raise ValueError("no command line shows the unprintable characters in it")
    options = parse(["--bootstrap-server", "any", *words])
    try:
        check(options)
        wanted = read(options)
    except UsageError as error:
        raise ValueError(f"aclbroker acls, as Kafka's tool, says: {error}") from None
    taken = {resource.binding(each) for resource, entries in wanted.items() for each in entries}
    if taken != set(acls):
        raise ValueError("aclbroker acls, as Kafka's tool, would take it for another one")
    return line


def _words(acls: Sequence[AclBinding]) -> list[str]:
    first = acls[0]
    word = "allow" if first.permission == AclPermission.ALLOW else "deny"
    words = [f"--{word}-principal", first.principal]
    if first.host != WILDCARD:
        words += [f"--{word}-host", first.host]
    for acl in acls:
        words += ["--operation", _WORDS[acl.operation]]
    words.append(_OPTIONS[first.resource_type])
    if first.resource_type is not ResourceType.CLUSTER:
        words.append(first.resource_name)
    if first.pattern_type == PatternType.PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return words
