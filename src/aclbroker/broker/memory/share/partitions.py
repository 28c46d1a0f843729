"""All share partitions: where each begins, and what is asked of those of one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import Groups
from aclbroker.broker.memory.groups.group_configs import (
    BY_DURATION,
    EARLIEST,
    READ_COMMITTED,
    duration_ms,
)
from aclbroker.broker.memory.groups.share_group import ShareGroup
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.share.delivering import ShareSettings
from aclbroker.broker.memory.share.partition import SharePartition
from aclbroker.broker.memory.times import find_time
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.turns import in_turns

_PARTITION_BYTES: Final = 2_000
UNKNOWN: Final = -1
"""The start offset of a partition whose group has made no progress yet."""

Place = tuple[bytes, int]
"""The id of a topic, and a partition of it."""


class Progress(NamedTuple):
    """How far a group is in a partition: its start, and how many records are not done with.

    Both are -1 where that is not known.
    """

    start: int
    lag: int


class SharePartitions:
    """The share partitions of all groups. `starts` has where those begin that nobody reads."""

    def __init__(self, clock: Clock, groups: Groups, topics: MemoryTopics) -> None:
        self._clock = clock
        self._groups = groups
        self._topics = topics
        self._by_group: dict[str, dict[Place, SharePartition]] = {}
        groups.table.on_remove.append(self.forget_group)
        topics.on_forget.append(self.forget_deleted)

    def find(self, group_id: str, place: Place) -> SharePartition | None:
        """Return a share partition, None if nobody has read it yet."""
        return self._by_group.get(group_id, {}).get(place)

    def is_shared(self, group_id: str, place: Place) -> bool:
        """Tell whether a group has begun to share a partition."""
        group = self._groups.table.groups.get(group_id)
        topic_id, index = place
        return isinstance(group, ShareGroup) and index in group.initialized.get(topic_id, ())

    def open(self, group_id: str, place: Place, log: PartitionLog) -> SharePartition:
        """Return a share partition, which begins where the group's settings say if it is new.

        Raises GroupError if there is no room for it. May pause.
        """
        found = self.find(group_id, place)
        if found is None:
            start = self._start(group_id, log)
            found = self.find(group_id, place) or self._put(group_id, place, start)
        return found

    def reads_committed(self, group_id: str) -> bool:
        """Tell whether a group reads no records of transactions that were aborted."""
        return self._groups.configs.text(group_id, "share.isolation.level") == READ_COMMITTED

    def settings(self, group_id: str) -> ShareSettings:
        """Return how a group shares."""
        number = self._groups.configs.number
        return ShareSettings(
            number(group_id, "share.record.lock.duration.ms"),
            number(group_id, "share.delivery.count.limit"),
            number(group_id, "share.partition.max.record.locks"),
        )

    def progress(self, group_id: str, place: Place, log: PartitionLog) -> Progress:
        """Return how far a group is in a partition."""
        found = self.find(group_id, place)
        if found is None or found.written is None:
            return Progress(UNKNOWN, UNKNOWN)
        return Progress(found.written, log.end_offset - found.start - found.done)

    def begin_at(self, group_id: str, place: Place, start: int) -> None:
        """Let a group begin a partition anew at an offset; a negative one is not known yet."""
        self._drop(group_id, [place])
        if start >= 0:
            self._put(group_id, place, start).written = start

    def forget_topic(self, group_id: str, topic_id: bytes) -> None:
        """Forget how far a group is in a topic."""
        places = self._by_group.get(group_id, {})
        self._drop(group_id, [place for place in places if place[0] == topic_id])

    def forget_group(self, group_id: str) -> None:
        """Forget how far a group is."""
        self._drop(group_id, list(self._by_group.get(group_id, {})))

    def forget_unread(self, group_id: str) -> None:
        """Forget partitions that nobody reads any more and without progress, as Kafka does.

        Who reads them again begins where the group's settings say.
        """
        places = self._by_group.get(group_id, {})
        self._drop(group_id, [place for place, each in places.items() if each.written is None])

    def forget_deleted(self, topic_id: bytes) -> None:
        """Forget a topic that was deleted. May pause."""
        for group_id in in_turns(list(self._by_group)):
            self.forget_topic(group_id, topic_id)
        for group in in_turns(list(self._groups.table.groups.values())):
            if isinstance(group, ShareGroup):
                group.unshare(topic_id)

    def release(self, group_id: str, member: str, places: Iterable[Place]) -> None:
        """Take what a member has of some partitions away from it. May pause."""
        for place in in_turns(list(places)):
            found = self.find(group_id, place)
            if found is not None:
                found.release(member)

    def _put(self, group_id: str, place: Place, start: int) -> SharePartition:
        account = self._groups.account
        account.take(_PARTITION_BYTES)
        settings: Callable[[], ShareSettings] = partial(self.settings, group_id)
        made = SharePartition(self._clock, settings, start, account)
        self._by_group.setdefault(group_id, {})[place] = made
        return made

    def _drop(self, group_id: str, places: Iterable[Place]) -> None:
        of_group = self._by_group.get(group_id, {})
        for place in places:
            found = of_group.pop(place, None)
            if found is not None:
                found.close()
                self._groups.account.give(_PARTITION_BYTES)
        if not of_group:
            self._by_group.pop(group_id, None)

    def _start(self, group_id: str, log: PartitionLog) -> int:
        reset = self._groups.configs.text(group_id, "share.auto.offset.reset")
        if reset == EARLIEST:
            return log.start_offset
        if reset.startswith(BY_DURATION):
            ago = duration_ms(reset.removeprefix(BY_DURATION)) or 0
            found = find_time(log, self._clock.now_ms() - ago)
            return log.end_offset if found is None else found.offset
        return log.end_offset
