"""The coordinator of all groups: what is asked of a group finds the group, and its protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.classic import ClassicProtocol, JoinRequest, SyncRequest
from aclbroker.broker.memory.groups.classic_group import (
    ClassicGroup,
    JoinAnswer,
    SayJoin,
    SaySync,
    State,
    SyncAnswer,
)
from aclbroker.broker.memory.groups.group import Account, Full, Group, GroupError
from aclbroker.broker.memory.groups.offsets import GroupOffsets
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.table import GroupTable
from aclbroker.protocol.errors import ErrorCode

_NEXT_STEP_MS: Final = 1


class Groups:
    """All groups of the cluster, and what clients ask of them.

    Functions that are called ``say`` take the answer to a request, maybe much later.
    """

    def __init__(self, clock: Clock, settings: GroupSettings) -> None:
        self._clock = clock
        self.settings = settings
        self.account = Account(settings.max_bytes)
        self.table = GroupTable(self.account, self._new_group)
        self._classic = ClassicProtocol(clock, settings)
        self.offsets = GroupOffsets(clock, self.table, settings, self._heard_of)
        self._sweep_later()

    def join(self, request: JoinRequest, say: SayJoin) -> None:
        """Let a member join a group of the classic protocol; the group is made if it has no id."""
        settings, member_id = self.settings, request.member_id
        if not request.group_id:
            say(JoinAnswer(ErrorCode.INVALID_GROUP_ID, member_id))
            return
        least, most = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        if not least <= request.session_timeout_ms <= most:
            say(JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, member_id))
            return
        if member_id and request.group_id not in self.table.groups:
            say(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
            return
        try:
            group = self.table.find_or_make(request.group_id)
        except Full as full:
            say(JoinAnswer(full.code, member_id))
            return
        if isinstance(group, ClassicGroup):
            self._classic.join(group, request, say)

    def sync(self, request: SyncRequest, say: SaySync) -> None:
        """Tell a member of the classic protocol its assignment."""
        if not request.group_id:
            say(SyncAnswer(ErrorCode.INVALID_GROUP_ID))
            return
        group = self.table.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            self._classic.sync(group, request, say)
        else:
            say(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Keep the session of a member of the classic protocol alive."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.table.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return self._classic.heartbeat(group, member_id, instance_id, generation)
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members of the classic protocol, each with its id and instance id.

        Returns the error code of each. Raises GroupError if the group's id is empty.
        """
        if not group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID)
        group = self.table.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            codes = [self._classic.leave(group, *member) for member in members]
            if ErrorCode.NONE in codes:
                self._classic.after_leaving(group)
            return codes
        return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)

    def delete(self, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets; returns the error code."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        try:
            self.table.find(group_id).check_delete()
        except GroupError as error:
            return error.code
        self.table.remove(group_id)
        return ErrorCode.NONE

    def _new_group(self, group_id: str) -> Group:
        return ClassicGroup(group_id, self.account, self._clock.now_ms())

    def _heard_of(self, group: Group, member_id: str) -> None:
        lives = (State.STABLE, State.PREPARING_REBALANCE)
        if isinstance(group, ClassicGroup) and group.state in lives:
            self._classic.keep_alive(group, member_id)

    def _sweep_later(self) -> None:
        interval = self.settings.offsets_retention_check_interval_ms
        self._clock.call_later(interval, lambda: self._sweep(self.offsets.sweep()))

    def _sweep(self, steps: Iterator[None]) -> None:
        for _ in steps:
            self._clock.call_later(_NEXT_STEP_MS, lambda: self._sweep(steps))
            return
        self._sweep_later()
