"""Reads the output of ``kafka-acls.sh --list`` since Kafka 2.2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.files.policy import Policy, PolicyError
from aclbroker.terminal import meant

_FOR_PRINCIPAL: Final = "ACLs for principal `"
LIST_HEADS: Final = ("Current ACLs for resource `", _FOR_PRINCIPAL)
"""The beginnings of a list's first line, for all versions of Kafka."""

# As Kafka 2.0 and later print ResourcePattern and AccessControlEntry. A name may hold any
# text, so the pattern takes all text between the fixed words around it.
_PATTERN: Final = re.compile(
    r"Current ACLs for resource `ResourcePattern\(resourceType=([A-Z_]+), name=(.*), "
    r"patternType=([A-Z]+)\)`:( \(escaped\))?"
)
_ENTRY: Final = re.compile(
    r"\(principal=(.*), host=(.*), operation=([A-Z_]+), permissionType=([A-Z]+)\)( \(escaped\))?"
)


def read_listing(text: str, source: str) -> Policy:
    """Return the ACLs of a list without duplicates. Raises PolicyError."""
    return Policy(list(dict.fromkeys(parse_listing(text, source))))


def parse_listing(text: str, source: str) -> Iterator[AclBinding]:
    """Yield the ACLs that ``kafka-acls.sh --list`` printed.

    Raises PolicyError for an ambiguous line. An ACL whose principal holds ``, host=`` has two
    readings, and a name with a line break takes several lines.
    """
    pattern: tuple[ResourceType, str, PatternType] | None = None
    # Not splitlines: it would also end a line at characters that a name may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        content = line.strip(" \t\r")
        if not content:
            continue
        try:
            if content.startswith("("):
                yield _entry(content, pattern)
            else:
                pattern = _pattern(content)
        except ValueError as error:
            raise PolicyError(f"{source}: line {number}: {error}") from None


def _pattern(line: str) -> tuple[ResourceType, str, PatternType]:
    match = _PATTERN.fullmatch(line)
    if match is None:
        if line.startswith(_FOR_PRINCIPAL):
            raise ValueError("a list of one principal's ACLs is not all of them; list without it")
        raise ValueError(
            "neither 'Current ACLs for resource `ResourcePattern(resourceType=..., name=..., "
            "patternType=...)`:' nor '(principal=..., host=..., operation=..., permissionType=...)'"
        )
    try:
        return ResourceType[match[1]], _name(match, 2), PatternType[match[3]]
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is unknown here") from None


def _entry(line: str, pattern: tuple[ResourceType, str, PatternType] | None) -> AclBinding:
    match = _ENTRY.fullmatch(line)
    if match is None or line.count(", host=") != 1:
        raise ValueError(
            "not one '(principal=..., host=..., operation=..., permissionType=...)'; write such an "
            "ACL into a policy file"
        )
    if pattern is None:
        raise ValueError("no line 'Current ACLs for resource ...' stands before this ACL")
    try:
        operation, permission = AclOperation[match[3]], AclPermission[match[4]]
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is unknown here") from None
    acl = AclBinding(*pattern, _name(match, 1), _name(match, 2), operation, permission)
    reason = invalid_reason(acl)
    if reason is not None:
        raise ValueError(reason)
    return acl


def _name(match: re.Match[str], group: int) -> str:
    """Return a name of a line, without escapes if the line is marked; raises ValueError."""
    return meant(match[group]) if match[match.re.groups] else match[group]
