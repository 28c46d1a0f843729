"""Sessions of Fetch requests (KIP-227): a client names only what changes, and is told only that."""

from __future__ import annotations

from collections.abc import Iterable
from secrets import randbelow
from typing import Final

SLOTS: Final = 1000
"""How many sessions there are at most (``max.incremental.fetch.session.cache.slots``)."""

EVICTION_MS: Final = 120_000
"""How old or unused a session must be for another to take its place."""

MOST_PARTITIONS: Final = 200_000
"""How many partitions all sessions have together. Kafka has no such limit."""

_LARGEST_ID: Final = (1 << 31) - 1
_MOST_EPOCH: Final = (1 << 31) - 1

Key = tuple[str | bytes, int]
"""A topic, by its name or its id as the request has it, and a partition of it."""


class FetchedPartition:
    """What a client asks for of a partition, and what it was told last.

    ``topic_id`` is zero where the client gives names, and ``topic`` is empty where it gives ids.
    ``current_epoch`` is the leader epoch that the client knows, and ``last_epoch`` that of the last
    record that it has; -1 if none.
    """

    __slots__ = (
        *("current_epoch", "fetch_offset", "high_watermark", "index", "last_epoch", "max_bytes"),
        *("start_offset", "topic", "topic_id"),
    )

    def __init__(self, topic: str, topic_id: bytes, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = 0
        self.max_bytes = 0
        self.current_epoch = -1
        self.last_epoch = -1
        self.high_watermark = -1
        self.start_offset = -1

    @property
    def key(self) -> Key:
        """What identifies it."""
        return (self.topic or self.topic_id, self.index)


class FetchSession:
    """One session; ``epoch`` is that of the next request, and ``owner`` whose session it is.

    ``partitions`` are in the order in which they are read: those that had records go to the end.
    """

    __slots__ = ("by_ids", "created_ms", "epoch", "owner", "partitions", "session_id", "used_ms")

    def __init__(
        self,
        session_id: int,
        owner: str,
        partitions: Iterable[FetchedPartition],
        now_ms: int,
        *,
        by_ids: bool,
    ) -> None:
        self.session_id = session_id
        self.owner = owner
        self.epoch = 1
        self.by_ids = by_ids
        self.created_ms = self.used_ms = now_ms
        self.partitions: dict[Key, FetchedPartition] = {each.key: each for each in partitions}

    def next(self, now_ms: int) -> None:
        """Expect the next request."""
        self.epoch = 1 if self.epoch == _MOST_EPOCH else self.epoch + 1
        self.used_ms = now_ms

    def had_records(self, key: Key) -> None:
        """Let a partition be read last the next time."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


class FetchSessions:
    """All sessions by id, in the order in which they were used last. ``in`` tells of an id."""

    def __init__(self) -> None:
        self._by_id: dict[int, FetchSession] = {}
        self._partitions = 0

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, session_id: int, owner: str) -> FetchSession | None:
        """Return a session of a principal, None if there is none of that id."""
        session = self._by_id.get(session_id)
        return session if session is not None and session.owner == owner else None

    def open(
        self,
        owner: str,
        partitions: dict[Key, FetchedPartition],
        now_ms: int,
        *,
        by_ids: bool,
    ) -> FetchSession | None:
        """Begin a session, None if there is no room for it."""
        if not self._has_room(len(partitions), now_ms):
            return None
        session_id = 1 + randbelow(_LARGEST_ID)
        while session_id in self._by_id:
            session_id = 1 + randbelow(_LARGEST_ID)
        session = FetchSession(session_id, owner, partitions.values(), now_ms, by_ids=by_ids)
        self._by_id[session_id] = session
        self._partitions += len(session.partitions)
        return session

    def close(self, session: FetchSession) -> None:
        """End a session, which may have ended already."""
        if self._by_id.pop(session.session_id, None) is not None:
            self._partitions -= len(session.partitions)

    def change(
        self,
        session: FetchSession,
        named: Iterable[FetchedPartition],
        forgotten: Iterable[Key],
    ) -> bool:
        """Change what is asked for in a session; False if that is too much, which ends it."""
        before = len(session.partitions)
        for each in named:
            known = session.partitions.get(each.key)
            if known is None:
                session.partitions[each.key] = each
            else:
                known.fetch_offset = each.fetch_offset
                known.max_bytes = each.max_bytes
                known.current_epoch = each.current_epoch
                known.last_epoch = each.last_epoch
        for key in forgotten:
            session.partitions.pop(key, None)
        self._partitions += len(session.partitions) - before
        if self._partitions > MOST_PARTITIONS:
            self.close(session)
            return False
        return True

    def used(self, session: FetchSession, now_ms: int) -> None:
        """Note that a session was used, and expect its next request."""
        session.next(now_ms)
        if session.session_id in self._by_id:
            self._by_id[session.session_id] = self._by_id.pop(session.session_id)

    def _has_room(self, size: int, now_ms: int) -> bool:
        if size + self._partitions > MOST_PARTITIONS:
            return False
        return len(self._by_id) < SLOTS or self._evict(size, now_ms)

    def _evict(self, size: int, now_ms: int) -> bool:
        """End the session that was not used for longest, or a smaller one, if it is old enough."""
        unused = next(iter(self._by_id.values()))
        if now_ms - unused.used_ms > EVICTION_MS:
            self.close(unused)
            return True
        old = [each for each in self._by_id.values() if now_ms - each.created_ms >= EVICTION_MS]
        smallest = min(old, key=lambda each: len(each.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self.close(smallest)
        return True
