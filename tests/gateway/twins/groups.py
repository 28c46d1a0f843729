"""Members of groups of both protocols, which commit offsets."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.memory.groups.consumer_protocol import assignment_bytes
from aclbroker.protocol.messages import ApiKey as Key
from aclbroker.protocol.messages import consumer_group_describe as cgd
from aclbroker.protocol.messages import consumer_group_heartbeat as ch
from aclbroker.protocol.messages import delete_groups as dgr
from aclbroker.protocol.messages import describe_groups as dg
from aclbroker.protocol.messages import heartbeat as h
from aclbroker.protocol.messages import join_group as jg
from aclbroker.protocol.messages import leave_group as lg
from aclbroker.protocol.messages import offset_commit as oc
from aclbroker.protocol.messages import offset_fetch as of
from aclbroker.protocol.messages import sync_group as sg
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gateway.twins.records import Story
from tests.gateway.twins.requests import LONG_MS
from tests.gateway.twins.sides import CLOSED, SUPER, Ask, Here, Place
from tests.gateway.twins.world import World
from tests.memory.groups.support import subscription

_OF_SECOND: Final = 3
"""The number of the connections of second members, which may be the same user's."""


class _Member:
    """A member of a classic group."""

    def __init__(self, world: World, group: str, coordinator: int, number: int = 0) -> None:
        self.world, self.group = world, group
        self.place = Place(world.user(), coordinator, number)
        self.member_id, self.generation, self.leader = "", -1, ""
        self.others: Any = ()

    def request(self) -> Any:
        """Return the request to join."""
        protocols = [
            jg.JoinGroupRequestProtocol("range", subscription("t1", "t2", version=1) + bytes(4))
        ]
        return jg.JoinGroupRequest(
            self.group, LONG_MS, LONG_MS, self.member_id, None, "consumer", protocols
        )

    def join(self, version: int) -> int:
        """Join as clients do; return the error code."""
        answer = self.world.ask(self.place, Key.JOIN_GROUP, version, self.request())
        if answer is not CLOSED and answer.error_code == 79:
            self.member_id = answer.member_id
            answer = self.world.ask(self.place, Key.JOIN_GROUP, version, self.request())
        return self.joined(answer)

    def joined(self, answer: Any) -> int:
        """Take the answer to a JoinGroup; return its error code."""
        if answer is CLOSED:
            return -1
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leader, self.others = answer.leader, answer.members
        return int(answer.error_code)

    def sync_request(self) -> Any:
        """Return the SyncGroup; that of the leader has the assignment."""
        given = [
            sg.SyncGroupRequestAssignment(other.member_id, assignment_bytes({"t1": [number]}, 1))
            for number, other in enumerate(self.others if self.leader == self.member_id else ())
        ]
        return sg.SyncGroupRequest(
            self.group, self.generation, self.member_id, None, "consumer", "range", given
        )

    def leave(self, place: Place) -> None:
        """Leave the group, by a request of any user."""
        identity = lg.MemberIdentity(self.member_id)
        request = lg.LeaveGroupRequest(self.group, self.member_id, [identity])
        self.world.ask(place, Key.LEAVE_GROUP, self.world.version(Key.LEAVE_GROUP), request)

    def beat(self) -> int:
        """Send a heartbeat; return the error code."""
        request = h.HeartbeatRequest(self.group, self.generation, self.member_id)
        version = self.world.version(Key.HEARTBEAT)
        answer = self.world.ask(self.place, Key.HEARTBEAT, version, request)
        return -1 if answer is CLOSED else int(answer.error_code)


def classic_group(world: World) -> Story:
    """Join a group of the classic protocol with one member and with two, commit and leave."""
    group = world.names.new_group()
    coordinator = world.coordinator(group)
    first = _Member(world, group, coordinator)
    version = world.version(Key.JOIN_GROUP, 1)
    if first.join(version):
        return
    sync_version = world.version(Key.SYNC_GROUP)
    world.ask(first.place, Key.SYNC_GROUP, sync_version, first.sync_request())
    yield
    first.beat()
    yield
    yield from _commits(world, first.place, group, first.generation, first.member_id)
    second = _Member(world, group, coordinator, number=_OF_SECOND)
    _rebalance(world, first, second)
    yield
    world.ask(
        Place(world.user(), coordinator),
        Key.DESCRIBE_GROUPS,
        world.version(Key.DESCRIBE_GROUPS),
        dg.DescribeGroupsRequest([group], True),
    )
    yield
    yield from _commits(world, first.place, group, first.generation, first.member_id)
    for member in (first, second):
        member.leave(member.place)
        yield


def _rebalance(world: World, first: _Member, second: _Member) -> None:
    """Let a second member join. Both wait for the other one, so nothing may come between."""
    version = world.version(Key.JOIN_GROUP, 4)
    answer = world.ask(second.place, Key.JOIN_GROUP, version, second.request())
    if answer is CLOSED or answer.error_code != 79 or first.beat():
        return
    second.member_id = answer.member_id
    joining = second.request()
    world.twins.send(second.place, Key.JOIN_GROUP, version, joining)
    beat = h.HeartbeatRequest(first.group, first.generation, first.member_id)
    answered = world.twins.until(first.place, Key.HEARTBEAT, 4, beat, lambda got: got.error_code)
    code = answered.error_code
    again = first.request()
    if code == 27:
        world.twins.send(first.place, Key.JOIN_GROUP, version, again)
    else:
        # The second member waits until the first one has left.
        first.leave(Place(SUPER, first.place.node))
    second.joined(world.twins.answer(second.place, Key.JOIN_GROUP, version, joining))
    if code != 27:
        return
    first.joined(world.twins.answer(first.place, Key.JOIN_GROUP, version, again))
    requests = [(each, each.sync_request()) for each in (first, second)]
    for member, request in requests:
        world.twins.send(member.place, Key.SYNC_GROUP, 5, request)
    for member, request in requests:
        world.twins.answer(member.place, Key.SYNC_GROUP, 5, request)


