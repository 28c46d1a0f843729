"""The coordinator of all groups: what is asked of a group finds the group, and its protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, TypeVar

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
from aclbroker.broker.memory.groups.consumer import HeartbeatAnswer, HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import (
    LEAVES,
    LEAVES_FOR_A_WHILE,
    ConsumerGroup,
)
from aclbroker.broker.memory.groups.conversion import Conversion
from aclbroker.broker.memory.groups.group import Account, Group, GroupError
from aclbroker.broker.memory.groups.group_configs import GroupConfigs
from aclbroker.broker.memory.groups.offsets import GroupOffsets
from aclbroker.broker.memory.groups.patterns import Visible
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.share import (
    ShareHeartbeatAnswer,
    ShareHeartbeatRequest,
    ShareProtocol,
)
from aclbroker.broker.memory.groups.share_group import LEAVES as LEAVES_SHARE_GROUP
from aclbroker.broker.memory.groups.share_group import ShareGroup
from aclbroker.broker.memory.groups.table import GroupTable
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns

G = TypeVar("G", bound=Group)

_NEXT_STEP_MS: Final = 1


class Groups:
    """All groups of the cluster, and what clients ask of them.

    Functions that are called ``say`` take the answer to a request, maybe much later.
    """

    def __init__(self, clock: Clock, settings: GroupSettings, topics: MemoryTopics) -> None:
        self.topics = topics
        self._clock = clock
        self.settings = settings
        self.account = Account(settings.max_bytes)
        self.table = GroupTable(self.account, self._new_group)
        self._classic = ClassicProtocol(clock, settings)
        self._mixed = Conversion(clock, settings, topics, self.table, self._classic)
        self.configs = GroupConfigs(settings)
        self._share = ShareProtocol(clock, settings, topics, self.configs)
        self.offsets = GroupOffsets(clock, self.table, settings, self._heard_of)
        topics.on_delete.append(self.offsets.forget_topic)
        self._is_sweeping = False
        interval = settings.offsets_retention_check_interval_ms
        clock.call_every(interval, self._begin_sweep, self._idle_until)

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
        try:
            group = self._group_to_join(request.group_id, member_id)
            if isinstance(group, ConsumerGroup):
                say(self._mixed.join(group, request))
            elif isinstance(group, ClassicGroup):
                self._classic.join(group, request, say)
        except GroupError as error:
            say(JoinAnswer(error.code, member_id))

    def sync(self, request: SyncRequest, say: SaySync, visible: Visible) -> None:
        """Tell a member of the classic protocol its assignment.

        ``visible`` returns which of the topics that the broker assigns the client may describe.
        """
        if not request.group_id:
            say(SyncAnswer(ErrorCode.INVALID_GROUP_ID))
            return
        group = self.table.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            self._classic.sync(group, request, say)
        elif isinstance(group, ConsumerGroup):
            try:
                say(self._mixed.sync(group, request, visible))
            except GroupError as error:
                say(SyncAnswer(error.code))
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
        if isinstance(group, ConsumerGroup):
            try:
                return self._mixed.heartbeat(group, member_id, instance_id, generation)
            except GroupError as error:
                return error.code
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group_id: str, members: Sequence[tuple[str, str | None]]) -> list[ErrorCode]:
        """Remove members of the classic protocol, each with its id and instance id.

        Returns the error code of each. Raises GroupError if the group's id is empty.
        """
        if not group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID)
        group = self.table.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            codes = [self._classic.leave(group, *member) for member in in_turns(members)]
            if ErrorCode.NONE in codes:
                self._classic.after_leaving(group)
            return codes
        if isinstance(group, ConsumerGroup):
            return self._mixed.leave(group, members)
        return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)

    def consumer_heartbeat(
        self,
        request: HeartbeatRequest,
        visible: Visible,
        change: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> HeartbeatAnswer:
        """Take the heartbeat of a member of the newer protocol; raises GroupError.

        ``visible`` returns the topics that the client may describe, before an expression is matched
        against them. That step changes nothing and can take long. The group is changed within
        ``change``.
        """
        consumer = self._mixed.consumer
        if request.epoch in (LEAVES, LEAVES_FOR_A_WHILE):
            with change():
                return consumer.leave(self.consumer_group(request.group_id), request)
        former = self.table.groups.get(request.group_id)
        known = former if isinstance(former, ConsumerGroup) else None
        resolved = None
        if known is not None or request.epoch == 0:
            consumer.check(known, request)
            consumer.check_expression(known, request)
            resolved = consumer.resolve(known, request, visible)
        with change():
            # Others may have changed the group meanwhile.
            group = self._consumer_group_for(request)
            consumer.check(group, request)
            return consumer.heartbeat(group, request, resolved)

    def share_heartbeat(self, request: ShareHeartbeatRequest) -> ShareHeartbeatAnswer:
        """Take the heartbeat of a member of a share group; may pause, raises GroupError."""
        if request.epoch == LEAVES_SHARE_GROUP:
            return self._share.leave(self.share_group(request.group_id), request.member_id)
        known = self.table.groups.get(request.group_id)
        if known is not None or request.epoch != 0:
            group = self.share_group(request.group_id)
            self._share.check(group, request)
        else:
            self._share.check(None, request)
            group = self.new_share_group(request.group_id)
        return self._share.heartbeat(group, request)

    def new_share_group(self, group_id: str) -> ShareGroup:
        """Add a share group, of whose id there must be no group; raises Full."""
        group = ShareGroup(group_id, self.account, self.topics)
        self.table.put(group)
        return group

    def share_group(self, group_id: str) -> ShareGroup:
        """Return a share group; raises GroupError with GROUP_ID_NOT_FOUND."""
        return self._of_kind(ShareGroup, group_id)

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a group of the newer protocol; raises GroupError with GROUP_ID_NOT_FOUND."""
        return self._of_kind(ConsumerGroup, group_id)

    def classic_group(self, group_id: str) -> ClassicGroup:
        """Return a group of the classic protocol; raises GroupError with GROUP_ID_NOT_FOUND."""
        return self._of_kind(ClassicGroup, group_id)

    def _of_kind(self, wanted: type[G], group_id: str) -> G:
        group = self.table.find(group_id)
        if not isinstance(group, wanted):
            raise GroupError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Group {shown_name(group_id)} is not a {wanted.kind} group.",
            )
        return group

    def delete(self, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets; returns the error code."""
        try:
            self.table.find(group_id).check_delete()
        except GroupError as error:
            return error.code
        self.table.remove(group_id)
        return ErrorCode.NONE

    def _group_to_join(self, group_id: str, member_id: str) -> Group:
        """Return the group that a member of the classic protocol joins; raises GroupError."""
        group = self.table.groups.get(group_id)
        if isinstance(group, ShareGroup):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if isinstance(group, ConsumerGroup) and group.is_empty:
            self.table.replace(self._new_group(group_id))
        if member_id and group_id not in self.table.groups:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.table.find_or_make(group_id)

    def _consumer_group_for(self, request: HeartbeatRequest) -> ConsumerGroup:
        """Return the group of a heartbeat, made or made one of the newer protocol if it joins."""
        group_id = request.group_id
        group = self.table.groups.get(group_id)
        if group is None and request.epoch != 0:
            raise GroupError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {shown_name(group_id)} not found."
            )
        if request.epoch != 0 or isinstance(group, ShareGroup):
            return self.consumer_group(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if isinstance(group, ClassicGroup) and not group.is_empty:
            return self._mixed.upgraded(group)
        new = ConsumerGroup(group_id, self.account, self.topics)
        if group is None:
            self.table.put(new)
        else:
            self.table.replace(new)
        return new

    def _new_group(self, group_id: str) -> Group:
        return ClassicGroup(group_id, self.account, self._clock.now_ms())

    def _heard_of(self, group: Group, member_id: str) -> None:
        lives = (State.STABLE, State.PREPARING_REBALANCE)
        if isinstance(group, ClassicGroup) and group.state in lives:
            self._classic.keep_alive(group, member_id)

    def _begin_sweep(self) -> None:
        if not self._is_sweeping:
            self._sweep(self.offsets.sweep())

    def _sweep(self, steps: Iterator[None]) -> None:
        self._is_sweeping = True
        for _ in steps:
            self._clock.call_later(_NEXT_STEP_MS, lambda: self._sweep(steps))
            return
        self._is_sweeping = False

    def _idle_until(self) -> float:
        return self._clock.now_ms() if self._is_sweeping else self.offsets.idle_until()
