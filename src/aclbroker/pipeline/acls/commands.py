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

from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.operations import supported_operations
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.by_principal import AclsByPrincipal, Grouped, every

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
    title: str,
    add: Iterable[AclBinding] | AclsByPrincipal = (),
    remove: Iterable[AclBinding] | AclsByPrincipal = (),
) -> Iterator[str]:
    """Return the lines of a script that adds ACLs and then removes others.

    Of sets by principal no more is held than one principal's ACLs. ``title`` says in one line what
    it does. DENYs are added first and removed last, so that nothing is allowed in between that is
    not allowed before or after. Raises ValueError for an ACL that no broker would create, before
    the first line.
    """
    additions, removals = _Commands(add, denies_first=True), _Commands(remove, denies_first=False)
    yield _HEAD.format(title=" ".join(title.split()))
    if not (additions.are_ascii and removals.are_ascii):
        # Java reads its arguments in the encoding of the locale.
        yield "export LC_ALL=C.UTF-8\n"
    lost = 0
    for words, commands in (("--add", additions), ("--remove --force", removals)):
        for acl, reason in sorted(commands.impossible.items()):
            lost += 1
            yield f"# Not done ({words}), since {reason}: {acl_text(acl)}\n"
        for group in commands.groups():
            yield f"{_TOOL} {words} {_options(group)}\n"
    if lost:
        yield f"echo '{lost} ACLs are left to do by other means: see the comments above.' >&2\n"


class _Commands:
    """The ACLs of one half of a script, by those that come one after the other.

    ``impossible`` are those that the tool cannot express, with why not.
    """

    def __init__(self, acls: Iterable[AclBinding] | AclsByPrincipal, *, denies_first: bool) -> None:
        self.are_ascii = True
        self.impossible: dict[AclBinding, str] = {}
        self._acls = Grouped(acls) if isinstance(acls, Iterable) else acls
        permissions: set[AclPermission] = set()
        for acl in every(self._acls):
            permissions.add(acl.permission)
            self.are_ascii = self.are_ascii and _is_ascii(acl)
            reason = inexpressible_reason(acl)
            if reason is not None:
                self.impossible[acl] = reason
        self._permissions = sorted(permissions, reverse=not denies_first)

    def groups(self) -> Iterator[list[AclBinding]]:
        """Yield the ACLs that differ in their operation alone together, in their order."""
        for permission in self._permissions:
            for principal in sorted(self._acls.principals):
                theirs = [
                    acl
                    for acl in self._acls.of(principal)
                    if acl.permission is permission and acl not in self.impossible
                ]
                theirs.sort(key=_resource_and_host)
                for _, group in groupby(theirs, key=_resource_and_host):
                    yield list(group)


def _resource_and_host(acl: AclBinding) -> tuple[Any, ...]:
    return acl.resource_type, acl.resource_name, acl.pattern_type, acl.host


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
