"""Reads the output of ``kafka-acls.sh --list`` before Kafka 2.2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, PatternType
from aclbroker.acl.files.policy import Policy, PolicyError
from aclbroker.acl.files.words import acl_of

HEAD: Final = re.compile(r"Current ACLs for resource `([A-Za-z]+):(.*)`:")
"""A line with a resource. Kafka 2.0 and 2.1 print its pattern type before the name."""

_ENTRY: Final = re.compile(
    r"(.*) has (Allow|Deny) permission for operations: ([A-Za-z]+) from hosts: (\S*)"
)
_PERMISSION: Final = re.compile(" has (?:Allow|Deny) permission for operations: ")
_PATTERNS: Final = tuple(f"{each.name}:" for each in (PatternType.LITERAL, PatternType.PREFIXED))


class _Resource(NamedTuple):
    kind: str
    name: str

    @property
    def has_pattern(self) -> bool:
        return self.name.startswith(_PATTERNS)


def read_old_listing(text: str, source: str) -> Policy:
    """Return the ACLs of a list without duplicates. Raises PolicyError for an ambiguous line."""
    lines = [line.strip(" \t\r") for line in text.split("\n")]
    heads = [_Resource(*match.groups()) for line in lines if (match := HEAD.fullmatch(line))]
    if len({each.has_pattern for each in heads}) > 1:
        raise PolicyError(
            f"{source}: some resources have a pattern type before their name, and others have "
            "none: list the ACLs anew with kafka-acls.sh of Kafka 2.2 or later"
        )
    return Policy(list(dict.fromkeys(_acls(lines, source))))


def _acls(lines: list[str], source: str) -> Iterator[AclBinding]:
    resource: _Resource | None = None
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            if match := HEAD.fullmatch(line):
                resource = _Resource(*match.groups())
            else:
                yield _acl(line, resource)
        except ValueError as error:
            raise PolicyError(f"{source}: line {number}: {error}") from None


def _acl(line: str, resource: _Resource | None) -> AclBinding:
    match = _ENTRY.fullmatch(line)
    if match is None or len(_PERMISSION.findall(line)) != 1:
        raise ValueError(
            "neither 'Current ACLs for resource `Type:name`:' nor one 'PRINCIPAL has Allow "
            "permission for operations: OPERATION from hosts: HOST'"
        )
    if resource is None:
        raise ValueError("no line 'Current ACLs for resource ...' stands before this ACL")
    pattern, name = PatternType.LITERAL.name, resource.name
    if resource.has_pattern:
        pattern, _, name = name.partition(":")
    return acl_of(
        {
            "resource_type": resource.kind,
            "resource_name": name,
            "pattern_type": pattern,
            "principal": match[1],
            "host": match[4],
            "operation": match[3],
            "permission": match[2],
        }
    )
