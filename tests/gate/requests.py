"""Requests of any API key, filled so that every array has entries of given names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from aclbroker.broker.catalog import Catalog
from aclbroker.protocol.messages import APIS


def filled(key: int, names: Sequence[str]) -> Any:
    """Return a request whose arrays of structs and strings have one entry a name.

    Strings are the first name, numbers and ids zero.
    """
    return _filled(APIS[key].request, names, names[0])


def filled_answer(key: int, names: Sequence[str], catalog: Catalog) -> Any:
    """Return a response whose arrays have one entry a name, with the ids of topics of that name."""
    response = filled_class(APIS[key].response, names)
    _identify(response, names, catalog)
    return response


def _identify(item: Any, names: Sequence[str], catalog: Catalog) -> None:
    for array in (getattr(item, field.name) for field in dataclasses.fields(item)):
        for position, entry in enumerate(array if isinstance(array, list | tuple) else ()):
            if dataclasses.is_dataclass(entry):
                if hasattr(entry, "topic_id"):
                    entry.topic_id = catalog.id_of(names[position])
                _identify(entry, names, catalog)


def filled_class(cls: Any, names: Sequence[str]) -> Any:
    """Return an object of a message's class in the same way."""
    return _filled(cls, names, names[0])


def _filled(cls: Any, names: Sequence[str], name: str) -> Any:
    values = {}
    for field in dataclasses.fields(cls):
        spec = field.metadata.get("spec")
        if spec is not None:
            values[field.name] = _value(spec.kind, field, names, name)
    return cls(**values)


def _value(kind: Any, field: Any, names: Sequence[str], name: str) -> Any:
    if isinstance(kind, list):
        return [_entry(kind[0], names, each) for each in names]
    if isinstance(kind, type):
        return _filled(kind, names, name)
    if kind == "string":
        return name
    return field.default


def _entry(kind: Any, names: Sequence[str], name: str) -> Any:
    if isinstance(kind, type):
        return _filled(kind, names, name)
    return {"string": name, "uuid": bytes(16)}.get(kind, 0)


def codes(answer: Any) -> set[int]:
    """Return all error codes anywhere in an answer."""
    found = set()
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        if field.name.endswith("error_code"):
            found.add(int(value))
        for entry in value if isinstance(value, list | tuple) else [value]:
            if dataclasses.is_dataclass(entry):
                found |= codes(entry)
    return found


def strings(answer: Any) -> set[str]:
    """Return all texts anywhere in an answer but its error messages."""
    found = set()
    for field in dataclasses.fields(answer):
        value = getattr(answer, field.name)
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, str) and field.name != "error_message":
                found.add(entry)
            elif dataclasses.is_dataclass(entry):
                found |= strings(entry)
    return found
