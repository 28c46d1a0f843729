"""What travels between the owner of a store and those who use it: items in JSON, and back.

An item is a list. The first element of one of a change says what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from aclbroker.broker.stores.store import Origin, StoreChange, StoreReset
from aclbroker.turns import in_turns

ADDED: Final = 1
REMOVED: Final = 2
RECORD: Final = 3
UNREADABLE: Final = 4

# Indexing a list takes a tenth of the time that an enumeration's own way from its code takes.
_TYPES: Final = list(ResourceType)
_PATTERNS: Final = list(PatternType)
_OPERATIONS: Final = list(AclOperation)
_PERMISSIONS: Final = list(AclPermission)

Item = Sequence[Any]


def binding_of(item: Item) -> AclBinding:
    """Return the binding of an item whose last seven elements are its fields."""
    kind, name, pattern, principal, host, operation, permission = item[-7:]
    return AclBinding(
        _TYPES[kind],
        name,
        _PATTERNS[pattern],
        principal,
        host,
        _OPERATIONS[operation],
        _PERMISSIONS[permission],
    )


def bindings_of(items: Sequence[Item]) -> list[AclBinding]:
    """Return the bindings of items; others have their turns meanwhile."""
    return [binding_of(item) for item in in_turns(items)]


def change_items(
    added: Iterable[AclBinding] = (),
    removed: Iterable[AclBinding] = (),
    records: Mapping[tuple[str, str], str | None] | None = None,
    unreadable: Collection[ResourcePattern] = (),
) -> Iterator[Item]:
    """Return the items of a change, one by one."""
    return chain(
        ((ADDED, *binding) for binding in added),
        ((REMOVED, *binding) for binding in removed),
        ((RECORD, kind, name, value) for (kind, name), value in (records or {}).items()),
        ((UNREADABLE, *pattern) for pattern in unreadable),
    )


def added_of(items: Sequence[Item]) -> list[AclBinding]:
    """Return the bindings that are added by a change."""
    return [binding_of(item) for item in in_turns(items) if item[0] == ADDED]


def removed_of(items: Sequence[Item]) -> list[AclBinding]:
    """Return the bindings that are removed by a change."""
    return [binding_of(item) for item in in_turns(items) if item[0] == REMOVED]


def news_head(news: StoreChange | StoreReset) -> dict[str, Any]:
    """Return what a change, or all that there is, is besides its items."""
    if isinstance(news, StoreReset):
        return {"position": news.position, "reset": True}
    return {"position": news.position, "origin": news.origin}


def news_items(news: StoreChange | StoreReset) -> Iterator[Item]:
    """Return the items of a change, or of all that there is."""
    if isinstance(news, StoreReset):
        return change_items(news.bindings, (), news.records, news.unreadable)
    return change_items(news.added, news.removed, news.records)


def news_of(head: Mapping[str, Any], items: Sequence[Item]) -> StoreChange | StoreReset:
    """Return a change, or all that there is, of its head and its items."""
    added, removed = added_of(items), removed_of(items)
    records = {(item[1], item[2]): item[3] for item in in_turns(items) if item[0] == RECORD}
    if head.get("reset"):
        return StoreReset(head["position"], added, records, patterns_of(items))
    origin = head["origin"]
    return StoreChange(
        head["position"], added, removed, records, None if origin is None else Origin(*origin)
    )


def patterns_of(items: Iterable[Item]) -> tuple[ResourcePattern, ...]:
    """Return the resource patterns that cannot be read."""
    return tuple(
        ResourcePattern(_TYPES[item[1]], _PATTERNS[item[2]], item[3])
        for item in items
        if item[0] == UNREADABLE
    )
