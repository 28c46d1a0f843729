"""Makes ACLs from text fields, in each of Kafka's spellings: ``TRANSACTIONAL_ID``, ``Read``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)

FIELDS: Final = AclBinding._fields
"""The names of an ACL's fields, in order."""

_KINDS: Final[Mapping[str, Any]] = {
    "resource_type": ResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": AclPermission,
}
_Kind = TypeVar("_Kind", bound=IntEnum)


def acl_of(fields: Mapping[str, str]) -> AclBinding:
    """Return the ACL of text fields, by `FIELDS`. Raises ValueError, which names a wrong field."""
    values: list[Any] = []
    for name in FIELDS:
        kind = _KINDS.get(name)
        word = fields[name]
        values.append(word if kind is None else member(name, kind, word))
    acl = AclBinding(*values)
    reason = invalid_reason(acl)
    if reason is not None:
        raise ValueError(reason)
    return acl


def member(name: str, kind: type[_Kind], word: str) -> _Kind:
    """Return the member that a word names. Raises ValueError, which names the field."""
    plain = _plain(word)
    for each in kind:
        if _plain(each.name) == plain:
            return each
    known = ", ".join(each.name for each in kind if each > 1 and each.name != "MATCH")
    raise ValueError(f"{name} must be one of {known}; {word!r} is not")


def _plain(word: str) -> str:
    return word.strip().upper().replace("_", "").replace("-", "")
