"""Finds the topics of a request whose names or existence the gate has to know before it checks."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, Protocol

from aclbroker.broker.gate.need import Row
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.primitives import ZERO_UUID


class TopicResolver(Protocol):
    """Resolves what the gate has to know of topics."""

    def known(self, row: Row, request: Any) -> Topics | Awaitable[Topics]:
        """Return what is known of the topics in a request (see `wanted`).

        Returns an awaitable if another broker has to be asked first.
        """


def wanted(row: Row, request: Any) -> tuple[set[bytes], set[str]]:
    """Return the topic ids in a request, and the topic names whose existence matters."""
    found = {value for path in row.resolves for value in values_at(request, path.split("."))}
    ids = {value for value in found if isinstance(value, bytes) and value != ZERO_UUID}
    return ids, {value for value in found if isinstance(value, str)}


def values_at(item: Any, path: Iterable[str]) -> Iterator[Any]:
    """Yield the values at a path through arrays, such as ``("groups", "topics", "topic_id")``."""
    field, *rest = path
    value = getattr(item, field)
    for entry in value if isinstance(value, list | tuple) else (value,):
        if entry is not None:
            if rest:
                yield from values_at(entry, rest)
            else:
                yield entry
