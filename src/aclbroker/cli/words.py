"""The words of questions: operations, types of resources and their names, as people type them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclOperation, ResourceType

_TYPES: Final = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
TYPES_HELP: Final = f"one of {', '.join(_TYPES)}"


def operation_of(text: str) -> AclOperation:
    """Return an operation by its name, in any case; raises ValueError with all names."""
    from aclbroker.acl.bindings import AclOperation

    known = [each for each in AclOperation if each > AclOperation.ALL]
    words = {each.name.replace("_", ""): each for each in known}
    found = words.get(text.upper().replace("_", "").replace("-", ""))
    if found is None:
        raise ValueError(
            f"operation {text!r} is not one of {', '.join(each.name for each in known)}"
        )
    return found


def type_of(text: str) -> ResourceType:
    """Return a type of resources by its name, in any case; raises ValueError with all names."""
    from aclbroker.acl.bindings import ResourceType

    word = text.lower().replace("_", "-")
    if word not in _TYPES:
        raise ValueError(f"resource type {text!r} is not {TYPES_HELP}")
    return ResourceType[word.upper().replace("-", "_")]


def name_of(kind: ResourceType, name: str | None) -> str:
    """Return the name of a resource; the cluster has its own. Raises ValueError if it lacks."""
    from aclbroker.acl.bindings import CLUSTER_NAME, ResourceType

    if kind is ResourceType.CLUSTER:
        return CLUSTER_NAME
    if name is None:
        raise ValueError(f"expected the name of a {kind.name} behind its type")
    return name


def names_of(words: Sequence[str]) -> dict[ResourceType, str]:
    """Return the names by type; the cluster stands without one. Raises ValueError."""
    names: dict[ResourceType, str] = {}
    rest = iter(words)
    for word in rest:
        kind = type_of(word)
        names[kind] = name_of(kind, None if kind is type_of("cluster") else next(rest, None))
    return names
