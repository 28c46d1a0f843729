"""How kafka-acls.sh prints patterns and ACLs: as Java's ``toString`` has them.

A name may hold any character, also a line break, and Kafka's tool prints each unchanged. Here a
line with a character that is unsafe for terminals has escapes, and ends in `ESCAPED`. Kafka's tool
never prints that end, so the reader of listings knows which lines have escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from aclbroker.acl.bindings import AclBinding, AclOperation
from aclbroker.terminal import ESCAPED, is_encodable, is_plain, shown


def pattern_text(resource_type: IntEnum, name: str, pattern_type: IntEnum) -> str:
    """Return a resource pattern, or a filter of them."""
    return (
        f"ResourcePattern(resourceType={resource_type.name}, name={name}, "
        f"patternType={pattern_type.name})"
    )


def entry_text(principal: str, host: str, operation: IntEnum, permission: IntEnum) -> str:
    """Return what an ACL says about its resource."""
    return (
        f"(principal={principal}, host={host}, operation={operation.name}, "
        f"permissionType={permission.name})"
    )


def line_of(form: str, *names: str) -> str:
    """Return a line from a template such as ``ACLs for principal `{}```, with names in it."""
    if all(is_plain(name) and is_encodable(name) for name in names):
        return form.format(*names)
    # The reader refuses a line with two ``, host=`` as ambiguous, so a name has an escape there.
    escaped = (shown(name).replace(", host=", "\\x2c host=") for name in names)
    return form.format(*escaped) + ESCAPED


def pattern_line(form: str, resource_type: IntEnum, name: str, pattern_type: IntEnum) -> str:
    """Return a line from a template with a ``{}`` for a resource pattern."""
    return line_of(form.format(pattern_text(resource_type, "{}", pattern_type)), name)


def binding_line(form: str, acl: AclBinding) -> str:
    """Return a line from a template with a ``{}`` for a whole ACL."""
    pattern = pattern_text(acl.resource_type, "{}", acl.pattern_type)
    entry = entry_text("{}", "{}", acl.operation, acl.permission)
    text = f"(pattern={pattern}, entry={entry})"
    return line_of(form.format(text), acl.resource_name, acl.principal, acl.host)


def entry_lines(entries: Iterable[tuple[str, str, IntEnum, IntEnum]]) -> Iterator[str]:
    """Yield entries as lines, each behind a tab."""
    for principal, host, operation, permission in entries:
        yield line_of(f"\t{entry_text('{}', '{}', operation, permission)}", principal, host)


def operations_text(operations: Iterable[AclOperation]) -> str:
    """Return operations as Java prints a set of them."""
    return f"[{', '.join(each.name for each in sorted(operations))}]"