def _commits(world: World, place: Place, group: str, epoch: int, member_id: str) -> Story:
    """Commit offsets of a member, and read them."""
    names = world.names
    version = world.version(Key.OFFSET_COMMIT)
    chosen = {names.topic() for _ in range(2)}
    part = oc.OffsetCommitRequestPartition(0, world.random.randrange(9), committed_metadata="x")
    entries = [
        oc.OffsetCommitRequestTopic("", names.ids.get(topic, ZERO_UUID), [part])
        if version >= 10
        else oc.OffsetCommitRequestTopic(topic, ZERO_UUID, [part])
        for topic in sorted(chosen)
    ]
    request = oc.OffsetCommitRequest(group, epoch, member_id, topics=entries)
    world.ask(place, Key.OFFSET_COMMIT, version, request)
    yield
    version = world.version(Key.OFFSET_FETCH)
    asked = of.OffsetFetchRequest(
        group,
        None if version >= 2 else [of.OffsetFetchRequestTopic("t1", [0])],
        [of.OffsetFetchRequestGroup(group, None, -1, None)],
    )
    world.ask(Place(world.user(), place.node), Key.OFFSET_FETCH, version, asked)
    yield


def consumer_group(world: World) -> Story:
    """Join a group of KIP-848 with members that subscribe to names, commit and leave."""
    group = world.names.new_group()
    coordinator = world.coordinator(group)
    members: list[tuple[Place, str, int]] = []
    for number in range(world.random.choice((1, 2))):
        place = Place(world.user(), coordinator)
        answer = _joined(world, place, group, f"{group}-m{number}")
        if answer is not CLOSED and not answer.error_code:
            members.append((place, answer.member_id, answer.member_epoch))
        yield
    for place, member_id, epoch in members:
        beat = ch.ConsumerGroupHeartbeatRequest(group, member_id, epoch, topic_partitions=[])
        world.ask(place, Key.CONSUMER_GROUP_HEARTBEAT, 1, beat)
        yield
        yield from _commits(world, place, group, epoch, member_id)
    described = cgd.ConsumerGroupDescribeRequest([group], True)
    world.ask(Place(world.user(), coordinator), Key.CONSUMER_GROUP_DESCRIBE, 1, described)
    yield
    for place, member_id, _ in members:
        leave = ch.ConsumerGroupHeartbeatRequest(group, member_id, -1)
        world.ask(place, Key.CONSUMER_GROUP_HEARTBEAT, 1, leave)
        yield


def _joined(world: World, place: Place, group: str, member_id: str) -> Any:
    """Return the answer to the first heartbeat of a member."""
    subscribed = sorted({world.names.topic() for _ in range(2)})
    request = ch.ConsumerGroupHeartbeatRequest(
        group, member_id, 0, None, None, LONG_MS, subscribed, topic_partitions=[]
    )
    version = world.version(Key.CONSUMER_GROUP_HEARTBEAT)
    return world.ask(place, Key.CONSUMER_GROUP_HEARTBEAT, version, request)


def by_regex(world: World) -> Story:
    """Join a group by a regular expression; rights and topics stay as they are meanwhile.

    The gateway sends the names of topics in place of the expression. A coordinator that has these
    at once counts other epochs, so each side goes on with its own.
    """
    group = world.names.new_group()
    # The gateway checks the expression before the coordinator says that it is another node.
    place = Place(world.user(), world.coordinator(group, exact=True))
    pattern = world.random.choice(("fixed-.*", "fixed-1|t9", "none.*", "("))

    def conversation(ask: Ask, here: Here) -> Any:
        return _assigned_by_regex(ask, here, group, pattern)

    world.twins.on_each(place, conversation)
    # The epochs of the group differ, so no other request may see it.
    deletion = dgr.DeleteGroupsRequest([group])
    world.ask(Place(SUPER, place.node), Key.DELETE_GROUPS, 2, deletion)
    yield


def _assigned_by_regex(ask: Ask, here: Here, group: str, pattern: str) -> Any:
    """Return the codes of a member's heartbeats, and its partitions before it leaves."""
    key, member_id = Key.CONSUMER_GROUP_HEARTBEAT, f"{group}-r"
    request = ch.ConsumerGroupHeartbeatRequest(
        group, member_id, 0, None, None, LONG_MS, None, pattern, topic_partitions=[]
    )
    answer = ask(key, 1, request)
    codes, owned = [answer.error_code], set()
    for _ in range(3):
        if answer.error_code:
            break
        if answer.assignment is not None:
            owned = {
                (here(topic.topic_id), index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            }
        beat = ch.ConsumerGroupHeartbeatRequest(group, member_id, answer.member_epoch)
        answer = ask(key, 1, beat)
        codes.append(answer.error_code)
    left = ask(key, 1, ch.ConsumerGroupHeartbeatRequest(group, member_id, -1))
    return [*codes, left.error_code], owned
