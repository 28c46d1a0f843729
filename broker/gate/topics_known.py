"""What the gate has to know of topics before it checks a request: names of ids, and existence.

A request may name topics by id, while ACLs have their names. A gateway may have to ask another
broker for them, so they are resolved before the check, which stays synchronous. That a topic exists
never grants anything; it only chooses between two refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, Protocol

from aclbroker.broker.gate.need import Row
from aclbroker.protocol.primitives import ZERO_UUID


class Topics(Protocol):
    """What is known of the topics that a request names, and of the broker that answers it."""

    @property
    def node_id(self) -> int:
        """The id of the broker that answers."""

    @property
    def auto_creates(self) -> bool:
        """Whether the broker creates a missing topic that a Metadata asks for."""

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic has it."""

    def exists(self, name: str) -> bool:
        """Return whether there is a topic of that name."""

    def has_partition(self, name: str | None, partition: int) -> bool:
        """Return whether there is a topic of that name with that partition."""

    def keeps_session(self, session_id: int) -> bool:
        """Return whether the broker keeps a session of Fetch requests (KIP-227) of that id."""


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
