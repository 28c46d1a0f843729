"""How the partitions of topics are shared out among consumers by the broker: range and uniform.

Both are pure functions. What they give is what Kafka's assignors of these names guarantee: with
``range``, each topic's partitions by themselves in ranges that go through the members in order;
with ``uniform``, members' counts as equal as subscriptions allow, while each keeps what it can of
what it has. Racks are not taken notice of, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

Assignment = dict[bytes, set[int]]
"""Partitions by the ids of their topics."""


class Subscriber(NamedTuple):
    """A member with the ids of the topics it reads, and what it is to have so far."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    has: Mapping[bytes, Collection[int]]


Assignor = Callable[[Sequence[Subscriber], Mapping[bytes, int]], dict[str, Assignment]]
"""Takes members and how many partitions each topic has; returns what each member is to have."""


def assign_ranges(
    members: Sequence[Subscriber], counts: Mapping[bytes, int]
) -> dict[str, Assignment]:
    """Give each member of a topic a range of its partitions, static members first."""
    # Static members keep their places when they come back under another id.
    ordered = sorted(
        members, key=lambda each: (each.instance_id is None, each.instance_id or each.member_id)
    )
    subscribers: dict[bytes, int] = {}
    for member in ordered:
        for topic in member.topics:
            subscribers[topic] = subscribers.get(topic, 0) + 1
    taken = dict.fromkeys(subscribers, 0)
    given = dict.fromkeys(subscribers, 0)
    assigned: dict[str, Assignment] = {}
    for member in ordered:
        mine = assigned[member.member_id] = {}
        for topic in member.topics:
            quota, extra = divmod(counts.get(topic, 0), subscribers[topic])
            first = given[topic]
            given[topic] += quota + (taken[topic] < extra)
            taken[topic] += 1
            if given[topic] > first:
                mine[topic] = set(range(first, given[topic]))
    return assigned


def assign_uniformly(
    members: Sequence[Subscriber], counts: Mapping[bytes, int]
) -> dict[str, Assignment]:
    """Give members as equal numbers of partitions as can be, and let them keep what they have."""
    if len({member.topics for member in members}) == 1:
        return _all_alike(members, counts)
    return _different(members, counts)


def _all_alike(members: Sequence[Subscriber], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    topics = members[0].topics
    total = sum(counts.get(topic, 0) for topic in topics)
    quota, extra = divmod(total, len(members))
    assigned: dict[str, Assignment] = {}
    room: list[tuple[Assignment, int]] = []
    taken: set[tuple[bytes, int]] = set()
    for number, member in enumerate(members):
        kept = _kept(member, counts, taken)
        # Who has most keeps one more, as long as there are such places.
        most = quota + (extra > 0)
        mine = assigned[member.member_id] = _first(kept, most)
        taken.update((topic, index) for topic, some in mine.items() for index in some)
        has = sum(map(len, mine.values()))
        if has < most and extra and len(members) - number > extra:
            most = quota
        extra -= most > quota
        if has < most:
            room.append((mine, most - has))
    free = iter(_free(topics, counts, taken))
    for mine, places in room:
        for topic, index in islice(free, places):
            mine.setdefault(topic, set()).add(index)
    return assigned


def _different(members: Sequence[Subscriber], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    assigned: dict[str, Assignment] = {}
    sizes: dict[str, int] = {}
    readers: dict[bytes, list[str]] = {}
    taken: set[tuple[bytes, int]] = set()
    for member in members:
        kept = _kept(member, counts, taken)
        assigned[member.member_id] = _first(kept, len(kept))
        taken.update(kept)
        sizes[member.member_id] = len(kept)
        for topic in member.topics:
            readers.setdefault(topic, []).append(member.member_id)
    # Topics with few readers for their partitions leave the least choice, so they come first.
    ordered = sorted(readers, key=lambda each: (-counts.get(each, 0) / len(readers[each]), each))
    for topic, index in _free(ordered, counts, taken):
        least = min(readers[topic], key=sizes.__getitem__)
        assigned[least].setdefault(topic, set()).add(index)
        sizes[least] += 1
    _balance(assigned, sizes, readers, ordered)
    return assigned


_MOST_ROUNDS: Final = 16


def _balance(
    assigned: dict[str, Assignment],
    sizes: dict[str, int],
    readers: Mapping[bytes, Sequence[str]],
    topics: Sequence[bytes],
) -> None:
    """Move partitions from who has two more than another that reads the topic, until none has."""
    for _ in range(_MOST_ROUNDS):
        if not sum([_balance_topic(assigned, sizes, readers[topic], topic) for topic in topics]):
            return


def _balance_topic(
    assigned: dict[str, Assignment], sizes: dict[str, int], readers: Sequence[str], topic: bytes
) -> int:
    moved = 0
    givers = [each for each in readers if assigned[each].get(topic)]
    while givers:
        most = max(givers, key=sizes.__getitem__)
        least = min(readers, key=sizes.__getitem__)
        if sizes[most] - sizes[least] < 2:
            break
        index = max(assigned[most][topic])
        assigned[most][topic].remove(index)
        if not assigned[most][topic]:
            del assigned[most][topic]
        assigned[least].setdefault(topic, set()).add(index)
        sizes[most] -= 1
        sizes[least] += 1
        moved += 1
        givers = [each for each in readers if assigned[each].get(topic)]
    return moved


def _kept(
    member: Subscriber, counts: Mapping[bytes, int], taken: set[tuple[bytes, int]]
) -> list[tuple[bytes, int]]:
    """Return what a member has that exists, that it reads, and that nobody else has."""
    return [
        (topic, index)
        for topic, some in member.has.items()
        if topic in member.topics
        for index in sorted(some)
        if index < counts.get(topic, 0) and (topic, index) not in taken
    ]


def _first(places: Sequence[tuple[bytes, int]], count: int) -> Assignment:
    assignment: Assignment = {}
    for topic, index in places[:count]:
        assignment.setdefault(topic, set()).add(index)
    return assignment


def _free(
    topics: Collection[bytes], counts: Mapping[bytes, int], taken: set[tuple[bytes, int]]
) -> list[tuple[bytes, int]]:
    ordered = topics if isinstance(topics, Sequence) else sorted(topics)
    return [
        (topic, index)
        for topic in ordered
        for index in range(counts.get(topic, 0))
        if (topic, index) not in taken
    ]


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors by their names."""
