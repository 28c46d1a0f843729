"""Where in a table that somebody else wrote its named columns are, and whether they can say it."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from aclbroker.pipeline.ingest.columns import Columns


def located(names: Columns, schema: pa.Schema, path: str) -> dict[str, tuple[str, ...]]:
    """Return where in a file each thing is: a column and the fields in it.

    What is no column may be a directory ``NAME=VALUE`` on the way to the file, which is ``()``.
    Raises ValueError, which says which columns the file has, if one is missing or does not fit.
    """
    found: dict[str, tuple[str, ...]] = {}
    for what, name in names.names:
        place = _located(name, schema)
        if place is None and partition(path, name) is None:
            raise ValueError(f"there is no column {name!r} for {what}; {_listed(schema)}")
        found[what] = place or ()
        if place is not None:
            type_ = _type(schema, place)
            if (wanted := _unfit(what, type_)) is not None:
                raise ValueError(f"the column {name!r} for {what} is {type_}, and must be {wanted}")
        elif what == "count":
            raise ValueError(f"the column {name!r} for count must be a whole number")
    return found


def _located(name: str, schema: pa.Schema) -> tuple[str, ...] | None:
    if name in schema.names:
        return (name,)
    place = tuple(name.split("."))
    try:
        _type(schema, place)
    except KeyError:
        return None
    return place


def _type(schema: pa.Schema, place: tuple[str, ...]) -> pa.DataType:
    """Return the type of a field within others. Raises KeyError if there is none."""
    type_ = schema.field(place[0]).type
    for name in place[1:]:
        if not pa.types.is_struct(type_) or type_.get_field_index(name) < 0:
            raise KeyError(name)
        type_ = type_.field(name).type
    return type_


def partition(path: str, name: str) -> str | None:
    """Return the value of a directory ``NAME=VALUE`` on a path, None if there is none."""
    for each in path.split("/")[:-1]:
        key, equals, value = each.partition("=")
        if equals and unquote(key) == name:
            return unquote(value)
    return None


def _listed(schema: pa.Schema) -> str:
    shown = [f"{each.name} ({each.type})" for each in schema][:_MOST_LISTED]
    more = len(schema) - len(shown)
    return f"the file has {', '.join(shown) or 'none'}" + (f" and {more} more" if more else "")


_MOST_LISTED: Final = 40


def _unfit(what: str, type_: pa.DataType) -> str | None:
    """Return what a column must hold if one of this type cannot say it; None if it can."""
    is_texts, is_number = is_text(type_), pa.types.is_integer(type_)
    if what == "timestamp":
        fits = is_texts or is_number or pa.types.is_timestamp(type_)
        return None if fits else "a timestamp, a whole number of milliseconds since 1970, or a text"
    if what == "allowed":
        return None if is_texts or pa.types.is_boolean(type_) else "true and false, or a text"
    if what == "count":
        return None if is_number else "a whole number"
    return None if is_texts or pa.types.is_null(type_) else "a text"


def is_text(type_: pa.DataType) -> bool:
    """Tell whether a column of this type has texts, or bytes that may be some."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    binaries = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(is_kind(type_) for is_kind in (*kinds, *binaries))
