"""Members of groups of both protocols that go on in random order, and somebody who looks on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiokafka.record.memory_records import MemoryRecords

from aclbroker.broker.memory.groups.consumer_protocol import assignment_bytes, read_assignment
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import consumer_group_heartbeat as ch
from aclbroker.protocol.messages import heartbeat as h
from aclbroker.protocol.messages import join_group as jg
from aclbroker.protocol.messages import leave_group as lg
from aclbroker.protocol.messages import offset_commit as oc
from aclbroker.protocol.messages import offset_fetch as of
from aclbroker.protocol.messages import sync_group as sg
from tests.memory.groups.support import subscription
from tests.memory_cluster import raw
from tests.memory_cluster.at_random import Actor, Ask
from tests.memory_cluster.random_world import (
    CLASSIC,
    FED,
    MODERN,
    PARTITIONS,
    TOPIC,
    Part,
    World,
)

_SESSION_MS: Final = 10_000
_REBALANCE_MS: Final = 8_000
_FETCHED: Final = 400
_SUBSCRIBED: Final = subscription(TOPIC, version=1) + bytes(4)


def visible(answer: Any) -> Iterator[tuple[int, bytes | None]]:
    """Yield what a reader of committed records takes of a Fetch: the next offsets, and values."""
    aborted = sorted(answer.aborted_transactions or (), key=lambda each: each.first_offset)
    records = MemoryRecords(bytes(answer.records or b""))
    passed: set[int] = set()
    while records.has_next():
        each = records.next_batch()
        while aborted and aborted[0].first_offset <= each.base_offset:
            passed.add(aborted.pop(0).producer_id)
        if each.is_control_batch:
            passed.discard(each.producer_id)
        elif not (each.is_transactional and each.producer_id in passed):
            yield from ((record.offset + 1, record.value) for record in each)
        yield each.next_offset, None


class _Reader:
    """What members of both protocols do alike: they read on from what was committed."""

    group: str

    def __init__(self, world: World) -> None:
        self.world = world
        self.positions: dict[int, int] = {}
        self.member_id = ""
        self.epoch = 0

    def fetch(self) -> Part:
        """Read some records of one partition."""
        index = self.world.random.choice(list(self.positions))
        wanted = [raw.partition(index, self.positions[index], _FETCHED)]
        request = raw.request({TOPIC: wanted}, isolation_level=1)
        answer = yield Ask(ApiKey.FETCH, 12, request)
        if answer is None or answer.error_code:
            return
        for offset, value in visible(answer.responses[0].partitions[0]):
            if value is not None:
                self.world.consumed[self.group][index, offset] = value
            self.positions[index] = max(self.positions[index], offset)

    def commit(self, *indexes: int) -> Part:
        """Commit how far it has come; returns the code, None if that was lost."""
        some = {each: self.positions[each] for each in indexes or self.positions}
        partitions = [oc.OffsetCommitRequestPartition(*each) for each in some.items()]
        topics = [oc.OffsetCommitRequestTopic(TOPIC, partitions=partitions)]
        request = oc.OffsetCommitRequest(self.group, self.epoch, self.member_id, topics=topics)
        answer = yield Ask(ApiKey.OFFSET_COMMIT, 9, request)
        if answer is None:
            return None
        [code] = {each.error_code for each in answer.topics[0].partitions}
        if not code:
            for index, offset in some.items():
                self.world.accept(self.group, index, offset)
        return code

    def take(self, indexes: set[int]) -> Part:
        """Go on with partitions where their group has come to."""
        while indexes:
            offsets = yield from committed(self.group)
            if offsets is not None:
                self.positions |= {each: max(0, offsets[each]) for each in indexes}
                return


def committed(group: str) -> Part:
    """Return the offsets that a group has committed, None if that cannot be known now."""
    topics = [of.OffsetFetchRequestTopics(TOPIC, partition_indexes=list(range(PARTITIONS)))]
    request = of.OffsetFetchRequest(
        groups=[of.OffsetFetchRequestGroup(group, None, -1, topics)], require_stable=True
    )
    answer = yield Ask(ApiKey.OFFSET_FETCH, 9, request)
    if answer is None or answer.groups[0].error_code:
        return None
    parts = answer.groups[0].topics[0].partitions
    if any(each.error_code for each in parts):
        return None
    return {each.partition_index: each.committed_offset for each in parts}


class Classic(_Reader):
    """A member of the classic protocol."""

    group = CLASSIC

    def read(self) -> Actor:
        """Join and read until there is nothing more to read."""
        while not self.world.is_done(self.group):
            self.positions = {}
            if (yield from self._joined()):
                self.world.rebalances += 1
                yield from self._stable()
        yield from self._leave()

    def _joined(self) -> Part:
        protocols = [jg.JoinGroupRequestProtocol("range", _SUBSCRIBED)]
        times = _SESSION_MS, _REBALANCE_MS
        join = jg.JoinGroupRequest(self.group, *times, self.member_id, None, "consumer", protocols)
        answer = yield Ask(ApiKey.JOIN_GROUP, 9, join)
        if answer is None or self._is_lost(answer.error_code) or answer.error_code not in (0, 79):
            return False
        self.member_id, self.epoch = answer.member_id, answer.generation_id
        if answer.error_code:
            return False
        given = _shared_out(answer.members) if answer.leader == self.member_id else []
        sync = sg.SyncGroupRequest(
            self.group, self.epoch, self.member_id, None, "consumer", "range", given
        )
        answer = yield Ask(ApiKey.SYNC_GROUP, 5, sync)
        if answer is None or self._is_lost(answer.error_code) or answer.error_code:
            return False
        yield from self.take(set(read_assignment(answer.assignment).get(TOPIC, [])))
        return True

    def _is_lost(self, code: int) -> bool:
        if code == 25:
            self.member_id = ""
        return code in (22, 25)

    def _stable(self) -> Part:
        """Read until the group rebalances, or somebody else has its place."""
        random = self.world.random
        while not self.world.is_done(self.group):
            code: int | None = 0
            chance = random.random()
            if chance < 0.6 and self.positions:
                yield from self.fetch()
            elif chance < 0.75 and self.positions:
                code = yield from self.commit()
            elif chance < 0.98:
                beat = h.HeartbeatRequest(self.group, self.epoch, self.member_id)
                answer = yield Ask(ApiKey.HEARTBEAT, 4, beat)
                code = None if answer is None else answer.error_code
            else:
                yield from self._leave()
                return
            if code == 27 and self.positions:
                yield from self.commit()
            if code == 27 or (code and self._is_lost(code)):
                return

    def _leave(self) -> Part:
        request = lg.LeaveGroupRequest(self.group, members=[lg.MemberIdentity(self.member_id)])
        yield Ask(ApiKey.LEAVE_GROUP, 5, request)
        self.member_id = ""


def _shared_out(members: Any) -> list[sg.SyncGroupRequestAssignment]:
    """Return an assignment of the partitions to members in turn."""
    ids = sorted(each.member_id for each in members)
    return [
        sg.SyncGroupRequestAssignment(
            each,
            assignment_bytes({TOPIC: list(range(PARTITIONS))[place :: len(ids)]}, 1),
        )
        for place, each in enumerate(ids)
    ]


class Modern(_Reader):
    """A member of the protocol of KIP-848."""

    group = MODERN

    def read(self, member_id: str) -> Actor:
        """Join and read until there is nothing more to read."""
        self.member_id = member_id
        random = self.world.random
        while not self.world.is_done(self.group):
            yield from self._beat()
            for _ in range(random.randrange(6) if self.epoch > 0 and self.positions else 0):
                if random.random() < 0.8:
                    yield from self.fetch()
                else:
                    yield from self.commit()
            if random.random() < 0.02:
                yield from self._leave()
        yield from self._leave()

    def _beat(self) -> Part:
        is_new = self.epoch == 0
        owned = [ch.TopicPartitions(self.world.topic_id, sorted(self.positions))]
        request = ch.ConsumerGroupHeartbeatRequest(
            self.group,
            self.member_id,
            self.epoch,
            rebalance_timeout_ms=_REBALANCE_MS if is_new else -1,
            subscribed_topic_names=[TOPIC] if is_new else None,
            topic_partitions=owned if self.positions else [],
        )
        answer = yield Ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
        if answer is None:
            return
        if answer.error_code in (25, 110):
            self.epoch, self.positions = 0, {}
        if answer.error_code:
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.world.rebalances += 1
            given = {
                index for each in answer.assignment.topic_partitions for index in each.partitions
            }
            if revoked := self.positions.keys() - given:
                yield from self.commit(*revoked)
                self.positions = {i: at for i, at in self.positions.items() if i in given}
            yield from self.take(given - self.positions.keys())

    def _leave(self) -> Part:
        request = ch.ConsumerGroupHeartbeatRequest(self.group, self.member_id, -1)
        yield Ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
        self.epoch, self.positions = 0, {}


def looking_on(world: World, seen: dict[tuple[str, int], int]) -> Actor:
    """Look at what groups have committed, which never goes back, also once when all is done."""
    is_last = False
    while not is_last:
        is_last = world.is_done(CLASSIC) and world.is_done(MODERN)
        for group in (CLASSIC, MODERN, FED):
            offsets = yield from committed(group)
            is_last &= offsets is not None
            for index, offset in (offsets or {}).items():
                assert offset >= seen.get((group, index), -1), f"{group} went back in {index}"
                seen[group, index] = offset
            yield None
