"""A group of the classic protocol: its members, its state, and what it would become.

The protocol itself, with its times, is in `classic`. The rules are those of Kafka's ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar, Final, NamedTuple
from uuid import uuid4

from aclbroker.broker.memory.clock import Timer
from aclbroker.broker.memory.groups.consumer_protocol import PROTOCOL_TYPE, Malformed, read_topics
from aclbroker.broker.memory.groups.group import Account, CheckPartition, Full, Group, GroupError
from aclbroker.protocol.errors import ErrorCode

_MEMBER_BYTES: Final = 2_000
"""What a member takes without what it sends, about."""

_MOST_READ: Final = 1 << 20
"""Of more bytes than these the broker does not read which topics members have subscribed to."""

Protocols = Sequence[tuple[str, bytes]]
"""The protocols (assignors) that a member can speak, the best first, each with its metadata."""


class State(Enum):
    """The state of a group, as ListGroups tells it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class JoinedMember(NamedTuple):
    """A member as the leader is told of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The answer to a JoinGroup."""

    code: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: Sequence[JoinedMember] = ()
    skip_assignment: bool = False


class SyncAnswer(NamedTuple):
    """The answer to a SyncGroup."""

    code: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


SayJoin = Callable[[JoinAnswer], None]
SaySync = Callable[[SyncAnswer], None]


