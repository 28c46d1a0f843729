"""The facts about topics that the gate needs before a check: names of ids, and existence.

A request may name topics by id, while ACLs have their names. A gateway may have to ask another
broker for them, so they are resolved before the check, which stays synchronous. That a topic exists
never grants anything; it only chooses between two refusals.
"""

from __future__ import annotations

from typing import Protocol


class Topics(Protocol):
    """The known topics of a request, and the broker that answers it."""

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
