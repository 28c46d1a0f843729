"""Tagged fields of a decoded message that no declaration knows."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from aclbroker.turns import in_turns


def has_unknown_tags(message: Any) -> bool:
    """Return whether a message, or a struct inside of it, has undeclared tagged fields."""
    cls: Any = type(message)
    if message.unknown_tags:
        return True
    return any(
        has_unknown_tags(struct)
        for name in _structs(cls)
        for struct in in_turns(_values(getattr(message, name)))
    )


def drop_unknown_tags(message: Any) -> None:
    """Remove undeclared tagged fields from a message and from all structs inside of it."""
    cls: Any = type(message)
    message.unknown_tags = ()
    for name in _structs(cls):
        for struct in in_turns(_values(getattr(message, name))):
            drop_unknown_tags(struct)


def without_unknown_tags(message: Any) -> Any:
    """Return a message without undeclared tagged fields, a copy if it has any.

    The message itself does not change, because small requests are remembered.
    """
    if not has_unknown_tags(message):
        return message
    cls: Any = type(message)
    inner = {name: _without(getattr(message, name)) for name in _structs(cls)}
    return dataclasses.replace(message, unknown_tags=(), **inner)


def _without(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [without_unknown_tags(struct) for struct in in_turns(value)]
    return None if value is None else without_unknown_tags(value)


def _values(value: Any) -> Any:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


@cache
def _structs(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a class that contain structs."""
    kinds = {
        field.name: field.metadata["spec"].kind
        for field in dataclasses.fields(cls)
        if "spec" in field.metadata
    }
    return tuple(
        name
        for name, kind in kinds.items()
        if isinstance(kind[0] if isinstance(kind, list) else kind, type)
    )
