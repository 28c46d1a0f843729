"""How the broker shares out partitions among consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.broker.memory.groups.assignors import (
    ASSIGNORS,
    Assignment,
    Subscriber,
    assign_ranges,
    assign_uniformly,
)

A, B, C = b"a", b"b", b"c"
COUNTS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 7))
TOPICS = st.frozensets(st.sampled_from([A, B, C]))
TOPICS_OF_MEMBERS = st.lists(TOPICS, min_size=1, max_size=6) | st.tuples(
    TOPICS, st.integers(1, 6)
).map(lambda both: [both[0]] * both[1])


def member(
    name: str,
    *topics: bytes,
    has: Mapping[bytes, set[int]] | None = None,
    instance_id: str | None = None,
) -> Subscriber:
    return Subscriber(name, instance_id, frozenset(topics), has or {})


def sizes(assigned: Mapping[str, Assignment]) -> dict[str, int]:
    return {name: sum(map(len, mine.values())) for name, mine in assigned.items()}


def test_ranges_go_through_the_members_in_order_topic_by_topic():
    assigned = assign_ranges([member("m2", A, B), member("m1", A, B)], {A: 3, B: 2})
    assert assigned == {"m1": {A: {0, 1}, B: {0}}, "m2": {A: {2}, B: {1}}}


def test_ranges_are_of_those_who_read_the_topic():
    members = [member("m1", A), member("m2", A, B), member("m3", B)]
    assigned = assign_ranges(members, {A: 4, B: 1})
    assert assigned == {"m1": {A: {0, 1}}, "m2": {A: {2, 3}, B: {0}}, "m3": {}}


def test_a_static_member_has_its_range_under_any_id():
    members = [
        member("m1", A),
        member("m9", A, instance_id="i1"),
        member("m5", A, instance_id="i2"),
    ]
    assigned = assign_ranges(members, {A: 3})
    assert assigned == {"m9": {A: {0}}, "m5": {A: {1}}, "m1": {A: {2}}}


def test_uniform_shares_partitions_of_all_topics_together():
    assigned = assign_uniformly([member("m1", A, B), member("m2", A, B)], {A: 1, B: 3})
    assert sizes(assigned) == {"m1": 2, "m2": 2}


def test_uniform_lets_members_keep_what_they_have():
    members = [member("m1", A, has={A: {0, 1, 2, 3}}), member("m2", A)]
    assigned = assign_uniformly(members, {A: 4})
    assert assigned["m1"] == {A: {0, 1}}
    assert assigned["m2"] == {A: {2, 3}}


def test_uniform_moves_partitions_from_who_reads_more_to_who_reads_less():
    members = [member("m1", A, B), member("m2", A, has={A: {0, 1, 2, 3}})]
    assigned = assign_uniformly(members, {A: 4, B: 2})
    assert sizes(assigned) == {"m1": 3, "m2": 3}
    assert assigned["m1"][B] == {0, 1}


@given(st.sampled_from(sorted(ASSIGNORS)), TOPICS_OF_MEMBERS, COUNTS, st.data())
def test_each_partition_that_somebody_reads_is_given_to_one_who_reads_it(
    assignor: str, topics: list[frozenset[bytes]], counts: dict[bytes, int], data: st.DataObject
):
    had = data.draw(
        st.dictionaries(
            st.tuples(st.sampled_from([A, B, C]), st.integers(0, 8)),
            st.integers(0, len(topics) - 1),
        )
    )
    members = []
    for number, each in enumerate(topics):
        has: dict[bytes, set[int]] = {}
        for (topic, index), owner in had.items():
            if owner == number:
                has.setdefault(topic, set()).add(index)
        members.append(member(f"m{number}", *each, has=has))
    assigned = ASSIGNORS[assignor](members, counts)
    given_to = Counter(
        (topic, index)
        for mine in assigned.values()
        for topic, some in mine.items()
        for index in some
    )
    read = {topic for each in topics for topic in each}
    assert given_to == Counter(
        (topic, index) for topic in read for index in range(counts.get(topic, 0))
    )
    for reader in members:
        assert set(assigned[reader.member_id]) <= reader.topics
        assert all(assigned[reader.member_id].values())
    if assignor == "uniform":
        _assert_balanced(members, assigned)


def _assert_balanced(members: list[Subscriber], assigned: Mapping[str, Assignment]) -> None:
    count = sizes(assigned)
    for giver in members:
        for topic in assigned[giver.member_id]:
            for taker in members:
                if topic in taker.topics:
                    assert count[giver.member_id] - count[taker.member_id] < 2


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_what_is_assigned_stays_when_nothing_changes(assignor: str):
    members = [member("m1", A, B), member("m2", A, B), member("m3", A, B)]
    counts = {A: 5, B: 3}
    once = ASSIGNORS[assignor](members, counts)
    again = [each._replace(has=once[each.member_id]) for each in members]
    assert ASSIGNORS[assignor](again, counts) == once
