"""How partitions are shared out in share groups, and the settings of single groups."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from aclbroker.broker.memory.groups import Groups, GroupSettings
from aclbroker.broker.memory.groups.assignors import Assignment, Subscriber
from aclbroker.broker.memory.groups.consumer import HeartbeatAnswer, HeartbeatRequest
from aclbroker.broker.memory.groups.group import Full
from aclbroker.broker.memory.groups.group_configs import GroupConfigs, duration_ms
from aclbroker.broker.memory.groups.share import ShareHeartbeatAnswer, ShareHeartbeatRequest
from aclbroker.broker.memory.groups.simple_assignor import assign_simply
from aclbroker.broker.topic_configs import InvalidConfig
from tests.memory.groups.support import GROUP, groups_at, still_clock
from tests.support.tables import check_each

A, B = b"a" * 16, b"b" * 16


def sizes(assigned: dict[str, Assignment]) -> list[int]:
    """How many partitions each member has."""
    return [sum(map(len, each.values())) for each in assigned.values()]


def test_all_is_shared_evenly_and_members_keep_what_they_can():
    check_each(range(40), _check_shared_evenly)


def _check_shared_evenly(seed: int) -> None:
    random = Random(seed)
    topics = frozenset({A, B})
    counts = {A: random.randint(0, 9), B: random.randint(0, 9)}
    has: dict[str, Assignment] = {}
    for _ in range(6):
        names = random.sample("abcdefghijklmnop", random.randint(1, 14))
        members = [Subscriber(name, None, topics, has.get(name, {})) for name in names]
        assigned = assign_simply(members, counts)
        total = sum(counts.values())
        found = sizes(assigned)
        assert max(found, default=0) - min(found, default=0) <= 1
        sharing = -(-len(names) // total) if total else 0
        for topic, count in counts.items():
            for index in range(count):
                holders = [n for n, each in assigned.items() if index in each.get(topic, ())]
                assert 1 <= len(holders) <= sharing
        again = assign_simply(
            [Subscriber(name, None, topics, assigned[name]) for name in names], counts
        )
        assert again == assigned
        has = assigned


def test_members_that_read_other_topics_share_each_topic_by_itself():
    members = [
        Subscriber("one", None, frozenset({A}), {}),
        Subscriber("two", None, frozenset({B}), {}),
        Subscriber("three", None, frozenset({A, B}), {}),
    ]
    assigned = assign_simply(members, {A: 4, B: 2})
    assert {topic: len(some) for topic, some in assigned["one"].items()} == {A: 2}
    assert {topic: len(some) for topic, some in assigned["two"].items()} == {B: 1}
    assert {topic: len(some) for topic, some in assigned["three"].items()} == {A: 2, B: 1}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.5S", 183_845_500),
        ("pt0.25s", 250),
        ("PT", None),
        ("P", None),
        ("1h", None),
        ("P1Y", None),
        ("", None),
    ],
)
def test_durations_are_those_of_iso_8601(text: str, milliseconds: int | None):
    assert duration_ms(text) == milliseconds


def test_what_holds_for_all_groups_may_be_beyond_the_limits_of_kafka_and_so_may_one_group():
    configs = GroupConfigs(GroupSettings(share_record_lock_ms=1_000))
    assert configs.number("g", "share.record.lock.duration.ms") == 1_000
    configs.set("g", {"share.record.lock.duration.ms": "2000"})
    assert configs.number("g", "share.record.lock.duration.ms") == 2_000
    with pytest.raises(InvalidConfig, match=r"group\.share\.min\.record\.lock\.duration\.ms"):
        configs.set("g", {"share.record.lock.duration.ms": "999"})
    configs.set("g", {})
    assert configs.by_group == {}


def beat(
    groups: Groups, epoch: int, *names: str, member_id: str = "m", group_id: str = GROUP
) -> ShareHeartbeatAnswer:
    """Send a heartbeat, which tells the names of topics if there are some."""
    request = ShareHeartbeatRequest(group_id, member_id, epoch, names=names or None)
    return groups.share_heartbeat(request)


def test_a_group_without_members_stays_until_it_is_deleted():
    clock = still_clock()
    groups = groups_at(clock)
    beat(groups, 0, "t")
    beat(groups, -1)
    clock.advance(30 * 24 * 3600 * 1000)
    assert groups.share_group(GROUP).is_empty
    assert groups.delete(GROUP) == 0
    assert GROUP not in groups.table.groups


def test_a_member_that_tells_its_topics_is_told_what_it_has():
    groups = groups_at(still_clock())
    first = beat(groups, 0, "t")
    epoch = beat(groups, first.epoch).epoch
    assert beat(groups, epoch).assignment is None
    assert beat(groups, epoch, "t").assignment == first.assignment


def share(groups: Groups, epoch: int, **whose: str) -> ShareHeartbeatAnswer:
    """Send a heartbeat of a member of a share group, who reads t."""
    return beat(groups, epoch, "t", **whose)


def consume(
    groups: Groups, epoch: int, *, member_id: str = "m", group_id: str = GROUP
) -> HeartbeatAnswer:
    """Send a heartbeat of a consumer, who reads t."""
    request = HeartbeatRequest(
        group_id, member_id, epoch, rebalance_timeout_ms=60_000, names=("t",), owned={}
    )
    return groups.consumer_heartbeat(request, lambda found: found)


@pytest.mark.parametrize("join", [share, consume], ids=["share", "consumer"])
def test_what_members_are_assigned_takes_room_which_is_free_when_they_are_gone(
    join: Callable[..., Any],
):
    groups = groups_at(still_clock())
    groups.topics.grow(groups.topics.by_name["t"], 1_000)
    join(groups, 0, member_id="first")
    assert groups.account.taken > 1_000 * 150
    groups.account.limit = 2 * groups.account.taken - 100_000
    with pytest.raises(Full):
        join(groups, 0, group_id="other")
    other: Any = groups.table.find("other")
    assert not other.members
    # Those who are there stay, though nobody is assigned what is new.
    groups.topics.grow(groups.topics.by_name["t"], 4_000)
    first: Any = groups.table.find(GROUP)
    join(groups, first.members["first"].epoch, member_id="first")
    assert list(first.members) == ["first"]
    for group_id in (GROUP, "other"):
        for member in list(groups.table.find(group_id).members.values()):  # type: ignore[attr-defined]
            groups.table.find(group_id).remove(member)  # type: ignore[attr-defined]
        assert groups.delete(group_id) == 0
    assert groups.account.taken == 0
