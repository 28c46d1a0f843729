"""How the partitions of topics are shared out among consumers by the broker: range and uniform.

Both are pure functions. What they give is what Kafka's assignors of these names guarantee: with
``range``, each topic's partitions by themselves in ranges that go through the members in order;
with ``uniform``, members' counts as equal as subscriptions allow, while each keeps what it can of
what it has. Racks are not taken notice of, as in Kafka. They may pause.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from aclbroker.turns import in_turns, pause

Assignment = dict[bytes, set[int]]
"""Partitions by the ids of their topics."""


class Subscriber(NamedTuple):
    """A member with the ids of the topics it reads, and what it is to have so far."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    has: Mapping[bytes, Collection[int]]


_MOST_ROUNDS: Final = 16
"""How often all topics are gone through for partitions to move."""

_Load = tuple[int, int, str]
"""How much a member has, its place among the readers of a topic, and its id."""

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
    for member in in_turns(ordered):
        for topic in in_turns(member.topics):
            subscribers[topic] = subscribers.get(topic, 0) + 1
    taken = dict.fromkeys(subscribers, 0)
    given = dict.fromkeys(subscribers, 0)
    assigned: dict[str, Assignment] = {}
    for member in in_turns(ordered):
        mine = assigned[member.member_id] = {}
        for topic in in_turns(member.topics):
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
    for number, member in enumerate(in_turns(members)):
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
    for mine, places in in_turns(room):
        for topic, index in islice(free, places):
            mine.setdefault(topic, set()).add(index)
    return assigned


def _different(members: Sequence[Subscriber], counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    assigned: dict[str, Assignment] = {}
    sizes: dict[str, int] = {}
    readers: dict[bytes, list[str]] = {}
    taken: set[tuple[bytes, int]] = set()
    for member in in_turns(members):
        kept = _kept(member, counts, taken)
        assigned[member.member_id] = _first(kept, len(kept))
        taken.update(kept)
        sizes[member.member_id] = len(kept)
        for topic in in_turns(member.topics):
            readers.setdefault(topic, []).append(member.member_id)
    # Topics with few readers for their partitions leave the least choice, so they come first.
    ordered = sorted(readers, key=lambda each: (-counts.get(each, 0) / len(readers[each]), each))
    for topic in in_turns(ordered):
        least = _heap(readers[topic], sizes)
        for _, index in in_turns(_free((topic,), counts, taken)):
            size, place, reader = least[0]
            assigned[reader].setdefault(topic, set()).add(index)
            sizes[reader] = size + 1
            heapq.heapreplace(least, (size + 1, place, reader))
    _balance(assigned, sizes, readers, ordered)
    return assigned


def _heap(readers: Sequence[str], sizes: Mapping[str, int], sign: int = 1) -> list[_Load]:
    """Return a heap of readers, on top of which is who has least or, with -1 as sign, most."""
    heap = [(sign * sizes[each], place, each) for place, each in enumerate(in_turns(readers))]
    heapq.heapify(heap)
    return heap


def _balance(
    assigned: dict[str, Assignment],
    sizes: dict[str, int],
    readers: Mapping[bytes, Sequence[str]],
    topics: Sequence[bytes],
) -> None:
    """Move partitions from who has two more than another that reads the topic, until none has."""
    for _ in range(_MOST_ROUNDS):
        moved = [_balance_topic(assigned, sizes, readers[each], each) for each in in_turns(topics)]
        if not any(moved):
            return


def _balance_topic(
    assigned: dict[str, Assignment], sizes: dict[str, int], readers: Sequence[str], topic: bytes
) -> bool:
    """Move partitions of a topic; tell whether there were some to move."""
    most = _heap([each for each in readers if assigned[each].get(topic)], sizes, sign=-1)
    least = _heap(readers, sizes)
    has_moved = False
    while most:
        pause()
        # Who was moved to or from is in its former place in the other heap.
        load, place, giver = most[0]
        if -load != sizes[giver] or topic not in assigned[giver]:
            heapq.heappop(most)
            if topic in assigned[giver]:
                heapq.heappush(most, (-sizes[giver], place, giver))
            continue
        load, place, taker = least[0]
        if load != sizes[taker]:
            heapq.heapreplace(least, (sizes[taker], place, taker))
            continue
        if sizes[giver] - sizes[taker] < 2:
            break
        index = assigned[giver][topic].pop()
        if not assigned[giver][topic]:
            del assigned[giver][topic]
        assigned[taker].setdefault(topic, set()).add(index)
        sizes[giver] -= 1
        sizes[taker] += 1
        has_moved = True
    return has_moved


def _kept(
    member: Subscriber, counts: Mapping[bytes, int], taken: set[tuple[bytes, int]]
) -> list[tuple[bytes, int]]:
    """Return what a member has that exists, that it reads, and that nobody else has."""
    return [
        (topic, index)
        for topic, some in in_turns(list(member.has.items()))
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
        for topic in in_turns(ordered)
        for index in in_turns(range(counts.get(topic, 0)))
        if (topic, index) not in taken
    ]


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors by their names."""
