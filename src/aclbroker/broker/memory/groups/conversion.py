"""Groups with members of both protocols, and how a group changes from one protocol to the other.

As in Kafka: the first member of the newer protocol makes a group one of the newer protocol, with
the members of the classic protocol as they are; when the last of the newer protocol leaves, it is
a classic group again. Meanwhile the broker assigns, and members of the classic protocol are led to
their assignments by rebalances of their own: they join, which answers at once, and sync.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import uuid4

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.classic import ClassicProtocol, JoinRequest, SyncRequest
from aclbroker.broker.memory.groups.classic_group import (
    ClassicGroup,
    ClassicMember,
    JoinAnswer,
    State,
    SyncAnswer,
)
from aclbroker.broker.memory.groups.consumer import ConsumerProtocol, find_static, gone_meanwhile
from aclbroker.broker.memory.groups.consumer_group import (
    ClassicPart,
    ConsumerGroup,
    ConsumerMember,
    Epochs,
    MemberState,
    Told,
    with_epoch,
    without_epochs,
)
from aclbroker.broker.memory.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Malformed,
    Subscription,
    assignment_bytes,
    read_assignment,
    read_subscription,
    version_of,
)
from aclbroker.broker.memory.groups.group import Group, GroupError
from aclbroker.broker.memory.groups.modern_group import size_of
from aclbroker.broker.memory.groups.patterns import NO_PATTERN, Visible
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.table import GroupTable
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns


class Conversion:
    """Carries out what members of the classic protocol ask of groups of the newer one."""

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        topics: MemoryTopics,
        table: GroupTable,
        classic: ClassicProtocol,
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._topics = topics
        self._table = table
        self._classic = classic
        self.consumer = ConsumerProtocol(clock, settings, topics, self.fence)

    def upgraded(self, group: ClassicGroup) -> ConsumerGroup:
        """Make a classic group one of the newer protocol; raises GroupError if that cannot be.

        Who waits for a rebalance is told to join again.
        """
        policy = self._settings.consumer_migration_policy
        why = ""
        if policy not in ("bidirectional", "upgrade"):
            why = "online upgrade is disabled"
        elif group.type_of_members != PROTOCOL_TYPE:
            why = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._settings.consumer_max_size:
            why = "the group size exceeds the consumer group maximum size"
        if why:
            raise _not_upgraded(group, why)
        members = self._upgraded_members(group)
        upgraded = ConsumerGroup(group.group_id, group.account, self._topics)
        upgraded.epoch = group.generation
        target = {each.member_id: without_epochs(assigned) for each, assigned in members}
        more = sum(each.takes + size_of(target[each.member_id]) for each, _ in members)
        group.account.take(more)
        group.account.give(more)
        for classic in list(group.members.values()):
            classic.answer_join(JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, classic.member_id))
            classic.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
        self._table.replace(upgraded)
        for member, assigned in members:
            upgraded.add(member)
            upgraded.set_partitions(member, assigned, {})
            if member.classic is not None:
                self.consumer.expect(upgraded, member, member.classic.session_timeout_ms)
        upgraded.aim_at(target, group.generation)
        upgraded.seen_topics = self._topics.version
        upgraded.subscribed_as_of = upgraded.topics_seen()
        return upgraded

    def fence(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
        """Remove members that are still there.

        If all that stay are of the classic protocol, the group is, too.
        """
        gone = [each for each in members if group.members.get(each.member_id) is each]
        staying = [each for each in group.members.values() if each not in gone]
        for member in gone:
            group.remove(member)
        if gone and self._may_downgrade(staying):
            downgraded = self._downgraded(group, staying)
            self._classic.rebalance(downgraded)
        elif gone:
            group.epoch += 1
            group.subscribed_as_of = group.topics_seen()

    def join(self, group: ConsumerGroup, request: JoinRequest) -> JoinAnswer:
        """Let a member of the classic protocol join a group of the newer one; answers at once.

        Raises GroupError if it may not.
        """
        member_id = request.member_id or str(uuid4())
        is_full = len(group.members) >= self._settings.consumer_max_size
        if is_full and member_id not in group.members:
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        subscription = self._supported(group, request)
        if not self._is_still(group):
            raise gone_meanwhile()
        if not request.member_id and request.instance_id is None and request.needs_id:
            return JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        member, is_new = self._joining(group, request, member_id)
        replaced = None if member is None else member.member_id
        others = [each for each in group.members.values() if each is not member]
        downgrades = bool(
            request.instance_id is not None and replaced and self._may_downgrade(others, 1)
        )
        member = self._updated(group, member, request, member_id, subscription, is_new=is_new)
        if downgrades:
            return self._downgrade_with(group, member, request)
        self.consumer.assign_with(group, member)
        if group.members.get(member.member_id) is not member:
            raise gone_meanwhile()
        self._reconcile(group, member, subscription)
        member.cancel("join")
        self.consumer.expect(group, member, request.session_timeout_ms)
        self.consumer.set_deadline(group, member, "sync", request.rebalance_timeout_ms)
        return _joined(member, request)

    def sync(self, group: ConsumerGroup, request: SyncRequest, visible: Visible) -> SyncAnswer:
        """Return a classic member's partitions of visible topics; raises GroupError.

        Kafka returns all its partitions, although a subscription of this protocol can name topics
        without any right on them.
        """
        member, classic = self._classic_member(group, request.member_id, request.instance_id)
        if request.generation != member.epoch:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        if request.protocol_type not in (None, PROTOCOL_TYPE):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.protocol_name not in (None, classic.protocols[0][0]):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._joins_within(group, member)
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.cancel("sync")
        self.consumer.expect(group, member, classic.session_timeout_ms)
        return SyncAnswer(
            ErrorCode.NONE,
            request.protocol_type,
            request.protocol_name,
            self._assignment(member.assigned, classic, visible),
        )

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Keep a member of the classic protocol alive; raises GroupError if it is not one."""
        member, classic = self._classic_member(group, member_id, instance_id)
        if generation != member.epoch:
            return ErrorCode.ILLEGAL_GENERATION
        self.consumer.expect(group, member, classic.session_timeout_ms)
        is_free = member.state is MemberState.UNRELEASED and not self._waits(group, member)
        is_late = member.epoch < group.target_epoch
        if is_late or is_free or member.state is MemberState.UNREVOKED:
            self._joins_within(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, group: ConsumerGroup, members: Sequence[tuple[str, str | None]]
    ) -> list[ErrorCode]:
        """Remove members; returns the error code of each."""
        codes: list[ErrorCode] = []
        leaving: dict[str, ConsumerMember] = {}
        for member_id, instance_id in in_turns(members):
            try:
                member = _named(group, member_id, instance_id)
            except GroupError as error:
                codes.append(error.code)
            else:
                codes.append(ErrorCode.NONE)
                leaving[member.member_id] = member
        self.fence(group, list(leaving.values()))
        return codes

    def _is_still(self, group: Group) -> bool:
        """Tell whether a group is the one of its id, after others had their turn."""
        return self._table.groups.get(group.group_id) is group

    def _may_downgrade(self, staying: Collection[ConsumerMember], joining: int = 0) -> bool:
        count = len(staying) + joining
        if self._settings.consumer_migration_policy not in ("bidirectional", "downgrade"):
            return False
        all_classic = all(each.classic is not None for each in staying)
        return all_classic and 0 < count <= self._settings.max_size

    def _upgraded_members(self, group: ClassicGroup) -> list[tuple[ConsumerMember, Epochs]]:
        """Return the members of a classic group as the newer protocol has them, and what they have.

        Raises GroupError if that cannot be read, or the group changes meanwhile.
        """
        generation, olds = group.generation, list(group.members.values())
        try:
            members = [self._upgraded_member(group, each) for each in in_turns(olds)]
        except Malformed as error:
            raise _not_upgraded(group, str(error)) from error
        is_same = generation == group.generation and olds == list(group.members.values())
        if not is_same or not self._is_still(group):
            raise gone_meanwhile()
        return members

    def _upgraded_member(
        self, group: ClassicGroup, old: ClassicMember
    ) -> tuple[ConsumerMember, Epochs]:
        subscription = read_subscription(old.metadata(group.protocol_name))
        member = ConsumerMember(old.member_id)
        member.instance_id = old.instance_id
        member.rack_id = subscription.rack
        member.client_id, member.client_host = old.client_id, old.client_host
        member.rebalance_timeout_ms = old.rebalance_timeout_ms
        member.names = frozenset(subscription.topics)
        member.epoch = member.former_epoch = group.generation
        member.classic = ClassicPart(old.session_timeout_ms, old.protocols)
        assigned = read_assignment(old.assignment) if old.assignment else {}
        by_id = self._by_id(assigned)
        return member, with_epoch(by_id.items(), group.generation)

    def _by_id(self, partitions: Mapping[str, Collection[int]]) -> dict[bytes, Collection[int]]:
        return {
            self._topics.id_of(name): some
            for name, some in partitions.items()
            if self._topics.exists(name)
        }

    def _downgraded(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> ClassicGroup:
        """Make a group one of the classic protocol, stable with what its members are to have."""
        downgraded = ClassicGroup(group.group_id, group.account, self._clock.now_ms(), group.epoch)
        kept = [
            (each, each.classic, group.target.get(each.member_id, {}))
            for each in members
            if each.classic is not None
        ]
        self._table.replace(downgraded)
        for member, classic, target in kept:
            new = ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                PROTOCOL_TYPE,
                classic.protocols,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=classic.session_timeout_ms,
            )
            downgraded.add(new)
            new.assignment = self._assignment(target, classic, list)
            downgraded.account.give(-len(new.assignment))
        downgraded.become(State.STABLE, self._clock.now_ms())
        downgraded.protocol_name = downgraded.select_protocol()
        for member_id in downgraded.members:
            self._classic.keep_alive(downgraded, member_id)
        return downgraded

    def _assignment(
        self,
        partitions: Mapping[bytes, Collection[int]],
        classic: ClassicPart,
        visible: Visible,
    ) -> bytes:
        by_name = {
            name: some
            for topic, some in partitions.items()
            if (name := self._topics.name_of(topic)) is not None
        }
        seen = {name: sorted(by_name[name]) for name in visible(by_name)}
        return assignment_bytes(seen, version_of(classic.protocols[0][1]))

    def _supported(self, group: ConsumerGroup, request: JoinRequest) -> Subscription:
        """Return the subscription of a member that can be in the group; raises GroupError."""
        names = {name for name, _ in request.protocols}
        others = [
            {name for name, _ in each.classic.protocols}
            for each in group.members.values()
            if each.classic is not None
        ]
        if request.protocol_type != PROTOCOL_TYPE or not names.intersection(*others):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            return read_subscription(request.protocols[0][1])
        except Malformed as error:
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error

    def _joining(
        self, group: ConsumerGroup, request: JoinRequest, member_id: str
    ) -> tuple[ConsumerMember | None, bool]:
        """Return the member that joins or is replaced, if there is one, and whether it is new."""
        if request.instance_id is None:
            return group.members.get(member_id), member_id not in group.members
        if request.member_id:
            return find_static(group, request.instance_id, member_id), False
        member = group.static_member(request.instance_id)
        return member, True

    def _updated(
        self,
        group: ConsumerGroup,
        member: ConsumerMember | None,
        request: JoinRequest,
        member_id: str,
        subscription: Subscription,
        *,
        is_new: bool,
    ) -> ConsumerMember:
        if member is None:
            member = ConsumerMember(member_id)
            member.instance_id = request.instance_id
            group.add(member)
        elif is_new:
            group.rename(member, member_id)
            member.epoch = member.former_epoch = 0
        told = Told(
            frozenset(subscription.topics),
            NO_PATTERN,
            subscription.rack or member.rack_id,
            request.client_id,
            request.client_host,
            ClassicPart(request.session_timeout_ms, request.protocols),
        )
        has_other_topics = group.tell(member, told)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        group.note_changes(has_changed=has_other_topics)
        return member

    def _reconcile(
        self, group: ConsumerGroup, member: ConsumerMember, subscription: Subscription
    ) -> None:
        owned = self._by_id(subscription.owned)
        self.consumer.reconcile(group, member, owned, has_other_topics=True)

    def _downgrade_with(
        self, group: ConsumerGroup, member: ConsumerMember, request: JoinRequest
    ) -> JoinAnswer:
        """Make a group one of the classic protocol whose last other member has been replaced."""
        is_stale = group.target_epoch < group.epoch
        if not is_stale:
            self._reconcile(group, member, read_subscription(request.protocols[0][1]))
        answer = _joined(member, request)
        downgraded = self._downgraded(group, list(group.members.values()))
        if is_stale:
            self._classic.rebalance(downgraded)
        return answer

    def _classic_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> tuple[ConsumerMember, ClassicPart]:
        if instance_id is None:
            member = group.find_member(member_id)
        else:
            member = find_static(group, instance_id, member_id)
        if member.classic is None:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member, member.classic

    def _joins_within(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        if "join" not in member.timers:
            self.consumer.set_deadline(group, member, "join", member.rebalance_timeout_ms)

    def _waits(self, group: ConsumerGroup, member: ConsumerMember) -> bool:
        """Tell whether others still have all that a member waits for."""
        target = group.target.get(member.member_id, {})
        missing = [
            (topic, index)
            for topic, some in target.items()
            for index in some - member.assigned.get(topic, {}).keys()
        ]
        return any(group.owner(*each) not in (None, member.member_id) for each in missing)


def _joined(member: ConsumerMember, request: JoinRequest) -> JoinAnswer:
    protocol = request.protocols[0][0]
    return JoinAnswer(ErrorCode.NONE, member.member_id, member.epoch, PROTOCOL_TYPE, protocol)


def _named(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member that a LeaveGroup names; a static one may be named without its id."""
    if instance_id is None:
        return group.find_member(member_id)
    if member_id:
        return find_static(group, instance_id, member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _not_upgraded(group: ClassicGroup, why: str) -> GroupError:
    return GroupError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {shown_name(group.group_id)} to consumer group because "
        f"{why}.",
    )
