"""All groups by their ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aclbroker.broker.memory.groups.group import Account, Group, GroupError
from aclbroker.protocol.errors import ErrorCode, shown_name

_GROUP_BYTES: Final = 1_000
"""What a group takes without its members and offsets, about."""


class GroupTable:
    """The groups that there are. ``new_group`` makes a group without members, of the classic kind.

    ``account`` counts what they take. ``on_remove`` is called with the id of a group that is gone.
    """

    def __init__(self, account: Account, new_group: Callable[[str], Group]) -> None:
        self.account = account
        self.groups: dict[str, Group] = {}
        self.on_remove: list[Callable[[str], None]] = []
        self._new_group = new_group

    def find(self, group_id: str) -> Group:
        """Return a group; raises GroupError with GROUP_ID_NOT_FOUND if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {shown_name(group_id)} not found."
            )
        return group

    def find_or_make(self, group_id: str) -> Group:
        """Return a group, which is new if there was none; raises Full if there is no room."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.put(self._new_group(group_id))
        return group

    def put(self, group: Group) -> Group:
        """Add a group, of which there must be none of its id; raises Full if there is no room."""
        self.account.take(_group_bytes(group.group_id))
        self.groups[group.group_id] = group
        return group

    def replace(self, group: Group) -> None:
        """Put a group in the place of the one of its id, whose members are gone; offsets stay."""
        self.find(group.group_id).close()
        self.groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        """Remove a group with all that is known of it."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            group.close()
            self.account.give(_group_bytes(group_id))
            for forget in self.on_remove:
                forget(group_id)


def _group_bytes(group_id: str) -> int:
    return _GROUP_BYTES + len(group_id)