class ClassicMember:
    """A member; ``on_join`` and ``on_sync`` are called when it is answered, None if it waits not.

    ``is_new`` holds until its first rebalance is over.
    """

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        protocol_type: str,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.assignment = b""
        self.is_new = False
        self.on_join: SayJoin | None = None
        self.on_sync: SaySync | None = None
        self.timer: Timer | None = None

    @property
    def takes(self) -> int:
        """How many bytes the member takes, about."""
        texts = 2 * len(self.member_id) + len(self.client_id) + len(self.instance_id or "")
        return _MEMBER_BYTES + texts + len(self.assignment) + protocols_bytes(self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Return what the member said with a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def answer_join(self, answer: JoinAnswer) -> bool:
        """Answer the JoinGroup of the member, if there is one; tell whether there was."""
        say, self.on_join = self.on_join, None
        if say is not None:
            say(answer)
        return say is not None

    def answer_sync(self, answer: SyncAnswer) -> bool:
        """Answer the SyncGroup of the member, if there is one; tell whether there was."""
        say, self.on_sync = self.on_sync, None
        if say is not None:
            say(answer)
        return say is not None

    def cancel_timer(self) -> None:
        """Let the member's time not run out."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ClassicGroup(Group):
    """A group of the classic protocol.

    ``pending`` has the ids that were given away and nobody has joined with yet, with their timers;
    ``unsynced`` the ids of members whose SyncGroup is yet to come. ``since_ms`` is since when it is
    in its state. ``join_timer`` ends waiting for members to join, ``sync_timer`` to sync.
    """

    kind: ClassVar = "classic"

    def __init__(self, group_id: str, account: Account, since_ms: int, generation: int = 0) -> None:
        super().__init__(group_id)
        self.account = account
        self.state = State.EMPTY
        self.former_state = State.DEAD
        self.since_ms = since_ms
        self.generation = generation
        self.type_of_members: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending: dict[str, Timer] = {}
        self.unsynced: set[str] = set()
        self.has_newcomer = False
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None
        self._supported: Counter[str] = Counter()
        self._topics: tuple[int, frozenset[str] | None] | None = None

    @property
    def state_name(self) -> str:
        """The state as ListGroups tells it."""
        return self.state.value

    @property
    def protocol_type(self) -> str:
        """The type of the protocol that the members speak, "" if there was none yet."""
        return self.type_of_members or ""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members; somebody may be about to join."""
        return self.state is State.EMPTY

    @property
    def waiting(self) -> int:
        """How many members wait for the end of the rebalance."""
        return sum(member.on_join is not None for member in self.members.values())

    @property
    def have_all_joined(self) -> bool:
        """Whether all members wait for the end of the rebalance and nobody is about to join."""
        return not self.pending and all(each.on_join for each in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance may take: the longest that a member wants."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def become(self, state: State, now_ms: int) -> None:
        """Go over into another state."""
        self.former_state, self.state = self.state, state
        self.since_ms = now_ms

    def new_member_id(self, client_id: str, instance_id: str | None) -> str:
        """Return an id for a member that has none."""
        return f"{client_id if instance_id is None else instance_id}-{uuid4()}"

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Tell whether a member with these protocols can be in the group."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        count = len(self.members)
        return protocol_type == self.type_of_members and any(
            self._supported[name] == count for name in {name for name, _ in protocols}
        )

    def add(self, member: ClassicMember) -> None:
        """Add a member that the group `supports`; raises Full if there is no room."""
        self.account.take(member.takes)
        if not self.members:
            self.type_of_members = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._supported.update({name for name, _ in member.protocols})
        self.leader = self.leader or member.member_id
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or one that is about to join, if it is there."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.account.give(member.takes)
            member.cancel_timer()
            self._supports_no_more(member)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.unsynced.discard(member_id)

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Let a member speak other protocols; raises Full if there is no room."""
        self.account.take(protocols_bytes(protocols) - protocols_bytes(member.protocols))
        self._supports_no_more(member)
        member.protocols = protocols
        self._supported.update({name for name, _ in protocols})
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static(self, member: ClassicMember, new_id: str) -> None:
        """Give a static member another id; who has the former one is fenced."""
        old_id, took = member.member_id, member.takes
        member.answer_join(JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
        member.cancel_timer()
        member.member_id = new_id
        self.account.give(took - member.takes)
        # Members stay in order, so that the first of them does.
        self.members = {each.member_id: each for each in self.members.values()}
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.unsynced:
            self.unsynced = self.unsynced - {old_id} | {new_id}

    def assign(self, assignments: dict[str, bytes]) -> None:
        """Give each member its assignment, an empty one if there is none; raises Full."""
        new = {each: assignments.get(each, b"") for each in self.members}
        former = sum(len(each.assignment) for each in self.members.values())
        self.account.take(sum(map(len, new.values())) - former)
        for member_id, assignment in new.items():
            self.members[member_id].assignment = assignment

    def _supports_no_more(self, member: ClassicMember) -> None:
        for name in {name for name, _ in member.protocols}:
            self._supported[name] -= 1
            if not self._supported[name]:
                del self._supported[name]

    def add_pending(self, member_id: str, timer: Timer) -> None:
        """Note that an id was given away, with which somebody may join; raises Full."""
        try:
            self.account.take(_MEMBER_BYTES + len(member_id))
        except Full:
            timer.cancel()
            raise
        self.pending[member_id] = timer

    def forget_pending(self, member_id: str) -> None:
        """Forget that an id was given away."""
        timer = self.pending.pop(member_id, None)
        if timer is not None:
            timer.cancel()
            self.account.give(_MEMBER_BYTES + len(member_id))

    def may_elect(self) -> bool:
        """Let a member that waits be the leader, if the leader does not; tell whether one is."""
        if self.leader is None:
            return False
        if not self.members[self.leader].on_join:
            waiting = (each.member_id for each in self.members.values() if each.on_join)
            chosen = next(waiting, None)
            if chosen is None:
                return False
            self.leader = chosen
        return True

    def select_protocol(self) -> str:
        """Return the protocol that most members prefer of those that all can speak."""
        count = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            names = (name for name, _ in member.protocols if self._supported[name] == count)
            votes[next(names)] += 1
        return max(votes, key=votes.__getitem__)

    def next_generation(self, now_ms: int) -> None:
        """Begin the next generation with the members that there are."""
        self.generation += 1
        self.unsynced.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.become(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)

    def joined_members(self) -> list[JoinedMember]:
        """Return the members as the leader is told of them."""
        return [
            JoinedMember(each.member_id, each.instance_id, each.metadata(self.protocol_name))
            for each in self.members.values()
        ]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return why somebody is not this member, NONE if it is."""
        if instance_id is not None:
            existing = self.static_members.get(instance_id)
            if existing is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if existing != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        transactional: bool,
    ) -> CheckPartition | None:
        """Raise GroupError if who says to be this member may not commit offsets.

        Who says nothing may where there are no members, and in a transaction always.
        """
        if epoch < 0 and self.state is State.EMPTY:
            return None
        if epoch >= 0 or member_id or instance_id is not None:
            code = self.check_member(member_id, instance_id)
            if code:
                raise GroupError(code)
            if epoch != self.generation:
                raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        elif not transactional:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is State.COMPLETING_REBALANCE:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let everybody fetch offsets."""

    def check_offset_delete(self) -> None:
        """Raise GroupError with NON_EMPTY_GROUP if members read what the broker does not know."""
        if not self.is_empty and self.type_of_members != PROTOCOL_TYPE:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """Raise GroupError with NON_EMPTY_GROUP if the group has members."""
        if not self.is_empty:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether members read a topic; of consumers it is assumed if it cannot be known."""
        topics = self.subscribed_topics()
        return self.type_of_members == PROTOCOL_TYPE if topics is None else topic in topics

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that consumers of the group read, None if that cannot be known."""
        if self.type_of_members != PROTOCOL_TYPE:
            return None
        if self._topics is None or self._topics[0] != self.generation:
            self._topics = self.generation, self._read_topics()
        return self._topics[1]

    def _read_topics(self) -> frozenset[str] | None:
        metadata = {each.metadata(self.protocol_name) for each in self.members.values()}
        if sum(map(len, metadata)) > _MOST_READ:
            return None
        try:
            return frozenset(topic for each in metadata for topic in read_topics(each))
        except Malformed:
            return None

    def retention_from(self, committed_ms: int) -> int | None:
        """Return since when an offset is unused: since nobody is in the group, or was committed."""
        if self.type_of_members is None:
            return committed_ms
        if self.state is State.EMPTY:
            return self.since_ms
        stable = self.state is State.STABLE and self.subscribed_topics() is not None
        return committed_ms if stable else None

    def close(self) -> None:
        """Let no time of the group run out any more; what it took is free."""
        for timer in (self.join_timer, self.sync_timer):
            if timer is not None:
                timer.cancel()
        for member_id in [*self.members, *self.pending]:
            self.remove(member_id)


def protocols_bytes(protocols: Protocols) -> int:
    """Return what the protocols of a member take, about."""
    return sum(100 + len(name) + len(metadata) for name, metadata in protocols)
