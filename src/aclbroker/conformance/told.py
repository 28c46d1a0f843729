"""Finds the names of the suite's topics, groups and transactional ids in requests and messages.

An error message must not have a name that its request does not have. A client that knows a topic
by its id alone would learn the topic's name from it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from aclbroker.conformance.resources import ABSENT_TOPICS, DELETED_TOPIC, LISTED, PREFIX
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS, ApiKey

_WORD: Final = re.compile(rf"{PREFIX}[a-z0-9-]*")
_NAMES: Final = sorted((*LISTED, *ABSENT_TOPICS, DELETED_TOPIC), key=len, reverse=True)


def names_asked(key: ApiKey, version: int, request: Any) -> frozenset[str]:
    """Return the names in a request, as far as they are encoded at a version."""
    api = APIS[key]
    sent = decode(api.request, version, encode(request, version))
    return frozenset(name for text in _strings(sent) for name in names_in(text))


def names_in(text: str) -> Iterator[str]:
    """Yield each name in a text; where several names match, only the longest."""
    for word in _WORD.findall(text):
        # Kafka writes a partition as the topic's name, a hyphen and the number of the partition.
        named = next((n for n in _NAMES if word == n or word.startswith(f"{n}-")), None)
        if named is not None:
            yield named


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _strings(getattr(value, field.name))
    elif isinstance(value, Sequence) and not isinstance(value, bytes | memoryview):
        for entry in value:
            yield from _strings(entry)
