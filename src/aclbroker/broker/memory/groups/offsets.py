"""The offsets that groups have committed, and those that wait for the end of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.group import Account, CheckPartition, Full, Group, GroupError
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.table import GroupTable
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

NO_TOPIC_ID: Final = bytes(16)
_OFFSET_BYTES: Final = 300
"""What an offset takes without its texts, about."""

_FIRST_VERSION_THAT_TELLS_OF_NO_GROUP: Final = 9
_SWEPT_AT_ONCE: Final = 100

Place = tuple[str, int]
"""A topic and the index of a partition."""


class NewOffset(NamedTuple):
    """An offset that a client wants to commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: bytes = NO_TOPIC_ID


class CommittedOffset(NamedTuple):
    """An offset as it is kept.

    ``expires_ms`` is when it is forgotten if its client said that, and ``number`` tells which of
    two offsets came later.
    """

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes
    committed_ms: int
    expires_ms: int | None
    number: int


Offsets = dict[str, dict[int, CommittedOffset]]
"""Offsets by topic and partition."""


def _ignored(_group: Group, _member_id: str) -> None:
    """Take no notice of a commit."""


class GroupOffsets:
    """The offsets of all groups in a table.

    ``heard_of`` is called with a group and the id of a member that may commit, since that tells
    that it is alive.
    """

    def __init__(
        self,
        clock: Clock,
        table: GroupTable,
        settings: GroupSettings,
        heard_of: Callable[[Group, str], None] = _ignored,
    ) -> None:
        self._clock = clock
        self._heard_of = heard_of
        self._table = table
        self._settings = settings
        self._account: Account = table.account
        self._offsets: dict[str, Offsets] = {}
        self._pending: dict[tuple[int, str], Offsets] = {}
        self._open: dict[str, dict[Place, set[int]]] = {}
        self._numbers: Final = count(1)
        table.on_remove.append(self.forget)

    def commit(
        self,
        group_id: str,
        offsets: Sequence[NewOffset],
        *,
        member_id: str = "",
        epoch: int = -1,
        instance_id: str | None = None,
        version: int = 9,
        retention_ms: int = -1,
    ) -> list[ErrorCode]:
        """Keep offsets of a group; returns the error code of each.

        ``epoch`` is the member's generation or, in a group of the newer protocol, its epoch. With
        a negative one a group that does not exist is made, without members. Raises GroupError if
        all are refused.
        """
        check = self._check(group_id, member_id, instance_id, epoch, version)
        if check is not None:
            for each in in_turns(offsets):
                if not self._is_too_large(each):
                    check(each.topic, each.partition)
        expires_ms = None if retention_ms < 0 else self._clock.now_ms() + retention_ms
        return [self._keep(group_id, each, expires_ms) for each in in_turns(offsets)]

    def check_txn_commit(
        self,
        group_id: str,
        member_id: str,
        generation: int,
        instance_id: str | None,
        places: Iterable[Place] = (),
    ) -> ErrorCode:
        """Return why a transaction may not commit offsets of a group, NONE if it may.

        ``places`` are the partitions that it wants to commit; a member's older epoch holds for
        those that it has had since. A group that does not exist is made if the generation is
        negative.
        """
        try:
            if generation >= 0 and group_id not in self._table.groups:
                return ErrorCode.ILLEGAL_GENERATION
            group = self._table.find_or_make(group_id)
            check = group.check_commit(
                member_id, instance_id, generation, version=0, transactional=True
            )
            if check is not None:
                for topic, partition in places:
                    check(topic, partition)
        except Full:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        except GroupError as error:
            if error.code == ErrorCode.STALE_MEMBER_EPOCH:
                return ErrorCode.ILLEGAL_GENERATION
            return error.code
        return ErrorCode.NONE

    def pend(
        self, producer_id: int, group_id: str, offsets: Sequence[NewOffset]
    ) -> list[ErrorCode]:
        """Keep offsets of a transaction until it ends; returns the error code of each.

        The group is made if there is none: `check_txn_commit` says before whether it may.
        """
        try:
            self._table.find_or_make(group_id)
        except Full:
            return [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * len(offsets)
        return [self._pend_one(producer_id, group_id, each) for each in in_turns(offsets)]

    def complete(self, producer_id: int, group_id: str, *, commits: bool) -> Iterator[None]:
        """End a transaction: its offsets of a group hold from now on, or are forgotten.

        Of two offsets of a partition the later one holds, whether of a transaction or not. Each is
        done with before a step of the iterator; the caller may do other work at each.
        """
        while places := _places(self._pending.get((producer_id, group_id), {})):
            for topic, partition in places:
                pending = self._take_pending(producer_id, group_id, (topic, partition))
                if pending is None:
                    continue  # It was deleted while others had their turn.
                former = self.get(group_id, topic, partition)
                if commits and (former is None or former.number < pending.number):
                    self._put(group_id, topic, partition, pending)
                    self._account.give(_bytes_of(topic, former))
                else:
                    self._account.give(_bytes_of(topic, pending))
                yield

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return an offset that holds, None if there is none."""
        return self._offsets.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """Return all offsets of a group that hold, by topic and partition."""
        return self._offsets.get(group_id, {})

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Tell whether a transaction that has not ended commits an offset of a partition."""
        return (topic, partition) in self._open.get(group_id, ())

    def delete(self, group_id: str, topic: str, partition: int) -> None:
        """Forget a group's offset of a partition, in transactions as well."""
        self._remove(group_id, topic, partition)
        for producer_id in self._open.get(group_id, {}).get((topic, partition), set()).copy():
            pending = self._take_pending(producer_id, group_id, (topic, partition))
            self._account.give(_bytes_of(topic, pending))

    def forget(self, group_id: str) -> None:
        """Forget all offsets of a group, in transactions as well."""
        producer_ids = set[int]().union(*self._open.pop(group_id, {}).values())
        forgotten = [self._offsets.pop(group_id, {})]
        forgotten += [self._pending.pop((each, group_id), {}) for each in producer_ids]
        for offsets in forgotten:
            for topic, partition in in_turns(_places(offsets)):
                self._account.give(_bytes_of(topic, offsets[topic].pop(partition)))

    def forget_topic(self, topic: str) -> None:
        """Forget the offsets of a topic that is deleted."""
        for group_id in in_turns(list(self._offsets | self._open)):
            places = set(self._offsets.get(group_id, {}).get(topic, ()))
            places.update(index for name, index in self._open.get(group_id, ()) if name == topic)
            for partition in places:
                self.delete(group_id, topic, partition)

    def sweep(self) -> Iterator[None]:
        """Forget what is out of date, and groups that nobody needs any more.

        Those are groups without members and offsets, of a kind that expires. The caller may do
        other work at each step.
        """
        steps = 0
        for group_id in list(self._table.groups):
            for topic, partitions in list(self.of_group(group_id).items()):
                if self._is_read(group_id, topic):
                    yield  # Whether it is read, members tell: that can be many.
                    continue
                for partition in list(partitions):
                    if self._is_expired(group_id, topic, partition):
                        self.delete(group_id, topic, partition)
                    steps += 1
                    if steps % _SWEPT_AT_ONCE == 0:
                        yield
            self._remove_unused(group_id)
            steps += 1
            if steps % _SWEPT_AT_ONCE == 0:
                yield

    def _is_read(self, group_id: str, topic: str) -> bool:
        group = self._table.groups.get(group_id)
        return group is not None and group.is_subscribed(topic)

    def _remove_unused(self, group_id: str) -> None:
        if self._is_unused(group_id):
            self._table.remove(group_id)

    def _is_unused(self, group_id: str) -> bool:
        group = self._table.groups.get(group_id)
        if group is None or not group.expires or not group.is_empty:
            return False
        return not self._offsets.get(group_id) and not self._open.get(group_id)

    def idle_until(self) -> float:
        """Return the time before which `sweep` has nothing to do, if nothing else happens."""
        if any(map(self._is_unused, self._table.groups)):
            return -inf
        return min(
            (
                self._kept_until(group_id, topic, partition)
                for group_id, by_topic in self._offsets.items()
                for topic, partitions in by_topic.items()
                if not self._is_read(group_id, topic)
                for partition in partitions
            ),
            default=inf,
        )

    def _is_expired(self, group_id: str, topic: str, partition: int) -> bool:
        return self._clock.now_ms() >= self._kept_until(group_id, topic, partition)

    def _kept_until(self, group_id: str, topic: str, partition: int) -> float:
        group = self._table.groups.get(group_id)
        kept = self.get(group_id, topic, partition)
        if group is None or kept is None:
            return inf
        since = group.retention_from(kept.committed_ms)
        if since is None or self.is_unstable(group_id, topic, partition):
            return inf
        until = kept.expires_ms
        return since + self._settings.offsets_retention_ms if until is None else until

    def _check(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, version: int
    ) -> CheckPartition | None:
        if epoch >= 0 and group_id not in self._table.groups:
            if version >= _FIRST_VERSION_THAT_TELLS_OF_NO_GROUP:
                self._table.find(group_id)
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        try:
            group = self._table.find_or_make(group_id)
        except Full as full:
            raise GroupError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, full.message) from None
        check = group.check_commit(
            member_id, instance_id, epoch, version=version, transactional=False
        )
        self._heard_of(group, member_id)
        return check

    def _is_too_large(self, offset: NewOffset) -> bool:
        return len(offset.metadata) > self._settings.offset_metadata_max_bytes

    def _keep(self, group_id: str, new: NewOffset, expires_ms: int | None) -> ErrorCode:
        if self._is_too_large(new):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if group_id not in self._table.groups:
            return ErrorCode.GROUP_ID_NOT_FOUND  # It was deleted while others had their turn.
        kept = self._committed(new, expires_ms)
        former = self.get(group_id, new.topic, new.partition)
        try:
            self._account.take(_bytes_of(new.topic, kept) - _bytes_of(new.topic, former))
        except Full:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        self._put(group_id, new.topic, new.partition, kept)
        return ErrorCode.NONE

    def _pend_one(self, producer_id: int, group_id: str, new: NewOffset) -> ErrorCode:
        if self._is_too_large(new):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if group_id not in self._table.groups:
            return ErrorCode.GROUP_ID_NOT_FOUND  # It was deleted while others had their turn.
        kept = self._committed(new, None)
        by_topic = self._pending.get((producer_id, group_id), {})
        former = by_topic.get(new.topic, {}).get(new.partition)
        try:
            self._account.take(_bytes_of(new.topic, kept) - _bytes_of(new.topic, former))
        except Full:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        by_topic = self._pending.setdefault((producer_id, group_id), {})
        by_topic.setdefault(new.topic, {})[new.partition] = kept
        places = self._open.setdefault(group_id, {})
        places.setdefault((new.topic, new.partition), set()).add(producer_id)
        return ErrorCode.NONE

    def _committed(self, new: NewOffset, expires_ms: int | None) -> CommittedOffset:
        return CommittedOffset(
            new.offset,
            new.leader_epoch,
            new.metadata,
            new.topic_id,
            self._clock.now_ms(),
            expires_ms,
            next(self._numbers),
        )

    def _put(self, group_id: str, topic: str, partition: int, kept: CommittedOffset) -> None:
        self._offsets.setdefault(group_id, {}).setdefault(topic, {})[partition] = kept

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        kept = self.get(group_id, topic, partition)
        if kept is None:
            return
        by_topic = self._offsets[group_id]
        self._account.give(_bytes_of(topic, by_topic[topic].pop(partition)))
        if not by_topic[topic]:
            del by_topic[topic]
        if not by_topic:
            del self._offsets[group_id]

    def _take_pending(
        self, producer_id: int, group_id: str, place: Place
    ) -> CommittedOffset | None:
        """Return an offset of a transaction, which is none of it from now on; None without one."""
        by_topic, (topic, partition) = self._pending.get((producer_id, group_id), {}), place
        pending = by_topic.get(topic, {}).pop(partition, None)
        if pending is None:
            return None
        if not by_topic[topic]:
            del by_topic[topic]
        if not by_topic:
            del self._pending[producer_id, group_id]
        self._close(group_id, place, producer_id)
        return pending

    def _close(self, group_id: str, place: Place, producer_id: int) -> None:
        places = self._open.get(group_id, {})
        producers = places.get(place, set())
        producers.discard(producer_id)
        if not producers:
            places.pop(place, None)
        if not places:
            self._open.pop(group_id, None)


def _places(offsets: Offsets) -> list[Place]:
    return [(topic, partition) for topic, some in offsets.items() for partition in some]


def _bytes_of(topic: str, kept: CommittedOffset | None) -> int:
    """Return what an offset takes, about; a character takes at most four bytes."""
    return 0 if kept is None else _OFFSET_BYTES + len(topic) + 4 * len(kept.metadata)
