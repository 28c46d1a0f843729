"""A share group (KIP-932): its members, and the partitions that they share.

The protocol itself is in `share`. The rules are those of Kafka's ShareGroup.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final

from aclbroker.broker.memory.clock import Timer
from aclbroker.broker.memory.groups.assignors import Assignment
from aclbroker.broker.memory.groups.group import Account, CheckPartition, Full, GroupError
from aclbroker.broker.memory.groups.modern_group import ModernGroup
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

LEAVES: Final = -1
"""The epoch with which a member leaves."""

_MEMBER_BYTES: Final = 1_000
_SHARED_BYTES: Final = 80


class ShareMember:
    """A member; ``assigned`` is what it has, and ``timer`` is when its session is over."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.instance_id = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.names: frozenset[str] = frozenset()
        self.epoch = 0
        self.former_epoch = 0
        self.assigned: Assignment = {}
        self.timer: Timer | None = None

    @property
    def takes(self) -> int:
        """How many bytes the member takes, about."""
        texts = sum(len(each) + 80 for each in self.names) + 2 * len(self.member_id)
        return _MEMBER_BYTES + texts + len(self.client_id) + len(self.rack_id or "")

    def become(self, epoch: int) -> None:
        """Go over into an epoch."""
        if epoch != self.epoch:
            self.former_epoch, self.epoch = self.epoch, epoch

    def cancel(self) -> None:
        """Let the session not be over."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class ShareGroup(ModernGroup[ShareMember]):
    """A share group.

    ``initialized`` has, by topic id, the partitions of which there is a state to share: only these
    are shared out.
    """

    kind: ClassVar = "share"
    # As in Kafka: how far it is is not among the offsets, and goes only with the group.
    expires: ClassVar = False

    def __init__(self, group_id: str, account: Account, topics: MemoryTopics) -> None:
        super().__init__(group_id, account, topics)
        self.initialized: dict[bytes, set[int]] = {}

    @property
    def state_name(self) -> str:
        """The state as ListGroups tells it."""
        return "Stable" if self.members else "Empty"

    @property
    def protocol_type(self) -> str:
        """The type of the protocol that the members speak."""
        return self.kind

    def initialize(self) -> bool:
        """Let partitions that members read be shared; tell whether there are new ones.

        May pause; raises Full if there is no room.
        """
        has_grown = False
        for topic_id, count in in_turns(self.subscribed_as_of):
            if self.members and self.topics.name_of(topic_id) is not None:
                has_grown |= self.share(topic_id, range(count))
        return has_grown

    def share(self, topic_id: bytes, indexes: Collection[int]) -> bool:
        """Let partitions be shared; tell whether there are new ones. Raises Full without room."""
        shared = self.initialized.get(topic_id, set())
        new = [each for each in indexes if each not in shared]
        self.account.take(_SHARED_BYTES * len(new))
        self.initialized.setdefault(topic_id, shared).update(new)
        return bool(new)

    def unshare(self, topic_id: bytes) -> None:
        """Let a topic be shared no longer."""
        self.account.give(_SHARED_BYTES * len(self.initialized.pop(topic_id, ())))

    def add(self, member: ShareMember) -> None:
        """Add a member; raises Full if there is no room."""
        self.account.take(member.takes)
        self.changes += 1
        self.members[member.member_id] = member

    def tell(self, member: ShareMember, names: frozenset[str], rack_id: str | None) -> bool:
        """Note what a member reads; tell whether that is something else than before.

        Raises Full if there is no room.
        """
        before, took = (member.names, member.rack_id), member.takes
        member.names, member.rack_id = names, rack_id
        try:
            self.account.take(member.takes - took)
        except Full:
            member.names, member.rack_id = before
            raise
        return before[0] != names

    def remove(self, member: ShareMember) -> None:
        """Remove a member."""
        member.cancel()
        del self.members[member.member_id]
        self.changes += 1
        self.epoch += 1
        self.account.give(member.takes)
        self.forget_target(member.member_id)

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        transactional: bool,
    ) -> CheckPartition | None:
        """Raise GroupError: a share group has no offsets that are committed."""
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Let offsets be fetched, of which there are none: as Kafka does."""

    def check_offset_delete(self) -> None:
        """Raise GroupError: a share group has no offsets that are committed."""
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND)

    def check_delete(self) -> None:
        """Raise GroupError with NON_EMPTY_GROUP if the group has members."""
        if self.members:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed(self, topic: str) -> bool:
        """Tell whether members read a topic."""
        return any(topic in member.names for member in self.members.values())

    def close(self) -> None:
        """Let no session of the group be over any more; what it took is free."""
        super().close()
        for topic_id in list(self.initialized):
            self.unshare(topic_id)
