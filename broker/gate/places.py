"""Paths to fields of messages, and what stands there.

A path names fields and all that they stand in: ``topics.name|topic_id`` are two fields of which
either tells what an entry is about, ``results.resource_type+resource_name`` two that tell it
together, and ``group_ids[]`` is an array of bare values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from aclbroker.protocol.primitives import ZERO_UUID

_EMPTY: Final = frozenset((None, "", ZERO_UUID))


class Place(NamedTuple):
    """A path in parts: the way to the owners of an array, the array, the fields of its entries.

    Without fields the entries are bare values. With ``joined`` the fields tell together what an
    entry is about, without it each of them does.
    """

    owners: tuple[str, ...]
    array: str
    fields: tuple[str, ...] = ()
    joined: bool = False


def place(path: str) -> Place:
    """Return the parts of a path."""
    if path.endswith("[]"):
        *owners, array = path.removesuffix("[]").split(".")
        return Place(tuple(owners), array)
    *owners, array, names = path.split(".")
    return Place(tuple(owners), array, tuple(re.split(r"[|+]", names)), "+" in names)


def fields_of(*paths: str) -> list[str]:
    """Return the paths of single fields that some paths name."""
    found = []
    for path in paths:
        owner, dot, names = path.removesuffix("[]").rpartition(".")
        found += [owner + dot + name for name in re.split(r"[|+]", names)]
    return found


def owners_in(roots: Sequence[Any], place: Place) -> Sequence[Any]:
    """Return the objects that have a place's array, from some that its path begins at."""
    found = roots
    for name in place.owners:
        found = [inner for each in found for inner in values_of(getattr(each, name))]
    return found


def entries_in(roots: Sequence[Any], place: Place) -> list[Any]:
    """Return the entries of a place's arrays."""
    return [
        entry
        for owner in owners_in(roots, place)
        for entry in values_of(getattr(owner, place.array))
    ]


def values_of(value: Any) -> Sequence[Any]:
    """Return the entries of an array; a struct that is no array is its only one, null has none."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


@cache
def ids_in(place: Place) -> Callable[[Any], Collection[Any]]:
    """Return what reads from an entry the values that tell it from others: its only field, or all
    together, or those of several that are not empty.
    """
    if not place.fields:
        return lambda entry: (entry,)
    values = attrgetter(*place.fields)
    if place.joined or len(place.fields) == 1:
        return lambda entry: (values(entry),)
    return lambda entry: [value for value in values(entry) if value not in _EMPTY]
