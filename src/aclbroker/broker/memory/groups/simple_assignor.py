"""How partitions are shared out among the members of share groups: Kafka's assignor ``simple``.

Each partition may be several members', and has about as many of them as any other. If all members
read the same topics, their partitions are shared out together, else each topic's by themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from aclbroker.broker.memory.groups.assignors import Assignment, Subscriber
from aclbroker.turns import in_turns

_Place = tuple[bytes, int]


def assign_simply(
    members: Sequence[Subscriber], counts: Mapping[bytes, int]
) -> dict[str, Assignment]:
    """Give members as equal numbers of partitions as can be; they keep what they have. May pause.

    With fewer members than partitions each partition is one member's, with more it is several'.
    """
    assigned: dict[str, Assignment] = {member.member_id: {} for member in members}
    if len({member.topics for member in members}) <= 1:
        topics = sorted(members[0].topics) if members else []
        places = [(topic, n) for topic in topics for n in in_turns(range(counts.get(topic, 0)))]
        _share_out(members, places, assigned)
        return assigned
    for topic in in_turns(sorted(frozenset().union(*(member.topics for member in members))), 1):
        readers = [member for member in members if topic in member.topics]
        places = [(topic, n) for n in in_turns(range(counts.get(topic, 0)))]
        _share_out(readers, places, assigned)
    return assigned


def _share_out(
    members: Sequence[Subscriber],
    places: Sequence[_Place],
    assigned: Mapping[str, Assignment],
) -> None:
    if not places:
        return
    sharing = -(-len(members) // len(places))
    total = sharing * len(places)
    holders = dict.fromkeys(places, 0)
    room: deque[tuple[Assignment, int]] = deque()
    for number, member in enumerate(in_turns(members)):
        quota = -(-total * (number + 1) // len(members)) + (-total * number // len(members))
        mine = assigned[member.member_id]
        kept = 0
        for topic, some in in_turns(list(member.has.items())):
            for index in in_turns(sorted(some)):
                if kept < quota and holders.get((topic, index), sharing) < sharing:
                    mine.setdefault(topic, set()).add(index)
                    holders[topic, index] += 1
                    kept += 1
        if kept < quota:
            room.append((mine, quota - kept))
    for place in in_turns(places):
        for _ in range(sharing - holders[place]):
            if not _hand_out(place, room):
                break


def _hand_out(place: _Place, room: deque[tuple[Assignment, int]]) -> bool:
    """Give a partition to the next member that has room and does not have it yet, if any."""
    topic, index = place
    for _ in range(len(room)):
        mine, left = room.popleft()
        some = mine.setdefault(topic, set())
        if index not in some:
            some.add(index)
            if left > 1:
                room.append((mine, left - 1))
            return True
        room.append((mine, left))
    return False
