"""Paths to fields of messages, and the values at a path.

A path has the names of the arrays and structs that lead to a field, and of the field. In
``topics.name|topic_id`` either of two fields identifies an entry, and in
``results.resource_type+resource_name`` both do together. ``group_ids[]`` is an array of bare
values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

_EMPTY: Final = frozenset((None, "", ZERO_UUID))


class Place(NamedTuple):
    """A parsed path: the way to the owners of an array, the array, and the fields of its entries.

    Without fields the entries are bare values. If ``joined``, all fields together identify an
    entry; otherwise each of them does.
    """

    owners: tuple[str, ...]
    array: str
    fields: tuple[str, ...] = ()
    joined: bool = False


def place(path: str) -> Place:
    """Parse a path."""
    if path.endswith("[]"):
        *owners, array = path.removesuffix("[]").split(".")
        return Place(tuple(owners), array)
    *owners, array, names = path.split(".")
    return Place(tuple(owners), array, tuple(re.split(r"[|+]", names)), "+" in names)


def fields_of(*paths: str) -> list[str]:
    """Return the path of each single field in some paths."""
    found = []
    for path in paths:
        owner, dot, names = path.removesuffix("[]").rpartition(".")
        found += [owner + dot + name for name in re.split(r"[|+]", names)]
    return found


def owners_in(roots: Sequence[Any], place: Place) -> Sequence[Any]:
    """Return the objects that own the array of a place, starting from ``roots``."""
    found = roots
    for name in place.owners:
        found = [
            inner for each in in_turns(found) for inner in in_turns(values_of(getattr(each, name)))
        ]
    return found


def entries_in(roots: Sequence[Any], place: Place) -> list[Any]:
    """Return the entries of all arrays at a place, starting from ``roots``."""
    return [
        entry
        for owner in in_turns(owners_in(roots, place))
        for entry in in_turns(values_of(getattr(owner, place.array)))
    ]


def values_of(value: Any) -> Sequence[Any]:
    """Return the entries of an array; a single struct is its only entry, and null has none."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


@cache
def ids_in(place: Place) -> Callable[[Any], Collection[Any]]:
    """Return a function that reads the values that identify an entry.

    They are its only field, all fields together if they are joined, else each that is not empty.
    """
    if not place.fields:
        return lambda entry: (entry,)
    values = attrgetter(*place.fields)
    if place.joined or len(place.fields) == 1:
        return lambda entry: (values(entry),)
    return lambda entry: [value for value in values(entry) if value not in _EMPTY]
