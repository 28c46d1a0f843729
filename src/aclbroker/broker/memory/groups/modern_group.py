"""What groups have in common in which the broker assigns: of consumers, and share groups."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Final, Generic, Protocol, TypeVar

from aclbroker.broker.memory.groups.assignors import Assignment, Subscriber
from aclbroker.broker.memory.groups.group import Account, Group, GroupError
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns

_ASSIGNED_BYTES: Final = 160
"""What a partition takes that a member is to have, with what tells that it has it, about."""


class Member(Protocol):
    """A member of any such group."""

    member_id: str
    instance_id: str | None
    names: frozenset[str]


M = TypeVar("M", bound=Member)


class ModernGroup(Group, Generic[M]):
    """A group in which the broker assigns.

    ``epoch`` grows when members, subscriptions or topics change; ``target`` is what each member is
    to have as of ``target_epoch``. ``changes`` counts changes of who is in the group.
    ``subscribed_as_of`` are the topics that members read, with how many partitions they had when
    the topics were of the version ``seen_topics``.
    """

    def __init__(self, group_id: str, account: Account, topics: MemoryTopics) -> None:
        super().__init__(group_id)
        self.account = account
        self.topics = topics
        self.epoch = 1
        self.target_epoch = 0
        self.target: dict[str, Assignment] = {}
        self.members: dict[str, M] = {}
        self.changes = 0
        self.seen_topics: int | None = None
        self.subscribed_as_of: frozenset[tuple[bytes, int]] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @abstractmethod
    def remove(self, member: M) -> None:
        """Remove a member."""

    def names_of(self, member: M) -> frozenset[str]:
        """Return the names of the topics that a member reads, if they exist or not."""
        return member.names

    def subscribed_names(self) -> set[str]:
        """Return the names of all topics that members read, if they exist or not; may pause."""
        names: set[str] = set()
        for member in in_turns(list(self.members.values())):
            names |= member.names
        return names

    def subscribed(self, member: M) -> frozenset[bytes]:
        """Return the ids of the topics that a member reads, of those that exist; may pause."""
        names = self.names_of(member)
        return frozenset(
            [self.topics.id_of(each) for each in in_turns(names) if self.topics.exists(each)]
        )

    def subscribers(self) -> list[Subscriber]:
        """Return the members as those among whom partitions are shared out; may pause."""
        return [
            Subscriber(
                each.member_id,
                each.instance_id,
                self.subscribed(each),
                self.target.get(each.member_id, {}),
            )
            for each in in_turns(list(self.members.values()))
        ]

    def topics_seen(self) -> frozenset[tuple[bytes, int]]:
        """Return the ids and numbers of partitions of all topics that members read; may pause."""
        return frozenset(
            [
                (self.topics.id_of(each), self.topics.topics[each])
                for each in in_turns(self.subscribed_names())
                if self.topics.exists(each)
            ]
        )

    def note_changes(self, *, has_changed: bool) -> None:
        """Begin a new epoch if members or topics have changed; may pause."""
        if has_changed or self.seen_topics != self.topics.version:
            self.seen_topics = self.topics.version
            seen = self.topics_seen()
            if has_changed or seen != self.subscribed_as_of:
                self.epoch += 1
            self.subscribed_as_of = seen

    def aim_at(self, target: dict[str, Assignment], epoch: int) -> None:
        """Let members be to have partitions as of an epoch; raises Full if there is no room."""
        sizes = (sum(map(size_of, each.values())) for each in (target, self.target))
        self.account.take(next(sizes) - next(sizes))
        self.target, self.target_epoch = target, epoch

    def forget_target(self, member_id: str) -> None:
        """Let a member that is removed be to have nothing."""
        self.account.give(size_of(self.target.pop(member_id, {})))

    def find_member(self, member_id: str) -> M:
        """Return a member; raises GroupError with UNKNOWN_MEMBER_ID if there is none."""
        member = self.members.get(member_id)
        if member is None:
            raise GroupError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {shown_name(member_id)} is not a member of group "
                f"{shown_name(self.group_id)}.",
            )
        return member

    def retention_from(self, committed_ms: int) -> int | None:
        """Return since when an offset is unused: since it was committed."""
        return committed_ms

    def close(self) -> None:
        """Let no time of the group run out any more; what its members took is free."""
        for member in list(self.members.values()):
            self.remove(member)


def size_of(assignment: Mapping[bytes, Collection[int]]) -> int:
    """Return what it takes that a member has these partitions, about."""
    return _ASSIGNED_BYTES * sum(map(len, assignment.values()))
