"""Sets of ACLs as a shell script of `kafka-acls.sh` commands, for clusters that know nothing else.

The names in ACLs come from clients and may hold anything: each value is quoted for a POSIX shell,
and stands behind its option as a word of its own, where the tool takes it for the value even if it
begins with a dash. What the tool cannot express is told in the script, and left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.acl.operations import supported_operations
from aclbroker.pipeline.acls.acl_text import acl_text

_RESOURCE_OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}
_OPERATION_WORDS: Final = {
    each: "".join(part.capitalize() for part in each.name.split("_")) for each in AclOperation
}
_BLANK: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` takes off both ends."""

# The option and its value are one word here, so that shells which do not split words agree.
_TOOL: Final = (
    'kafka-acls.sh --bootstrap-server "$BOOTSTRAP" '
    '${COMMAND_CONFIG:+"--command-config=$COMMAND_CONFIG"}'
)

_HEAD: Final = """\
#!/bin/sh
# {title}
#
# BOOTSTRAP=host:port names a broker; COMMAND_CONFIG=file, if set, has the client's login.
# kafka-acls.sh must be on PATH. Each command starts a JVM, about a second. Commands may run again:
# an ACL that is there already, or gone already, is no error. The first error ends the script.
set -eu
: "${{BOOTSTRAP:?must be host:port of a broker}}"
"""


def script(
    title: str, add: Iterable[AclBinding] = (), remove: Iterable[AclBinding] = ()
) -> Iterator[str]:
    """Return the lines of a script that adds ACLs and then removes others.

    ``title`` says in one line what it does. DENYs are added first and removed last, so that nothing
    is allowed in between that is not allowed before or after. Raises ValueError for an ACL that no
    broker would create.
    """
    additions, removals = list(add), list(remove)
    yield _HEAD.format(title=" ".join(title.split()))
    if not all(map(_is_ascii, (*additions, *removals))):
        # Java reads its arguments in the encoding of the locale.
        yield "export LC_ALL=C.UTF-8\n"
    lost = 0
    for words, acls, denies_first in (
        ("--add", additions, True),
        ("--remove --force", removals, False),
    ):
        possible = []
        for acl in sorted(set(acls)):
            reason = inexpressible_reason(acl)
            if reason is None:
                possible.append(acl)
            else:
                lost += 1
                yield f"# Not done ({words}), since {reason}: {acl_text(acl)}\n"
        for group in _groups(possible, denies_first=denies_first):
            yield f"{_TOOL} {words} {_options(group)}\n"
    if lost:
        yield f"echo '{lost} ACLs are left to do by other means: see the comments above.' >&2\n"


def inexpressible_reason(acl: AclBinding) -> str | None:
    """Tell why `kafka-acls.sh` of Kafka 4.3 cannot add or remove an ACL; None if it can.

    Raises ValueError for an ACL that no broker would create.
    """
    reason = invalid_reason(acl)
    if reason is not None:
        raise ValueError(reason)
    kind, operation = acl.resource_type, acl.operation
    if operation is not AclOperation.ALL and operation not in supported_operations(kind):
        return f"kafka-acls.sh knows no {operation.name} of a {kind.name}"
    if kind is ResourceType.CLUSTER and acl.pattern_type is not PatternType.LITERAL:
        return "kafka-acls.sh takes the cluster as LITERAL alone"
    for field in ("resource_name", "principal", "host"):
        text: str = getattr(acl, field)
        if "\0" in text:
            return f"no argument can hold the NUL in its {field.replace('_', ' ')}"
        trims = field != "resource_name" or kind is not ResourceType.TRANSACTIONAL_ID
        if trims and text != text.strip(_BLANK):
            return f"kafka-acls.sh cuts the blanks around its {field.replace('_', ' ')}"
    return None


def _groups(acls: list[AclBinding], *, denies_first: bool) -> Iterator[list[AclBinding]]:
    """Return the ACLs that differ in their operation alone together."""

    def key(acl: AclBinding) -> tuple[Any, ...]:
        is_deny = acl.permission is AclPermission.DENY
        what = acl.resource_type, acl.resource_name, acl.pattern_type
        return is_deny is not denies_first, acl.principal, *what, acl.host

    for _, group in groupby(sorted(acls, key=key), key):
        yield list(group)


def _options(acls: list[AclBinding]) -> str:
    """Return the options for ACLs that differ in their operation alone."""
    first = acls[0]
    word = "allow" if first.permission is AclPermission.ALLOW else "deny"
    options = [f"--{word}-principal", first.principal]
    if first.host != WILDCARD:
        options += [f"--{word}-host", first.host]
    for operation in sorted(acl.operation for acl in acls):
        options += ["--operation", _OPERATION_WORDS[operation]]
    if first.resource_type is ResourceType.CLUSTER:
        options.append("--cluster")
    else:
        options += [_RESOURCE_OPTIONS[first.resource_type], first.resource_name]
    if first.pattern_type is PatternType.PREFIXED:
        options += ["--resource-pattern-type", "prefixed"]
    return shlex.join(options)


def _is_ascii(acl: AclBinding) -> bool:
    return acl.resource_name.isascii() and acl.principal.isascii() and acl.host.isascii()
