"""How kafka-acls.sh prints patterns and ACLs: as Java's ``toString`` has them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from aclbroker.broker.acl.bindings import AclBinding, AclOperation


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


def binding_text(acl: AclBinding) -> str:
    """Return a whole ACL."""
    return f"(pattern={pattern_text(*acl[:3])}, entry={entry_text(*acl[3:])})"


def lines_of(entries: Iterable[tuple[str, str, IntEnum, IntEnum]]) -> str:
    """Return entries as lines, each behind a tab."""
    return "\n".join(f"\t{entry_text(*each)}" for each in entries)


def operations_text(operations: Iterable[AclOperation]) -> str:
    """Return operations as Java prints a set of them."""
    return f"[{', '.join(each.name for each in sorted(operations))}]"
