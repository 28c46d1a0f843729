"""The protocol in which the broker assigns partitions (KIP-848): ConsumerGroupHeartbeat.

The rules are those of Kafka's GroupMetadataManager, with two differences: an assignment is made as
soon as it is needed (Kafka's `group.consumer.assignment.interval.ms` of 0), and a new regular
expression is resolved before the heartbeat that brings it is answered, not after. A
further expression of a client in the same group waits for ten seconds, as in Kafka. Kafka
resolves an expression once for all members of a group, with the rights of one of them; here each
client gets only the topics that its own rights let it describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.assignors import ASSIGNORS, Assignment
from aclbroker.broker.memory.groups.consumer_group import (
    LEAVES_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    Told,
    without_epochs,
)
from aclbroker.broker.memory.groups.group import Full, GroupError
from aclbroker.broker.memory.groups.patterns import (
    NO_PATTERN,
    NO_VIEWER,
    MatchedTopics,
    TopicPattern,
    Viewer,
    Visible,
    compiled,
    pattern_of,
)
from aclbroker.broker.memory.groups.reconciliation import Owned, reconcile
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns

_RESOLVED_AGAIN_AFTER_MS: Final = 10_000


class HeartbeatRequest(NamedTuple):
    """A ConsumerGroupHeartbeat and its client; None stands for an omitted field."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    names: Sequence[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Owned = None
    viewer: Viewer = NO_VIEWER

    @property
    def is_full(self) -> bool:
        """Whether it tells all, and so wants to be told all."""
        has_topics = self.names is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None


