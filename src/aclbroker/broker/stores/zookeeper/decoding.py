"""What nodes of ACLs and of changes say, and whether that is what Kafka writes.

As in Kafka names of enums may be in any case, and other keys may stand beside those it knows.
Where Kafka's whole load fails (another version, an entry that lacks a field, a principal without a
colon, the operation ANY) this node alone is unreadable; so it is, too, where Kafka takes it for a
pattern without ACLs though it has data, and where something unknown is denied.
"""

from __future__ import annotations

import json
from typing import Any, Final

from aclbroker.acl.bindings import (
    AclOperation,
    AclPermission,
    PatternType,
    ResourcePattern,
)
from aclbroker.acl.patterns import Entry
from aclbroker.broker.stores.zookeeper.layout import (
    EXTENDED_CHANGES,
    TYPE_NAMES,
    NodeAcls,
    UnreadableNode,
    is_unicode,
)

_FIELDS: Final = ("principal", "permissionType", "host", "operation")
_ANY: Final = "any"
_PERMISSIONS: Final = {"allow": AclPermission.ALLOW, "deny": AclPermission.DENY}
_OPERATIONS: Final = {
    operation.name.lower().replace("_", ""): operation
    for operation in AclOperation
    if AclOperation.ANY < operation < AclOperation.TWO_PHASE_COMMIT
}
_RESOURCE_TYPES: Final = {resource_type.name: resource_type for resource_type in TYPE_NAMES}


def decode_acls(data: bytes | None) -> NodeAcls:
    """Return the ACLs of a node. Raises `UnreadableNode`."""
    if not data:
        return NodeAcls()
    value = _object(data)
    _check_version(value)
    acls = value.get("acls")
    if not isinstance(acls, list):
        raise UnreadableNode("it has no list of ACLs")
    entries: set[Entry] = set()
    kept: list[str] = []
    for each in acls:
        entry = _entry(each)
        if entry is None:
            kept.append(json.dumps({field: each[field] for field in _FIELDS}))
        else:
            entries.add(entry)
    return NodeAcls(frozenset(entries), tuple(kept))


def _entry(value: Any) -> Entry | None:
    """Return an entry; None if it allows an operation that is not known."""
    if not isinstance(value, dict):
        raise UnreadableNode("one of its ACLs is no object")
    for field in _FIELDS:
        if not isinstance(value.get(field), str):
            raise UnreadableNode(f"one of its ACLs has no text as its {field}")
        if not is_unicode(value[field]):
            raise UnreadableNode(f"one of its ACLs has no Unicode as its {field}")
    principal, permission_name, host, operation_name = (value[field] for field in _FIELDS)
    if ":" not in principal:
        raise UnreadableNode("the principal of one of its ACLs has no colon")
    permission = _PERMISSIONS.get(permission_name.lower())
    if permission is None:
        raise UnreadableNode("one of its ACLs neither allows nor denies")
    operation = _OPERATIONS.get(operation_name.lower())
    if operation is None:
        if operation_name.lower() == _ANY:
            raise UnreadableNode("the operation of one of its ACLs is ANY")
        if permission is AclPermission.DENY:
            raise UnreadableNode("one of its ACLs denies an operation that is not known")
        return None
    return principal, host, operation, permission


def decode_change(directory: str, data: bytes | None) -> ResourcePattern:
    """Return which pattern a node in a directory of changes names. Raises `UnreadableNode`."""
    if directory == EXTENDED_CHANGES:
        value = _object(data or b"")
        _check_version(value)
        type_name, name = value.get("resourceType"), value.get("name")
        if value.get("patternType") not in ("LITERAL", "PREFIXED"):
            raise UnreadableNode("it names no pattern type")
        pattern_type = PatternType[value["patternType"]]
    else:
        type_name, colon, name = _text(data or b"").partition(":")
        if not colon:
            raise UnreadableNode("it has no colon")
        pattern_type = PatternType.LITERAL
    if not isinstance(type_name, str) or type_name.upper() not in _RESOURCE_TYPES:
        raise UnreadableNode("it names no resource type")
    if not isinstance(name, str) or not name:
        raise UnreadableNode("it names no resource")
    return ResourcePattern(_RESOURCE_TYPES[type_name.upper()], pattern_type, name)


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(_text(data))
    except (ValueError, RecursionError):
        raise UnreadableNode("it is not JSON") from None
    if not isinstance(value, dict):
        raise UnreadableNode("it is no JSON object")
    return value


def _check_version(value: dict[str, Any]) -> None:
    version = value.get("version")
    if type(version) is not int or version != 1:
        raise UnreadableNode("its version is not 1")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableNode("it is not UTF-8") from None
