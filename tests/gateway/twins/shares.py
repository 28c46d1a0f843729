"""Members of share groups, which acquire records and acknowledge them."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.protocol.messages import ApiKey as Key
from aclbroker.protocol.messages import share_acknowledge as sa
from aclbroker.protocol.messages import share_fetch as sf
from aclbroker.protocol.messages import share_group_describe as sgd
from aclbroker.protocol.messages import share_group_heartbeat as sh
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.requests import codes
from tests.gateway.twins.records import Story, produced
from tests.gateway.twins.sides import CLOSED, SUPER, Place
from tests.gateway.twins.world import World

_REFUSED: Final = 29


class _Member:
    """A member of a share group with a share session at the leader of a partition."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.group, self.topic = world.names.new_group(), world.random.choice(("t1", "t2", "t3"))
        self.member_id, self.user = f"{self.group}-s", world.user()
        self.coordinator = Place(self.user, world.coordinator(self.group))
        # A session ends with its connection, which other requests may close.
        number = world.names.new_number()
        self.leader = Place(self.user, world.leader(self.topic, 0), number)
        self.epoch = 0

    @property
    def topic_id(self) -> bytes:
        """The id of the topic that the member reads."""
        return self.world.names.ids.get(self.topic, ZERO_UUID)

    def beat(self, epoch: int, topics: list[str] | None) -> None:
        """Send a heartbeat."""
        request = sh.ShareGroupHeartbeatRequest(self.group, self.member_id, epoch, None, topics)
        self.world.ask(self.coordinator, Key.SHARE_GROUP_HEARTBEAT, 1, request)

    def fetch(self) -> Any:
        """Acquire records; return the answer."""
        random = self.world.random
        parts = [sf.FetchPartition(index) for index in range(random.choice((1, 2)))]
        named = self.epoch == 0 or random.random() < 0.3
        topics = [sf.FetchTopic(self.topic_id, parts)] if named else []
        limits = 0, 0, 1 << 20, 100, 100
        request = sf.ShareFetchRequest(
            self.group, self.member_id, self.epoch, *limits, topics=topics
        )
        return self._asked(Key.SHARE_FETCH, request)

    def acknowledge(self, first: int, last: int) -> None:
        """Accept, release or reject records of the partition 0."""
        kind = self.world.random.choice((1, 2, 3))
        batches = [sa.AcknowledgementBatch(first, last, [kind])]
        topic = sa.AcknowledgeTopic(self.topic_id, [sa.AcknowledgePartition(0, batches)])
        request = sa.ShareAcknowledgeRequest(self.group, self.member_id, self.epoch, topics=[topic])
        self._asked(Key.SHARE_ACKNOWLEDGE, request)

    def _asked(self, key: Key, request: Any) -> Any:
        answer = self.world.ask(self.leader, key, self.world.version(key), request)
        is_over = answer is CLOSED or answer.error_code
        if not is_over and _REFUSED in codes(answer):
            self.world.twins.renames.revoked.add(self.group)
        self.epoch = 0 if is_over else self.epoch + 1
        return answer


def share_group(world: World) -> Story:
    """Read as a member of a share group, acknowledge, and end the session."""
    member = _Member(world)
    member.beat(0, [member.topic])
    yield
    for _ in range(world.random.randint(2, 5)):
        produced(world, SUPER, member.topic)
        answer = member.fetch()
        yield
        for first, last in _acquired(answer)[:1] if member.epoch else ():
            member.acknowledge(first, last)
            yield
    described = sgd.ShareGroupDescribeRequest([member.group], True)
    place = Place(world.user(), member.coordinator.node)
    world.ask(place, Key.SHARE_GROUP_DESCRIBE, 1, described)
    yield
    last_request = sf.ShareFetchRequest(member.group, member.member_id, -1)
    world.ask(member.leader, Key.SHARE_FETCH, 1, last_request)
    member.beat(-1, None)


def _acquired(answer: Any) -> list[tuple[int, int]]:
    """Return the first and last offsets that a member has acquired of the partition 0."""
    return [
        (batch.first_offset, batch.last_offset)
        for topic in answer.responses
        for partition in topic.partitions
        if partition.partition_index == 0
        for batch in partition.acquired_records
    ]
