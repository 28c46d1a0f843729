"""The protocol in which the broker assigns partitions (KIP-848): ConsumerGroupHeartbeat.

The rules are those of Kafka's GroupMetadataManager, with two differences: an assignment is made as
soon as it is needed (Kafka's `group.consumer.assignment.interval.ms` of 0), and a new regular
expression is resolved before the heartbeat that brings it is answered, not after.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
from aclbroker.broker.memory.groups.reconciliation import Owned, reconcile
from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.memory.groups.topic_regex import TopicRegex
from aclbroker.broker.memory.groups.topic_regex_syntax import RegexError
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.turns import in_turns, pause

_RESOLVED_AGAIN_AFTER_MS: Final = 10_000

Visible = Callable[[Collection[str]], Collection[str]]
"""Takes names of topics; returns those that the client may know of."""


class HeartbeatRequest(NamedTuple):
    """What a ConsumerGroupHeartbeat asks, and of whom it is; None is what it does not tell."""

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
        used = set() if group is None else group.regexes()
        if request.regex and request.regex not in used:
            compiled(request.regex)

    def resolve(
        self, group: ConsumerGroup | None, request: HeartbeatRequest, visible: Visible
    ) -> Mapping[str, frozenset[str]] | None:
        """Return what regular expressions of a group stand for, None if that need not be looked at.

        It is resolved with what the client of this request may know of. This may pause, and changes
        nothing.
        """
        regexes = set() if group is None else group.regexes()
        if request.regex:
            regexes.add(request.regex)
        if not regexes or (group is not None and not self._resolves(group, regexes)):
            return None
        names, found = list(self._topics.topics), {}
        for regex in regexes:
            pattern = compiled(regex)
            pause()
            found[regex] = [name for name in in_turns(names) if pattern.matches(name)]
        all_found = {name for some in found.values() for name in some}
        seen = set(visible(all_found)) if all_found else set()
        return {regex: frozenset(seen.intersection(some)) for regex, some in found.items()}

    def heartbeat(
        self,
        group: ConsumerGroup,
        request: HeartbeatRequest,
        resolved: Mapping[str, frozenset[str]] | None,
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

    def _resolves(self, group: ConsumerGroup, regexes: set[str]) -> bool:
        resolved_ms, version = group.resolved_at
        now = self._clock.now_ms()
        if group.resolved and now <= resolved_ms + _RESOLVED_AGAIN_AFTER_MS:
            return False
        return (
            regexes != set(group.resolved)
            or version != self._topics.version
            or now > resolved_ms + self._settings.consumer_regex_refresh_interval_ms
        )

    def _note_resolved(
        self, group: ConsumerGroup, resolved: Mapping[str, frozenset[str]] | None
    ) -> bool:
        """Keep what expressions stand for; tell whether that is something else than before."""
        if resolved is None:
            return False
        used = group.regexes()
        new = {regex: names for regex, names in resolved.items() if regex in used}
        has_changed = any(
            names != group.resolved.get(regex, frozenset()) for regex, names in new.items()
        )
        group.resolved |= new
        group.resolved_at = self._clock.now_ms(), self._topics.version
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
        names, regex, rack_id = request.names, request.regex, request.rack_id
        has_other_topics = group.tell(
            member,
            Told(
                member.names if names is None else frozenset(names),
                member.regex if regex is None else regex,
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
        for unused in set(group.resolved) - group.regexes():
            del group.resolved[unused]
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


def compiled(regex: str) -> TopicRegex:
    """Return a compiled expression; raises GroupError with INVALID_REGULAR_EXPRESSION."""
    try:
        return TopicRegex(regex)
    except RegexError as error:
        raise GroupError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{shown_name(regex)}` is not a valid regular expression: "
            f"{error}.",
        ) from error


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
