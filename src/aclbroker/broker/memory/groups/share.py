"""The protocol of share groups (KIP-932): ShareGroupHeartbeat.

The rules are those of Kafka's GroupMetadataManager, with two differences: an assignment is made as
soon as it is needed (Kafka's ``group.share.assignment.interval.ms`` of 0), and partitions can be
shared at once, where Kafka first has its share coordinator write a state, and the members learn of
it with a later heartbeat. Epochs grow alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.assignors import Assignment
from aclbroker.broker.memory.groups.consumer import gone_meanwhile
from aclbroker.broker.memory.groups.group import Full, GroupError
from aclbroker.broker.memory.groups.group_configs import GroupConfigs
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.share_group import LEAVES, ShareGroup, ShareMember
from aclbroker.broker.memory.groups.simple_assignor import assign_simply
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns


class ShareHeartbeatRequest(NamedTuple):
    """What a ShareGroupHeartbeat asks, and of whom it is; None is what it does not tell."""

    group_id: str
    member_id: str
    epoch: int
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: Sequence[str] | None = None


class ShareHeartbeatAnswer(NamedTuple):
    """The answer; ``assignment`` is None where it has not changed, and was not asked for."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    assignment: Assignment | None = None


class ShareProtocol:
    """Carries out what members ask of share groups."""

    def __init__(
        self, clock: Clock, settings: GroupSettings, topics: MemoryTopics, configs: GroupConfigs
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._topics = topics
        self._configs = configs

    def check(self, group: ShareGroup | None, request: ShareHeartbeatRequest) -> None:
        """Raise GroupError if a member may not send such a heartbeat.

        Without a group the member is the first of a new one.
        """
        members = {} if group is None else group.members
        most = self._settings.share_max_size
        if request.member_id not in members and len(members) >= most:
            raise GroupError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {most} members.",
            )
        if group is not None and (request.epoch != 0 or request.member_id in members):
            _check_epoch(group.find_member(request.member_id), request.epoch)

    def heartbeat(self, group: ShareGroup, request: ShareHeartbeatRequest) -> ShareHeartbeatAnswer:
        """Take a member's heartbeat that was checked; may pause, raises Full if there is no room.

        Raises GroupError if the member is gone when others have had their turn.
        """
        member = group.members.get(request.member_id)
        is_new = member is None
        if member is None:
            member = ShareMember(request.member_id)
            group.add(member)
        names = member.names if request.names is None else frozenset(request.names)
        rack_id = member.rack_id if request.rack_id is None else request.rack_id
        try:
            changes = group.tell(member, names, rack_id)
        except GroupError:
            if is_new:
                group.remove(member)
            raise
        member.client_id, member.client_host = request.client_id, request.client_host
        # Before anything pauses: no member is without an end of its session.
        self._expect(group, member)
        group.note_changes(has_changed=is_new or changes)
        self._assign_with(group, member)
        if group.members.get(member.member_id) is not member:
            raise gone_meanwhile()
        had, member.assigned = member.assigned, group.target.get(member.member_id, {})
        member.become(group.target_epoch)
        # Who tells all, wants to be told all.
        tells = request.epoch == 0 or request.names is not None or member.assigned != had
        return ShareHeartbeatAnswer(
            member.member_id,
            member.epoch,
            self._configs.number(group.group_id, "share.heartbeat.interval.ms"),
            member.assigned if tells else None,
        )

    def leave(self, group: ShareGroup, member_id: str) -> ShareHeartbeatAnswer:
        """Remove a member; raises GroupError with UNKNOWN_MEMBER_ID."""
        group.remove(group.find_member(member_id))
        return ShareHeartbeatAnswer(member_id, LEAVES)

    def _assign_with(self, group: ShareGroup, member: ShareMember) -> None:
        """Say anew what is shared and what each member is to have, if there is room; may pause.

        If there is none, a new member is removed, and Full is raised; others keep what they have.
        """
        try:
            if group.initialize():
                group.epoch += 1
            self._assign(group)
        except Full:
            if not member.epoch:
                _expire(group, member)
                raise

    def _assign(self, group: ShareGroup) -> None:
        """Say anew what each member is to have, if that is as of a former epoch. Raises Full.

        This may pause. If the group changes meanwhile, the next heartbeat begins anew.
        """
        epoch, changes = group.epoch, group.changes
        if group.target_epoch == epoch:
            return
        subscribers = group.subscribers()
        counts = dict(group.subscribed_as_of)
        target = assign_simply(subscribers, counts)
        if (epoch, changes) == (group.epoch, group.changes):
            shared = {
                member_id: {topic: some for topic, some in assignment.items() if some}
                for member_id, assignment in in_turns(list(target.items()))
            }
            group.aim_at(shared, epoch)

    def _expect(self, group: ShareGroup, member: ShareMember) -> None:
        """Begin a member's session time-out anew."""
        member.cancel()
        within_ms = self._configs.number(group.group_id, "share.session.timeout.ms")
        member.timer = self._clock.call_later(within_ms, partial(_expire, group, member))


def _expire(group: ShareGroup, member: ShareMember) -> None:
    if group.members.get(member.member_id) is member:
        group.remove(member)


def _check_epoch(member: ShareMember, received: int) -> None:
    """Raise GroupError with FENCED_MEMBER_EPOCH if a member is not in its epoch.

    It may still be in the one before, since an answer can be lost.
    """
    if received in (0, member.epoch, member.former_epoch):
        return
    if received > member.epoch:
        what, why = "greater", ""
    else:
        what = "smaller"
        why = f", and it does not match the previous member epoch ({member.former_epoch})"
    raise GroupError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {what} member epoch ({received}) than the one known by the "
        f"group coordinator ({member.epoch}){why}. The member must abandon all its partitions and "
        "rejoin.",
    )
