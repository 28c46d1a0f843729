"""What clients that go on in random order have done, and what has to come of it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.memory_cluster.at_random import Ask

TOPIC: Final = "t"
PARTITIONS: Final = 3
CLASSIC, MODERN, FED = "classic", "modern", "fed"
"""The groups: of members of each protocol, and of offsets that are committed in transactions."""

AGAIN: Final = (6, 14, 15, 16, 45, 51)
"""The codes after which a producer tries again; 45 is a batch whose predecessors are missing."""

Part = Generator[Ask | None, Any, Any]
"""A part of a client, which may return something."""


@dataclass
class World:
    """What clients have done, and what has to come of it."""

    random: Random
    topic_id: bytes
    fates: dict[bytes, str] = field(default_factory=dict)
    consumed: dict[str, dict[tuple[int, int], bytes]] = field(
        default_factory=lambda: {CLASSIC: {}, MODERN: {}}
    )
    accepted: dict[str, dict[int, int]] = field(
        default_factory=lambda: {CLASSIC: {}, MODERN: {}, FED: {}}
    )
    ends: dict[int, int] | None = None
    rebalances: int = 0
    refused: int = 0

    def accept(self, group: str, partition: int, offset: int) -> None:
        """Note an offset that was committed."""
        known = self.accepted[group].get(partition, -1)
        self.accepted[group][partition] = max(known, offset)

    def is_done(self, group: str) -> bool:
        """Tell whether nothing will be written any more, and a group has committed all of it."""
        accepted = self.accepted[group]
        return self.ends is not None and all(
            accepted.get(index, 0) >= end for index, end in self.ends.items()
        )


def until_done(ask: Ask) -> Part:
    """Send a request until it is answered with something else than to try again."""
    while True:
        answer = yield ask
        if answer is not None and answer.error_code not in AGAIN:
            return answer
