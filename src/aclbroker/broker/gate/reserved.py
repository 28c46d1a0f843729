"""Finds the topics in requests that are reserved: they keep the broker's own ACLs.

`RequestRights` denies them wherever a right on a topic is asked for. Requests with a right on the
cluster name topics, too, and this finds those.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from aclbroker.acl.bindings import ResourceType
from aclbroker.broker.gate.disclosure import Echoed
from aclbroker.broker.gate.places import Place, entries_in
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.shown import SHOWN
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.broker.gate.viewer import View
from aclbroker.turns import in_turns


class Reserved(NamedTuple):
    """An entry of a request that is about a reserved topic, and its position among all there."""

    place: Place
    position: int
    entry: Any
    name: str

    def is_of(self, array: str) -> bool:
        """Tell whether it is in an array of the request, and in no array of another one's."""
        return not self.place.owners and self.place.array == array


def reserved_in(request: Any, rights: RequestRights, topics: Topics) -> list[Reserved]:
    """Return the entries of a request that are about reserved topics, by their names or ids."""
    view = View(request, rights, topics)
    found = []
    for place in _places(rights.row.key):
        for position, entry in enumerate(in_turns(entries_in([request], place))):
            name = view.name_of(entry, place)
            if name in rights.reserved:
                found.append(Reserved(place, position, entry, name or ""))
    return found


@cache
def _places(key: int) -> tuple[Place, ...]:
    """Return where requests of a key name topics, as `broker.gate.shown` declares it."""
    return tuple(place for line in SHOWN[key] for place in _asked_in(line))


def _asked_in(line: object, owners: tuple[str, ...] = ()) -> Iterator[Place]:
    if isinstance(line, Echoed):
        for place in line.asked_places:
            if line.resource is ResourceType.TOPIC:
                yield place._replace(owners=(*owners, *place.owners))
            yield from _asked_in(line.inside, (*owners, *place.owners, place.array))
