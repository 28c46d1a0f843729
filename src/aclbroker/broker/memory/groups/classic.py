"""The classic protocol of groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with their times.

The rules are those of Kafka's GroupMetadataManager. Who waits for an answer leaves a function; time
comes from the clock. Groups of the newer protocol are not of interest here: see `conversion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.classic_group import (
    ClassicGroup,
    ClassicMember,
    JoinAnswer,
    Protocols,
    SayJoin,
    SaySync,
    State,
    SyncAnswer,
)
from aclbroker.broker.memory.groups.group import Full
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.protocol.errors import ErrorCode

_NEW_MEMBER_JOINS_WITHIN_MS: Final = 5 * 60 * 1000
_NEXT_LOOK_MS: Final = 1_000
"""After which time at least a rebalance that nobody has joined is looked at again."""

_REBALANCES: Final = (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY)


class JoinRequest(NamedTuple):
    """What a JoinGroup asks, and of whom it is.

    ``needs_id`` says that somebody without an id must ask again with one (KIP-394), and
    ``skips_assignment`` that a leader can be told not to assign anew.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    needs_id: bool = True
    skips_assignment: bool = True


class SyncRequest(NamedTuple):
    """What a SyncGroup asks; ``assignments`` has what the leader assigns each member."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    assignments: Mapping[str, bytes]
    protocol_type: str | None = None
    protocol_name: str | None = None


class ClassicProtocol:
    """Carries out what members ask of groups of the classic protocol."""

    def __init__(self, clock: Clock, settings: GroupSettings) -> None:
        self._clock = clock
        self._settings = settings

    def join(self, group: ClassicGroup, request: JoinRequest, say: SayJoin) -> None:
        """Join a group, anew or again; ``say`` is called with the answer, maybe much later."""
        member_id = request.member_id
        try:
            if not self._accepts(group, member_id):
                group.remove(member_id)
                say(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED))
            elif not group.supports(request.protocol_type, request.protocols):
                say(JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
            elif not member_id:
                self._join_new(group, request, say)
            elif member_id in group.pending and request.instance_id is None:
                self._add(group, request, member_id, say)
            elif code := group.check_member(member_id, request.instance_id):
                say(JoinAnswer(code, member_id))
            else:
                self._join_again(group, request, group.members[member_id], say)
        except Full as full:
            say(JoinAnswer(full.code, member_id))

    def sync(self, group: ClassicGroup, request: SyncRequest, say: SaySync) -> None:
        """Tell the assignment of a member; the leader's request has those of all."""
        code = group.check_member(request.member_id, request.instance_id)
        if not code and request.generation != group.generation:
            code = ErrorCode.ILLEGAL_GENERATION
        if not code and not _is_same_protocol(group, request):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not code and group.state is State.PREPARING_REBALANCE:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code:
            say(SyncAnswer(code))
            return
        member = group.members[request.member_id]
        self._synced(group, member)
        if group.state is State.STABLE:
            say(_assignment(group, member))
            return
        member.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        member.on_sync = say
        if group.leader == member.member_id:
            self._assign(group, member, dict(request.assignments))

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Keep a member's session alive; returns the error code, maybe of a rebalance."""
        code = group.check_member(member_id, instance_id)
        if code:
            return code
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.keep_alive(group, member_id)
        if group.state is State.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
        """Remove a member; call `after_leaving` when all that a request names are removed.

        A static member may be named by its instance id alone.
        """
        if not member_id:
            member_id = group.static_members.get(instance_id or "", "")
            if not member_id or instance_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id in group.pending:
            group.remove(member_id)
            return ErrorCode.NONE
        elif code := group.check_member(member_id, instance_id):
            return code
        self._remove_member(group, group.members[member_id])
        return ErrorCode.NONE

    def after_leaving(self, group: ClassicGroup) -> None:
        """Rebalance a group that members have left."""
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.rebalance(group)
        elif group.state is State.PREPARING_REBALANCE:
            self._complete_if_all_joined(group)

    def keep_alive(self, group: ClassicGroup, member_id: str) -> None:
        """Begin a member's session time-out anew."""
        member = group.members.get(member_id)
        if member is not None:
            self._expect(group, member, member.session_timeout_ms)

    def rebalance(self, group: ClassicGroup) -> None:
        """Begin a rebalance if none is going on, and end it if all have joined."""
        if group.state in _REBALANCES:
            self._prepare(group)
        else:
            self._complete_if_all_joined(group)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._settings.max_size
        if group.state is State.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is State.PREPARING_REBALANCE:
            return (member is not None and member.on_join is not None) or group.waiting < most
        return member is not None or len(group.members) < most

    def _join_new(self, group: ClassicGroup, request: JoinRequest, say: SayJoin) -> None:
        instance_id = request.instance_id
        new_id = group.new_member_id(request.client_id, instance_id)
        if instance_id is not None and instance_id in group.static_members:
            self._replace_static(group, request, new_id, say)
        elif instance_id is None and request.needs_id:
            if len(group.pending) >= self._settings.max_size:
                say(JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED))
                return
            expire = partial(self._expire_pending, group, new_id)
            group.add_pending(new_id, self._clock.call_later(request.session_timeout_ms, expire))
            say(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        else:
            self._add(group, request, new_id, say)

    def _add(self, group: ClassicGroup, request: JoinRequest, member_id: str, say: SayJoin) -> None:
        member = ClassicMember(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.protocol_type,
            request.protocols,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
        )
        group.add(member)
        member.is_new = True
        member.on_join = say
        if group.state is State.PREPARING_REBALANCE and group.former_state is State.EMPTY:
            group.has_newcomer = True
        # It does not know its id yet, and so cannot send heartbeats.
        self._expect(group, member, _NEW_MEMBER_JOINS_WITHIN_MS)
        self.rebalance(group)

    def _join_again(
        self, group: ClassicGroup, request: JoinRequest, member: ClassicMember, say: SayJoin
    ) -> None:
        is_same = list(member.protocols) == list(request.protocols)
        is_leader = group.leader == member.member_id
        is_settled = group.state is State.STABLE and not is_leader
        if is_same and (is_settled or group.state is State.COMPLETING_REBALANCE):
            say(_joined(group, member))
        else:
            # What else a member says begins a rebalance, as does its leader whatever it says.
            self._update(group, request, member)
            _replace_join(member, say)
            self.rebalance(group)

    def _update(self, group: ClassicGroup, request: JoinRequest, member: ClassicMember) -> None:
        group.update(
            member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms
        )

    def _replace_static(
        self, group: ClassicGroup, request: JoinRequest, new_id: str, say: SayJoin
    ) -> None:
        """Let who has the instance id of a member take its place, if it can without a rebalance."""
        former_leader = group.leader
        member = group.members[group.static_members[request.instance_id or ""]]
        self._update(group, request, member)
        group.rename_static(member, new_id)
        self._expect(group, member, member.session_timeout_ms)
        is_stable = group.state is State.STABLE
        if is_stable and group.select_protocol() == group.protocol_name:
            joined = _joined(group, member)
            if request.skips_assignment:
                say(joined._replace(skip_assignment=group.leader == new_id))
            else:
                # A leader of old would assign anew: it is told the id that it no longer has.
                say(joined._replace(leader=former_leader or "", members=()))
            return
        member.on_join = say
        self.rebalance(group)

    def _prepare(self, group: ClassicGroup) -> None:
        if group.state is State.COMPLETING_REBALANCE:
            group.assign({})
            for member in list(group.members.values()):
                if member.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)):
                    self._expect(group, member, member.session_timeout_ms)
        self._stop_waiting_for_syncs(group)
        is_first = group.state is State.EMPTY
        group.become(State.PREPARING_REBALANCE, self._clock.now_ms())
        if is_first:
            delay_ms = self._settings.initial_rebalance_delay_ms
            rest_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_newcomers(group, delay_ms, rest_ms)
        elif group.have_all_joined:
            self._complete(group)
        else:
            self._wait_for_joins(group)

    def _wait_for_joins(self, group: ClassicGroup, least_ms: int = 0) -> None:
        _cancel_join_timer(group)
        group.join_timer = self._clock.call_later(
            max(group.rebalance_timeout_ms, least_ms), partial(self._complete, group)
        )

    def _wait_for_newcomers(self, group: ClassicGroup, delay_ms: int, rest_ms: int) -> None:
        _cancel_join_timer(group)
        group.join_timer = self._clock.call_later(
            delay_ms, partial(self._complete_first, group, delay_ms, rest_ms)
        )

    def _complete_first(self, group: ClassicGroup, delay_ms: int, rest_ms: int) -> None:
        if group.has_newcomer and rest_ms:
            group.has_newcomer = False
            next_ms = min(self._settings.initial_rebalance_delay_ms, rest_ms)
            self._wait_for_newcomers(group, next_ms, max(rest_ms - delay_ms, 0))
        else:
            self._complete(group)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        """End a rebalance, unless it is the first: that waits for newcomers."""
        if group.state is not State.PREPARING_REBALANCE or group.former_state is State.EMPTY:
            return
        if group.have_all_joined:
            self._complete(group)

    def _complete(self, group: ClassicGroup) -> None:
        """End the rebalance: who has not joined is out, except for static members."""
        _cancel_join_timer(group)
        for member in list(group.members.values()):
            if not member.on_join and member.instance_id is None:
                group.remove(member.member_id)
        if group.members and not group.may_elect():
            self._wait_for_joins(group, _NEXT_LOOK_MS)
            return
        group.next_generation(self._clock.now_ms())
        if not group.members:
            return
        for member in list(group.members.values()):
            member.answer_join(_joined(group, member))
            self._expect(group, member, member.session_timeout_ms)
            member.is_new = False
            group.unsynced.add(member.member_id)
        group.sync_timer = self._clock.call_later(
            group.rebalance_timeout_ms, partial(self._expire_syncs, group, group.generation)
        )

    def _assign(
        self, group: ClassicGroup, leader: ClassicMember, assignments: dict[str, bytes]
    ) -> None:
        try:
            group.assign(assignments)
        except Full as full:
            leader.answer_sync(SyncAnswer(full.code))
            return
        for member in list(group.members.values()):
            if member.answer_sync(_assignment(group, member)):
                self._expect(group, member, member.session_timeout_ms)
        group.become(State.STABLE, self._clock.now_ms())

    def _synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.unsynced.discard(member.member_id)
        if not group.unsynced:
            self._stop_waiting_for_syncs(group)

    def _stop_waiting_for_syncs(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _expire_syncs(self, group: ClassicGroup, generation: int) -> None:
        """Rebalance without the members that have not asked for their assignment in time."""
        group.sync_timer = None
        if generation == group.generation and group.unsynced:
            for member_id in list(group.unsynced):
                group.remove(member_id)
            self._prepare(group)

    def _expect(self, group: ClassicGroup, member: ClassicMember, within_ms: int) -> None:
        member.cancel_timer()
        member.timer = self._clock.call_later(within_ms, partial(self._expire, group, member))

    def _expire(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove a member that was not heard of, unless it is being waited for."""
        member.timer = None
        waits = member.on_join is not None or member.on_sync is not None
        if member.is_new or not waits:
            self._remove_member(group, member)
            if group.state is not State.PREPARING_REBALANCE:
                self.after_leaving(group)
            elif group.have_all_joined:
                self._complete(group)

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        if group.state is State.PREPARING_REBALANCE and group.have_all_joined:
            self._complete(group)

    def _remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        member.answer_join(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        member.answer_sync(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)


def _replace_join(member: ClassicMember, say: SayJoin) -> None:
    """Answer a member's former JoinGroup, which nobody waits for any more, and keep the new one."""
    member.answer_join(JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
    member.on_join = say


def _cancel_join_timer(group: ClassicGroup) -> None:
    if group.join_timer is not None:
        group.join_timer.cancel()
        group.join_timer = None


def _joined(group: ClassicGroup, member: ClassicMember) -> JoinAnswer:
    is_leader = group.leader == member.member_id
    return JoinAnswer(
        ErrorCode.NONE,
        member.member_id,
        group.generation,
        group.type_of_members,
        group.protocol_name,
        group.leader or "",
        group.joined_members() if is_leader else (),
    )


def _assignment(group: ClassicGroup, member: ClassicMember) -> SyncAnswer:
    return SyncAnswer(ErrorCode.NONE, group.type_of_members, group.protocol_name, member.assignment)


def _is_same_protocol(group: ClassicGroup, request: SyncRequest) -> bool:
    return request.protocol_type in (None, group.type_of_members) and request.protocol_name in (
        None,
        group.protocol_name,
    )
