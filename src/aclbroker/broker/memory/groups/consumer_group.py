"""A group of the protocol in which the broker assigns (KIP-848): its members and their partitions.

The protocol itself is in `consumer`, how a member gets from what it has to what it is to have in
`reconciliation`. The rules are those of Kafka's ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from aclbroker.broker.memory.clock import Timer
from aclbroker.broker.memory.groups.assignors import Assignment
from aclbroker.broker.memory.groups.classic_group import Protocols, protocols_bytes
from aclbroker.broker.memory.groups.consumer_protocol import PROTOCOL_TYPE
from aclbroker.broker.memory.groups.group import Account, CheckPartition, Full, GroupError
from aclbroker.broker.memory.groups.modern_group import ModernGroup
from aclbroker.broker.memory.groups.patterns import NO_PATTERN, MatchedTopics, TopicPattern
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode

LEAVES: Final = -1
"""The epoch with which a member leaves."""

LEAVES_FOR_A_WHILE: Final = -2
"""The epoch with which a static member leaves that will come back."""

_MEMBER_BYTES: Final = 2_000
_FIRST_COMMIT_VERSION: Final = 9

Epochs = dict[bytes, dict[int, int]]
"""Partitions by topic id, each with the epoch in which a member was given it."""


class MemberState(Enum):
    """How far a member is on its way to what it is to have."""

    STABLE = "stable"
    UNREVOKED = "has to give partitions up"
    UNRELEASED = "waits for partitions of others"


class ClassicPart(NamedTuple):
    """What is known of a member that speaks the classic protocol in a group of the newer one."""

    session_timeout_ms: int
    protocols: Protocols


class Told(NamedTuple):
    """The data that a member sends about itself, which count for the memory limit."""

    names: frozenset[str]
    pattern: TopicPattern
    rack_id: str | None
    client_id: str
    client_host: str
    classic: ClassicPart | None


class ConsumerMember:
    """A member; ``assigned`` is what it has, ``revoking`` what it has to give up first.

    ``classic`` is None unless the member speaks the classic protocol. ``timers`` are by what runs
    out: session, rebalance, join, sync.
    """

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = -1
        self.names: frozenset[str] = frozenset()
        self.pattern = NO_PATTERN
        self.assignor: str | None = None
        self.epoch = 0
        self.former_epoch = 0
        self.state = MemberState.STABLE
        self.assigned: Epochs = {}
        self.revoking: Epochs = {}
        self.classic: ClassicPart | None = None
        self.timers: dict[str, Timer] = {}

    @property
    def takes(self) -> int:
        """How many bytes the member takes, about."""
        texts = sum(len(each) + 80 for each in self.names) + len(self.pattern.regex)
        texts += 2 * len(self.member_id) + len(self.client_id)
        texts += len(self.instance_id or "") + len(self.rack_id or "")
        classic = 0 if self.classic is None else protocols_bytes(self.classic.protocols)
        return _MEMBER_BYTES + texts + classic

    @property
    def told(self) -> Told:
        """What the member has told of itself."""
        return Told(
            self.names, self.pattern, self.rack_id, self.client_id, self.client_host, self.classic
        )

    @told.setter
    def told(self, told: Told) -> None:
        self.names, self.pattern, self.rack_id = told.names, told.pattern, told.rack_id
        self.client_id, self.client_host = told.client_id, told.client_host
        self.classic = told.classic

    def become(self, epoch: int) -> None:
        """Go over into an epoch."""
        self.former_epoch, self.epoch = self.epoch, epoch

    def cancel(self, *names: str) -> None:
        """Let times of the member not run out, all if none is named."""
        for name in names or list(self.timers):
            timer = self.timers.pop(name, None)
            if timer is not None:
                timer.cancel()


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """A group of the newer protocol.

    ``owners`` maps partitions to members, and ``resolved`` the patterns of members to topics.
    Members share the topics of an expression only if their clients have the same rights.
    """

    kind: ClassVar = "consumer"

    def __init__(self, group_id: str, account: Account, topics: MemoryTopics) -> None:
        super().__init__(group_id, account, topics)
        self.static_members: dict[str, str] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        self.resolved: dict[TopicPattern, MatchedTopics] = {}

    @property
    def state_name(self) -> str:
        """The state as ListGroups tells it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        settled = all(
            each.state is MemberState.STABLE and each.epoch == self.target_epoch
            for each in self.members.values()
        )
        return "Stable" if settled else "Reconciling"

    @property
    def protocol_type(self) -> str:
        """The type of the protocol that the members speak."""
        return PROTOCOL_TYPE

    def names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member reads, if they exist or not."""
        return member.names | self.matched(member)

    def subscribed_names(self) -> set[str]:
        """Return the names of all topics that members read, if they exist or not; may pause."""
        return super().subscribed_names().union(*[each.names for each in self.resolved.values()])

    def matched(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member's pattern matches."""
        resolved = self.resolved.get(member.pattern)
        return frozenset() if resolved is None else resolved.names

    def patterns(self) -> set[TopicPattern]:
        """Return the patterns of members."""
        return {each.pattern for each in self.members.values() if each.pattern.regex}

    def forget_unused(self) -> None:
        """Drop the topics of patterns that no member has any more."""
        for pattern in self.resolved.keys() - self.patterns():
            del self.resolved[pattern]

    def preferred_assignor(self, default: str) -> str:
        """Return the assignor that most members of the newer protocol name."""
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.assignor is not None and member.classic is None:
                votes[member.assignor] = votes.get(member.assignor, 0) + 1
        return max(votes, key=votes.__getitem__) if votes else default

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """Return the member of an instance id, None if there is none."""
        return self.members.get(self.static_members.get(instance_id, ""))

    def add(self, member: ConsumerMember) -> None:
        """Add a member; raises Full if there is no room."""
        self.account.take(member.takes)
        self.changes += 1
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def tell(self, member: ConsumerMember, told: Told) -> bool:
        """Note what a member tells of itself; tell whether it reads other topics than before.

        Raises Full if there is no room; a member that has told nothing before is removed then.
        """
        before, took = member.told, member.takes
        member.told = told
        try:
            self.account.take(member.takes - took)
        except Full:
            member.told = before
            if not before.client_host:
                self.remove(member)
            raise
        return (before.names, before.pattern) != (told.names, told.pattern)

    def rename(self, member: ConsumerMember, new_id: str) -> None:
        """Give a static member another id, with all that it has; who has that id is removed."""
        other = self.members.get(new_id)
        if other is not None and other is not member:
            self.remove(other)
        old_id, took = member.member_id, member.takes
        self.changes += 1
        member.cancel()
        member.member_id = new_id
        self.account.give(took - member.takes)
        self.members = {each.member_id: each for each in self.members.values()}
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        if old_id in self.target:
            self.target[new_id] = self.target.pop(old_id)
        for owned in self.owners.values():
            for index, owner in owned.items():
                if owner == old_id:
                    owned[index] = new_id

    def remove(self, member: ConsumerMember) -> None:
        """Remove a member; what it had is free."""
        member.cancel()
        self.set_partitions(member, {}, {})
        del self.members[member.member_id]
        self.changes += 1
        self.account.give(member.takes)
        self.forget_target(member.member_id)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        self.forget_unused()

    def set_partitions(self, member: ConsumerMember, assigned: Epochs, revoking: Epochs) -> None:
        """Let a member have partitions, and others that it has to give up, if it is still there."""
        if self.members.get(member.member_id) is not member:
            return
        for topic, some in (*member.assigned.items(), *member.revoking.items()):
            owned = self.owners.get(topic, {})
            for index in some:
                if owned.get(index) == member.member_id:
                    del owned[index]
            if not owned:
                self.owners.pop(topic, None)
        member.assigned, member.revoking = assigned, revoking
        for topic, some in (*assigned.items(), *revoking.items()):
            self.owners.setdefault(topic, {}).update(dict.fromkeys(some, member.member_id))

    def owner(self, topic: bytes, index: int) -> str | None:
        """Return the id of the member that has a partition, None if it is free."""
        return self.owners.get(topic, {}).get(index)

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

        A member may still commit with an older epoch what it has had since then.
        """
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return None
        member = self.find_member(member_id)
        if not transactional and member.classic is None and version < _FIRST_COMMIT_VERSION:
            raise GroupError(ErrorCode.UNSUPPORTED_VERSION)
        if epoch == member.epoch:
            return None
        wrong = _wrong_epoch(member)
        if epoch > member.epoch:
            raise GroupError(wrong)

        def check(topic: str, index: int) -> None:
            topic_id = self.topics.id_of(topic) if self.topics.exists(topic) else b""
            since = member.assigned.get(topic_id, {}).get(index)
            if since is None:
                since = member.revoking.get(topic_id, {}).get(index)
            if since is None or epoch < since:
                raise GroupError(wrong)

        return check

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise GroupError if who says to be this member may not fetch offsets."""
        if member_id is None and epoch < 0:
            return
        member = self.find_member(member_id or "")
        if epoch != member.epoch:
            raise GroupError(_wrong_epoch(member))

    def check_offset_delete(self) -> None:
        """Let offsets be deleted of topics that nobody reads."""

    def check_delete(self) -> None:
        """Raise GroupError with NON_EMPTY_GROUP if the group has members."""
        if self.members:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether members read a topic."""
        return any(
            topic in member.names or topic in self.matched(member)
            for member in self.members.values()
        )


def without_epochs(epochs: Mapping[bytes, Collection[int]]) -> Assignment:
    """Return partitions by topic without when they were given."""
    return {topic: set(some) for topic, some in epochs.items()}


def with_epoch(partitions: Iterable[tuple[bytes, Collection[int]]], epoch: int) -> Epochs:
    """Return partitions by topic as given in one epoch."""
    return {topic: dict.fromkeys(some, epoch) for topic, some in partitions}


def _wrong_epoch(member: ConsumerMember) -> ErrorCode:
    if member.classic is None:
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION
