"""Sessions of share fetches (KIP-932): what members ask for, which a request only changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from aclbroker.broker.memory.share.in_flight import ShareError
from aclbroker.broker.memory.share.partitions import Place
from aclbroker.protocol.errors import ErrorCode

MOST_PARTITIONS: Final = 200_000
"""How many partitions all sessions have together. Kafka has no such limit."""

FINAL: Final = -1
"""The epoch of the request that ends a session."""

_MOST_EPOCH: Final = (1 << 31) - 1


class Key(NamedTuple):
    """Whose a session is: a member of a group, at one of the nodes."""

    node_id: int
    group_id: str
    member_id: str


class ShareSession:
    """A session; ``epoch`` is that of the next request.

    ``partitions`` are those that are asked for, with whether the client is to be told of each even
    if there is nothing new. ``connection`` is the one that the last request came by.
    """

    __slots__ = ("connection", "epoch", "key", "partitions")

    def __init__(self, key: Key, partitions: Iterable[Place], connection: object) -> None:
        self.key = key
        self.epoch = 1
        self.connection = connection
        self.partitions: dict[Place, bool] = dict.fromkeys(partitions, True)

    def next(self) -> None:
        """Expect the next request."""
        self.epoch = 1 if self.epoch == _MOST_EPOCH else self.epoch + 1

    def rotated(self) -> list[Place]:
        """Return the partitions, of which another one is the first each time."""
        places = list(self.partitions)
        begin = self.epoch % len(places) if places else 0
        return places[begin:] + places[:begin]


class ShareSessions:
    """All sessions. ``on_unread`` is called with a group's id when its last session is over."""

    def __init__(self, most: int, on_unread: Callable[[str], None]) -> None:
        self._most = most
        self._on_unread = on_unread
        self._by_key: dict[Key, ShareSession] = {}
        self._of_group: dict[str, int] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, key: Key) -> ShareSession:
        """Return a session; raises ShareError with SHARE_SESSION_NOT_FOUND."""
        found = self._by_key.get(key)
        if found is None:
            raise ShareError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return found

    def open(self, key: Key, places: Iterable[Place], connection: object) -> ShareSession:
        """Begin a session, in the place of the one that the member may have.

        Raises ShareError with SHARE_SESSION_LIMIT_REACHED.
        """
        former = self._by_key.pop(key, None)
        if former is not None:
            self._count(former, -1)
        made = ShareSession(key, places, connection)
        is_too_much = self._partitions + len(made.partitions) > MOST_PARTITIONS
        if is_too_much or len(self._by_key) >= self._most:
            raise ShareError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._by_key[key] = made
        self._count(made, 1)
        return made

    def expected(self, key: Key, epoch: int) -> ShareSession:
        """Return a session and expect its next request; with the final epoch only return it.

        Raises ShareError: SHARE_SESSION_NOT_FOUND, or INVALID_SHARE_SESSION_EPOCH.
        """
        found = self.find(key)
        if epoch != FINAL:
            if found.epoch != epoch:
                raise ShareError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
            found.next()
        return found

    def change(
        self, session: ShareSession, added: Iterable[Place], forgotten: Iterable[Place]
    ) -> None:
        """Change what is asked for in a session.

        Raises ShareError with SHARE_SESSION_LIMIT_REACHED if that is too much.
        """
        before = len(session.partitions)
        for place in added:
            session.partitions.setdefault(place, True)
        for place in forgotten:
            session.partitions.pop(place, None)
        self._partitions += len(session.partitions) - before
        if self._partitions > MOST_PARTITIONS:
            self.close(session)
            raise ShareError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)

    def close(self, session: ShareSession) -> None:
        """End a session, which may have ended already."""
        if self._by_key.get(session.key) is session:
            del self._by_key[session.key]
            self._count(session, -1)
            if session.key.group_id not in self._of_group:
                self._on_unread(session.key.group_id)

    def of_connection(self, connection: object) -> list[ShareSession]:
        """Return the sessions whose last request came by a connection."""
        return [each for each in self._by_key.values() if each.connection is connection]

    def _count(self, session: ShareSession, by: int) -> None:
        group_id = session.key.group_id
        self._partitions += by * len(session.partitions)
        left = self._of_group.get(group_id, 0) + by
        if left:
            self._of_group[group_id] = left
        else:
            del self._of_group[group_id]