class HeartbeatAnswer(NamedTuple):
    """The answer to a ConsumerGroupHeartbeat; ``assignment`` is None where it has not changed."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    assignment: Assignment | None = None


class ConsumerProtocol:
    """Carries out what members ask of groups of the newer protocol.

    ``fence`` removes members of a group, which can turn it into one of the classic protocol.
    """

    def __init__(
        self,
        clock: Clock,
        settings: GroupSettings,
        topics: MemoryTopics,
        fence: Callable[[ConsumerGroup, Sequence[ConsumerMember]], None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._topics = topics
        self._fence = fence

    def check(self, group: ConsumerGroup | None, request: HeartbeatRequest) -> None:
        """Raise GroupError if a member may not send such a heartbeat.

        Without a group the member is the first of a new one.
        """
        members = {} if group is None else group.members
        if request.member_id not in members and len(members) >= self._settings.consumer_max_size:
            raise GroupError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                "The consumer group has reached its maximum capacity of "
                f"{self._settings.consumer_max_size} members.",
            )
        if group is not None:
            _check_member(group, request)

    def check_expression(self, group: ConsumerGroup | None, request: HeartbeatRequest) -> None:
        """Raise GroupError if an expression that is new to the group is invalid."""
        used = set() if group is None else {each.regex for each in group.patterns()}
        if request.regex and request.regex not in used:
            compiled(request.regex)

    def resolve(
        self, group: ConsumerGroup | None, request: HeartbeatRequest, visible: Visible
    ) -> Mapping[TopicPattern, MatchedTopics] | None:
        """Return the topics of the client's patterns; None if nothing has to be resolved.

        The rights come first: an expression is matched only against topics that the client may
        describe, so its time reveals no other names. This may pause, and changes nothing.
        """
        patterns = _patterns_of(group, request)
        if not patterns or (group is not None and not self._resolves(group, patterns)):
            return None
        at_ms, version = self._clock.now_ms(), self._topics.version
        names = list(visible(list(self._topics.topics)))
        found = {}
        for pattern in patterns:
            regex = compiled(pattern.regex)
            matching = frozenset([name for name in names if regex.matches(name)])
            found[pattern] = MatchedTopics(matching, at_ms, version)
        return found

    def heartbeat(
        self,
        group: ConsumerGroup,
        request: HeartbeatRequest,
        resolved: Mapping[TopicPattern, MatchedTopics] | None,
    ) -> HeartbeatAnswer:
        """Take a member's heartbeat that was checked; raises Full if there is no room."""
        member = self._member(group, request)
        has_other_topics = self._update(group, member, request)
        changes = self._note_resolved(group, resolved)
        # Before anything pauses: no member is without an end of its session.
        self.expect(group, member, self._settings.consumer_session_timeout_ms)
        group.note_changes(has_changed=has_other_topics or changes)
        self.assign_with(group, member)
        if group.members.get(member.member_id) is not member:
            raise gone_meanwhile()
        was_assigned = without_epochs(member.assigned)
        self.reconcile(group, member, request.owned, has_other_topics=has_other_topics)
        assignment = without_epochs(member.assigned)
        tells = request.epoch == 0 or request.is_full or assignment != was_assigned
        return HeartbeatAnswer(
            member.member_id,
            member.epoch,
            self._settings.consumer_heartbeat_interval_ms,
            assignment if tells else None,
        )

    def leave(self, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatAnswer:
        """Remove a member, or let a static one be away for a while; raises GroupError."""
        if request.instance_id is None:
            member = group.find_member(request.member_id)
        else:
            member = find_static(group, request.instance_id, request.member_id)
        if request.instance_id is not None and request.epoch == LEAVES_FOR_A_WHILE:
            member.become(LEAVES_FOR_A_WHILE)
            assigned = {topic: dict.fromkeys(some, 0) for topic, some in member.assigned.items()}
            group.set_partitions(member, assigned, {})
        else:
            self._fence(group, [member])
        return HeartbeatAnswer(request.member_id, request.epoch)

    def assign_with(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """Say anew what each member is to have, if there is room for that; may pause.

        If there is none, a new member is removed, and Full is raised; others keep what they have.
        """
        try:
            self._assign(group)
        except Full:
            if not member.epoch:
                self._fence(group, [member])
                raise

    def _assign(self, group: ConsumerGroup) -> None:
        """Say anew what each member is to have, if that is as of a former epoch. Raises Full.

        This may pause. If the group changes meanwhile, the next heartbeat begins anew.
        """
        epoch, changes = group.epoch, group.changes
        if group.target_epoch == epoch:
            return
        subscribers = group.subscribers()
        counts: dict[bytes, int] = {}
        for each in in_turns(subscribers):
            for topic in in_turns(each.topics - counts.keys()):
                counts[topic] = self._topics.topics.get(self._topics.name_of(topic) or "", 0)
        assignor = group.preferred_assignor(self._settings.consumer_assignors[0])
        target = ASSIGNORS[assignor](subscribers, counts)
        if (epoch, changes) == (group.epoch, group.changes):
            group.aim_at(target, epoch)

    def reconcile(
        self, group: ConsumerGroup, member: ConsumerMember, owned: Owned, *, has_other_topics: bool
    ) -> None:
        """Take a member as far as it gets; it must have given up partitions in time."""
        if not reconcile(group, member, owned, has_other_topics=has_other_topics):
            return
        if member.classic is None:
            member.cancel("rebalance")
            if member.state is MemberState.UNREVOKED:
                self._set_timer(
                    member,
                    "rebalance",
                    member.rebalance_timeout_ms,
                    partial(self._expire_rebalance, group, member, member.epoch),
                )

    def expect(self, group: ConsumerGroup, member: ConsumerMember, within_ms: int) -> None:
        """Begin a member's session time-out anew."""
        self.set_deadline(group, member, "session", within_ms)

    def set_deadline(
        self, group: ConsumerGroup, member: ConsumerMember, name: str, within_ms: int
    ) -> None:
        """Let a member be removed after a time, unless that is cancelled before."""
        self._set_timer(member, name, within_ms, partial(self._expire, group, member))

    def _resolves(self, group: ConsumerGroup, patterns: set[TopicPattern]) -> bool:
        """Return whether the patterns of one client must be resolved, or resolved anew."""
        known = [group.resolved[each] for each in patterns if each in group.resolved]
        now = self._clock.now_ms()
        resolved_ms = max((each.at_ms for each in known), default=0)
        if known and now <= resolved_ms + _RESOLVED_AGAIN_AFTER_MS:
            return False
        return (
            len(known) != len(patterns)
            or any(each.version != self._topics.version for each in known)
            or now > resolved_ms + self._settings.consumer_regex_refresh_interval_ms
        )

    def _note_resolved(
        self, group: ConsumerGroup, resolved: Mapping[TopicPattern, MatchedTopics] | None
    ) -> bool:
        """Store the topics of patterns; return whether they have changed."""
        used = group.patterns()
        has_changed = False
        for pattern, new in (resolved or {}).items():
            if pattern in used:
                before = group.resolved.get(pattern)
                has_changed |= new.names != (frozenset() if before is None else before.names)
                group.resolved[pattern] = new
        return has_changed

    def _member(self, group: ConsumerGroup, request: HeartbeatRequest) -> ConsumerMember:
        """Return the member of a request that was checked: new, as it was, or under another id."""
        member = group.members.get(request.member_id)
        if request.instance_id is not None:
            static = group.static_member(request.instance_id)
            if static is None and member is not None:
                group.remove(member)  # It is another member than before.
            member = static
        if member is None:
            member = ConsumerMember(request.member_id)
            member.instance_id = request.instance_id
            group.add(member)
        elif member.member_id != request.member_id:
            group.rename(member, request.member_id)
            member.epoch = member.former_epoch = 0
        return member

    def _update(
        self, group: ConsumerGroup, member: ConsumerMember, request: HeartbeatRequest
    ) -> bool:
        """Note what a member tells of itself; tell whether it reads other topics than before."""
        names, rack_id = request.names, request.rack_id
        has_other_topics = group.tell(
            member,
            Told(
                member.names if names is None else frozenset(names),
                pattern_of(member.pattern, request.regex, request.viewer),
                member.rack_id if rack_id is None else rack_id,
                request.client_id,
                request.client_host,
                None,
            ),
        )
        if request.rebalance_timeout_ms != -1:
            member.rebalance_timeout_ms = request.rebalance_timeout_ms
        if request.assignor is not None:
            member.assignor = request.assignor
        group.forget_unused()
        return has_other_topics

    def _set_timer(
        self, member: ConsumerMember, name: str, within_ms: int, ring: Callable[[], None]
    ) -> None:
        member.cancel(name)
        member.timers[name] = self._clock.call_later(within_ms, ring)

    def _expire(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._fence(group, [member])

    def _expire_rebalance(self, group: ConsumerGroup, member: ConsumerMember, epoch: int) -> None:
        member.timers.pop("rebalance", None)
        if member.epoch == epoch:
            self._fence(group, [member])


def gone_meanwhile() -> GroupError:
    """Return the error of a request whose group has changed while others had their turn.

    Its client finds the coordinator again, and asks again.
    """
    return GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The group has changed meanwhile.")


def _patterns_of(group: ConsumerGroup | None, request: HeartbeatRequest) -> set[TopicPattern]:
    """Return the patterns of a group with the viewer of a request, its own pattern included."""
    patterns, former = set[TopicPattern](), NO_PATTERN
    if group is not None:
        patterns = {each for each in group.patterns() if each.viewer == request.viewer}
        member = group.members.get(request.member_id)
        if member is None and request.instance_id is not None:
            member = group.static_member(request.instance_id)
        former = former if member is None else member.pattern
    own = pattern_of(former, request.regex, request.viewer)
    return patterns | {own} if own.regex else patterns


def find_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """Return a static member that has an id; raises GroupError if another has it, or none."""
    member = group.static_member(instance_id)
    if member is None:
        raise GroupError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {shown_name(instance_id)} is unknown."
        )
    if member.member_id != member_id:
        raise GroupError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {shown_name(member_id)} with instance id "
            f"{shown_name(instance_id)} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_member(group: ConsumerGroup, request: HeartbeatRequest) -> None:
    joins = request.epoch == 0
    if request.instance_id is None:
        if not joins or request.member_id in group.members:
            _check_epoch(group.find_member(request.member_id), request)
        return
    member = group.static_member(request.instance_id)
    if not joins:
        _check_epoch(find_static(group, request.instance_id, request.member_id), request)
    elif member is not None and member.classic is None and member.epoch != LEAVES_FOR_A_WHILE:
        raise GroupError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {shown_name(request.member_id)} with instance id "
            f"{shown_name(request.instance_id)} cannot "
            f"join the group because the instance id is owned by {member.member_id} member.",
        )


def _check_epoch(member: ConsumerMember, request: HeartbeatRequest) -> None:
    """Raise GroupError with FENCED_MEMBER_EPOCH if a member is not in its epoch.

    It may still be in the one before, since an answer can be lost.
    """
    received = request.epoch
    if received in (0, member.epoch):
        return
    if received < member.epoch:
        was_lost = received == member.former_epoch and _is_within(request.owned, member)
        if was_lost:
            return
    raise GroupError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if received > member.epoch else 'smaller'} "
        f"member epoch ({received}) than the one known by the group coordinator ({member.epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _is_within(owned: Owned, member: ConsumerMember) -> bool:
    return owned is not None and all(
        index in member.assigned.get(topic, ()) for topic, some in owned.items() for index in some
    )
