"""What groups of all kinds have in common, and how a group refuses what is asked of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from aclbroker.protocol.errors import ErrorCode

CheckPartition = Callable[[str, int], None]
"""Takes a topic and a partition; raises GroupError if its offset may not be committed."""


class GroupError(Exception):
    """What is asked of a group is refused with an error code and, where it has one, a message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


class Full(GroupError):
    """There is no room for what a client wants to have kept."""


class Account:
    """Counts the bytes that all groups and transactions take, about, up to a limit.

    ``make_room`` is told how many bytes are missing, and gives back what nobody needs.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.make_room: Callable[[int], None] | None = None

    def take(self, count: int, code: ErrorCode = ErrorCode.GROUP_MAX_SIZE_REACHED) -> None:
        """Count bytes more; raises Full with the code if that would be beyond the limit."""
        missing = self.taken + count - self.limit
        if count > 0 and missing > 0 and self.make_room is not None:
            self.make_room(missing)
        if count > 0 and self.taken + count > self.limit:
            raise Full(
                code, "The broker has no room for more groups, members, offsets and transactions."
            )
        self.taken += count

    def give(self, count: int) -> None:
        """Count bytes less."""
        self.taken -= count


class Group(ABC):
    """A group of one of the protocols; `kind` is its type as ListGroups tells it.

    Where it ``expires``, it goes when it has neither members nor offsets.
    """

    kind: ClassVar[str]
    expires: ClassVar = True

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as ListGroups tells it."""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The type of the protocol that the members speak, "" if there was none yet."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether nobody is in the group, or about to be."""

    @abstractmethod
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

        Returns what is to be asked of each partition, None if nothing is.
        """

    @abstractmethod
    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise GroupError if who says to be this member may not fetch offsets."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Raise GroupError if offsets of the group may not be deleted."""

    @abstractmethod
    def check_delete(self) -> None:
        """Raise GroupError if the group may not be deleted."""

    @abstractmethod
    def is_subscribed(self, topic: str) -> bool:
        """Tell whether members read a topic, as far as is known."""

    @abstractmethod
    def retention_from(self, committed_ms: int) -> int | None:
        """Return since when an offset of a time of commit is unused; None if it is used."""

    @abstractmethod
    def close(self) -> None:
        """Let no time of the group run out any more; what its members took is free."""

    def is_in(self, states: set[str]) -> bool:
        """Tell whether the group's state is among some, which are in lower case."""
        return self.state_name.lower() in states
