"""The names that requests are about: some exist, some are missing."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from aclbroker.protocol.primitives import ZERO_UUID
from tests.gateway.twins.sides import CLOSED
from tests.memory.records import batch

TOPICS: Final = ("t1", "t2", "t3", "ta", "u1", "missing")
GROUPS: Final = ("g1", "g2", "h1", "missing")
TXN_IDS: Final = ("x1", "x2", "y1")
_FIRST_NUMBER: Final = 100
_LATEST: Final = 8
"""The groups, members and sessions of which requests name any; older ones are forgotten."""


class Names:
    """Draws names. ``ids`` has the ids of topics, those that are gone included."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ids: dict[str, bytes] = {}
        self._old_ids: list[bytes] = []
        self._groups: list[str] = []
        self._members: list[str] = []
        self._sessions: dict[Any, int] = {}
        self.has_doubles = True
        """Whether a request may name a topic or a group twice."""
        self.place: Any = None
        """The connection for which names are drawn."""
        self._count = 0

    def topic(self) -> str:
        """Return the name of a topic."""
        return self.random.choice(TOPICS)

    def topic_id(self) -> bytes:
        """Return the id of a topic, which may be deleted, or an id without a topic."""
        chance = self.random.random()
        if chance < 0.1 or not self.ids:
            return bytes([7] * 16) if chance < 0.07 else ZERO_UUID
        if chance < 0.2 and self._old_ids:
            return self.random.choice(self._old_ids)
        return self.random.choice(list(self.ids.values()))

    def group(self) -> str:
        """Return the id of a group."""
        return self.random.choice((*GROUPS, *self._groups[-_LATEST:]))

    def transactional_id(self) -> str:
        """Return a transactional id."""
        return self.random.choice(TXN_IDS)

    def member(self) -> str:
        """Return the id of a member, which may be of another group."""
        return self.random.choice(("", "nobody", *self._members[-_LATEST:]))

    def session(self) -> int:
        """Return the id of the connection's last fetch session; 0 without one.

        A gateway knows the sessions of a connection alone (docs/gateway.md).
        """
        return self._sessions.get(self.place, 0)

    def new_group(self) -> str:
        """Return the id of a group that no request has named."""
        self._count += 1
        group = f"{self.random.choice('gh')}-{self._count}"
        self._groups.append(group)
        return group

    def new_number(self) -> int:
        """Return a number of connections that no other story uses."""
        self._count += 1
        return _FIRST_NUMBER + self._count

    def records(self) -> bytes | None:
        """Return a batch of records, or no valid one."""
        chance = self.random.random()
        if chance < 0.05:
            return None
        if chance < 0.1:
            return b"not a batch"
        return self.batch()

    def batch(self, **more: Any) -> bytes:
        """Return a batch of one to three records."""
        self._count += 1
        values = [f"{self._count}-{n}".encode() for n in range(self.random.randint(1, 3))]
        return batch(*values, key=b"k", **more)

    def learn(self, answer: Any) -> None:
        """Note the ids of members and sessions in an answer."""
        if answer is CLOSED:
            self._sessions.pop(self.place, None)
        member, session = getattr(answer, "member_id", ""), getattr(answer, "session_id", 0)
        if member and member not in self._members:
            self._members.append(member)
        if session:
            self._sessions[self.place] = session

    def learn_topics(self, ids: dict[str, bytes]) -> list[bytes]:
        """Note all topics that exist; return the ids of those that are gone."""
        gone = [known for name, known in self.ids.items() if ids.get(name) != known]
        self._old_ids = [*self._old_ids, *gone][-_LATEST:]
        self.ids = {name: ids[name] for name in TOPICS if name in ids}
        return gone
