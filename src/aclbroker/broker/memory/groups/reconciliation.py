"""How a member gets from what it has to what it is to have: gives up first, is given then.

The rules are those of Kafka's CurrentAssignmentBuilder. A partition is never two members': who is
to have it waits until the former one says that it has given it up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from aclbroker.broker.memory.groups.consumer_group import (
    ConsumerGroup,
    ConsumerMember,
    Epochs,
    MemberState,
)

Owned = Mapping[bytes, Collection[int]] | None
"""What a member says that it has, by topic id; None if it says nothing."""


def reconcile(
    group: ConsumerGroup, member: ConsumerMember, owned: Owned, *, has_other_topics: bool
) -> bool:
    """Take a member as far as it gets now; tell whether anything of it changed.

    ``has_other_topics`` says that its subscription has just changed.
    """
    before = member.epoch, member.state, member.assigned, member.revoking
    if member.state is MemberState.STABLE:
        if member.epoch != group.target_epoch:
            _go_on(group, member, owned)
        elif has_other_topics:
            _drop_topics(group, member, owned)
    elif member.state is MemberState.UNREVOKED and _has_any(owned, member.revoking):
        if has_other_topics:
            _drop_topics(group, member, owned)
    else:
        _go_on(group, member, owned)
    return before != (member.epoch, member.state, member.assigned, member.revoking)


def _has_any(owned: Owned, partitions: Epochs) -> bool:
    """Tell whether a member still has some partitions; who says nothing may."""
    if owned is None:
        return True
    return any(
        index in partitions.get(topic, ()) for topic, some in owned.items() for index in some
    )


def _drop_topics(group: ConsumerGroup, member: ConsumerMember, owned: Owned) -> None:
    """Take away what a member no longer reads, without waiting for a new assignment."""
    topics = group.subscribed(member)
    dropped = {topic: some for topic, some in member.assigned.items() if topic not in topics}
    if not dropped:
        return
    kept = {topic: some for topic, some in member.assigned.items() if topic in topics}
    revoking = {topic: dict(some) for topic, some in member.revoking.items()}
    for topic, some in dropped.items():
        revoking.setdefault(topic, {}).update(some)
    if _has_any(owned, revoking):
        member.state = MemberState.UNREVOKED
        group.set_partitions(member, kept, revoking)
    else:
        group.set_partitions(member, kept, member.revoking)
    member.become(member.epoch)


def _go_on(group: ConsumerGroup, member: ConsumerMember, owned: Owned) -> None:
    topics = group.subscribed(member)
    target = group.target.get(member.member_id, {})
    assigned: Epochs = {}
    keeping: Epochs = {}
    revoking: Epochs = {}
    is_waiting = False
    for topic in target.keys() | member.assigned.keys():
        wanted = target.get(topic, set()) if topic in topics else set()
        has = member.assigned.get(topic, {})
        kept = {index: epoch for index, epoch in has.items() if index in wanted}
        lost = {index: epoch for index, epoch in has.items() if index not in wanted}
        free = {
            index
            for index in wanted - kept.keys()
            if group.owner(topic, index) in (None, member.member_id)
        }
        is_waiting = is_waiting or len(kept) + len(free) < len(wanted)
        if lost:
            revoking[topic] = lost
        if kept:
            keeping[topic] = kept
        if kept or free:
            assigned[topic] = kept | dict.fromkeys(free, group.target_epoch)
    if revoking and _has_any(owned, revoking):
        # First the member gives up what it is not to have; it is given nothing before.
        member.state = MemberState.UNREVOKED
        member.become(member.epoch)
        group.set_partitions(member, keeping, revoking)
        return
    member.state = MemberState.UNRELEASED if is_waiting else MemberState.STABLE
    member.become(group.target_epoch)
    group.set_partitions(member, assigned, {})
