"""Messages of any API key whose fields have given names, as they might come from a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import md5
from typing import Any

from aclbroker.broker.gate.disclosure import AllOrRefused, Blanked, Echoed, Listed, Tokens
from aclbroker.broker.gate.shown import SHOWN
from aclbroker.protocol.compile import decode, encode

Names = Callable[[], Sequence[str]]
"""Names the entries that an array is to have; it is asked for each array."""


def id_of(name: str) -> bytes:
    """Return the topic id that a name has."""
    return md5(name.encode(), usedforsecurity=False).digest()


def named_in_answers(key: int) -> set[str]:
    """Return the fields of a key's answers that tell what an entry is about."""
    found: set[str] = set()
    for line in SHOWN[key]:
        if isinstance(line, Blanked):
            found |= {path for path in line.fields if path.rpartition(".")[2] not in line.blanks}
        elif isinstance(line, Echoed | Listed | Tokens | AllOrRefused):
            found |= set(line.fields)
    return found


def named_in_requests(key: int) -> set[str]:
    """Return the fields of a key's requests that name what is asked for."""
    found = {path for line in SHOWN[key] if isinstance(line, Echoed) for path in line.asked_fields}
    if any(isinstance(line, Tokens) for line in SHOWN[key]):
        found |= {"owners.principal_type", "owners.principal_name"}
    return found


def message(cls: Any, version: int, named: Collection[str], names: Names) -> Any:
    """Return a message as it is decoded: ``named`` fields have the name or id of their entry,
    others are empty or zero.
    """
    made = _filled(cls, named, names, "", "")
    return decode(cls, version, encode(made, version))


def _filled(cls: Any, named: Collection[str], names: Names, path: str, name: str) -> Any:
    values = {}
    for field in dataclasses.fields(cls):
        if spec := field.metadata.get("spec"):
            where = f"{path}{field.name}"
            values[field.name] = _value(spec.kind, field, named, names, where, name)
    return cls(**values)


def _value(
    kind: Any, field: Any, named: Collection[str], names: Names, path: str, name: str
) -> Any:
    if isinstance(kind, list):
        if isinstance(kind[0], type):
            return [_filled(kind[0], named, names, f"{path}.", each) for each in names()]
        return list(names()) if path in named else []
    if isinstance(kind, type):
        return _filled(kind, named, names, f"{path}.", (*names(), "")[0])
    if path in named:
        return {"string": name, "uuid": id_of(name), "bytes": name.encode()}.get(kind, 0)
    # Not null, though it could be, so that it is seen if it becomes that.
    return "" if kind == "string" else field.default


def told(message: Any) -> Iterator[str | bytes]:
    """Yield all texts and bytes anywhere in a message."""
    if isinstance(message, str | bytes):
        yield message
    elif isinstance(message, list | tuple):
        for each in message:
            yield from told(each)
    elif dataclasses.is_dataclass(message):
        for field in dataclasses.fields(message):
            yield from told(getattr(message, field.name))


def tells_of(message: Any, names: Collection[str]) -> set[str]:
    """Return those of the names of which a message tells, by their ids or anyhow."""
    texts = list(told(message))
    return {name for name in names for text in texts if _has(text, name) or text == id_of(name)}


def _has(text: str | bytes, name: str) -> bool:
    return name in text if isinstance(text, str) else name.encode() in text
