"""Where Kafka's AclAuthorizer keeps ACLs in ZooKeeper, and what it writes there (KIP-11, KIP-290).

There is one node for each resource pattern, with all of its ACLs as JSON, and one node for each
change, which names the pattern that was changed. Names go into paths as they are. All of this is as
Kafka 3.9.1 has it; it knows no later form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from aclbroker.acl.patterns import Entry

LITERAL_ROOT: Final = "/kafka-acl"
EXTENDED_ROOT: Final = "/kafka-acl-extended"
_PREFIXED_ROOT: Final = f"{EXTENDED_ROOT}/prefixed"
LITERAL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_CHANGES: Final = "/kafka-acl-extended-changes"
CHANGE_PREFIX: Final = "acl_changes_"

_VERSION: Final = 1
_PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)


def _camel_case(name: str) -> str:
    return name.title().replace("_", "")


TYPE_NAMES: Final = {
    resource_type: _camel_case(resource_type.name)
    for resource_type in ResourceType
    if resource_type > ResourceType.ANY
}
"""The name of the directory of each resource type."""

_REFUSED: Final = re.compile(
    # What ZooKeeper refuses in a path. Characters beyond U+FFFF are surrogates to it.
    "[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)
_SINCE_KAFKA_4: Final = frozenset({AclOperation.TWO_PHASE_COMMIT})


def _root(pattern_type: PatternType) -> str:
    return LITERAL_ROOT if pattern_type == PatternType.LITERAL else _PREFIXED_ROOT


def directory(pattern_type: PatternType, resource_type: ResourceType) -> str:
    """Return the path of the directory of all patterns of these types."""
    return f"{_root(pattern_type)}/{TYPE_NAMES[resource_type]}"


def node_path(pattern: ResourcePattern) -> str:
    """Return the path of the node that has the ACLs of a pattern."""
    return f"{directory(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"


def acl_directories() -> list[tuple[PatternType, ResourceType]]:
    """Return of which types there are directories of patterns."""
    return [(pattern, resource) for pattern in _PATTERN_TYPES for resource in TYPE_NAMES]


def directories() -> list[str]:
    """Return the paths of all directories, parents first; Kafka makes the same."""
    return [
        LITERAL_ROOT,
        EXTENDED_ROOT,
        _PREFIXED_ROOT,
        *(directory(*types) for types in acl_directories()),
        LITERAL_CHANGES,
        EXTENDED_CHANGES,
    ]


def invalid_name(name: str) -> str | None:
    """Tell why no node can have a name; None if one can."""
    if "/" in name:
        return "a name with a slash, which separates nodes there"
    if name in (".", ".."):
        return f"the name {name}"
    found = _REFUSED.search(name)
    if found:
        return f"a name with the character U+{ord(found[0]):04X}"
    return None if name else "an empty name"


def is_unicode(text: str) -> bool:
    """Tell whether a text can be written: it has no lone surrogates."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def refusal(binding: AclBinding) -> str | None:
    """Tell why an ACL cannot be kept in ZooKeeper; None if it can.

    Kafka's AclAuthorizer answers a name with a slash with an error, too. A two-phase commit
    (KIP-939) is no operation to a broker that has its ACLs there: it would write another name into
    the node when it changes it.
    """
    reason = invalid_name(binding.resource_name)
    if reason is not None:
        return f"ACLs are kept in ZooKeeper, which cannot have {reason}."
    if binding.operation in _SINCE_KAFKA_4:
        name = binding.operation.name
        return f"ACLs are kept in ZooKeeper, and brokers that use it do not know {name}."
    return None


class UnreadableNode(ValueError):
    """What a node has is not what Kafka writes; the text says why."""


class NodeAcls(NamedTuple):
    """What the node of a pattern has.

    ``kept`` are entries as they stand that allow an operation that is not known. They have no
    effect, in Kafka either, and are written again with the others.
    """

    entries: frozenset[Entry] = frozenset()
    kept: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the node need not be."""
        return not self.entries and not self.kept

    def bindings(self, pattern: ResourcePattern) -> Iterator[AclBinding]:
        """Return the ACLs, of a pattern."""
        return bindings_of(pattern, self.entries)


def bindings_of(pattern: ResourcePattern, entries: Iterable[Entry]) -> Iterator[AclBinding]:
    """Return entries of a pattern as bindings."""
    resource_type, pattern_type, name = pattern
    return (AclBinding(resource_type, name, pattern_type, *entry) for entry in entries)


def encode_acls(acls: NodeAcls) -> bytes:
    """Return what a node has that says this, the same for the same ACLs."""
    entries = [
        {
            "principal": principal,
            "permissionType": permission.name.capitalize(),
            "operation": _camel_case(operation.name),
            "host": host,
        }
        for principal, host, operation, permission in sorted(acls.entries)
    ]
    kept = [json.loads(text) for text in acls.kept]
    return _json({"version": _VERSION, "acls": [*entries, *kept]})


def encode_change(pattern: ResourcePattern) -> tuple[str, bytes]:
    """Return in which directory a change of a pattern is told, and the data of that node."""
    type_name = pattern.resource_type.name
    if pattern.pattern_type == PatternType.LITERAL:
        return LITERAL_CHANGES, f"{type_name}:{pattern.name}".encode()
    told = {
        "version": _VERSION,
        "resourceType": type_name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return EXTENDED_CHANGES, _json(told)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
