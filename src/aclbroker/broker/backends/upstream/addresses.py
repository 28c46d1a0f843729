"""Replaces the addresses of nodes in answers from upstream by those of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from aclbroker.broker.client.settings import Address
from aclbroker.broker.gate.disclosure import Nodes
from aclbroker.broker.gate.places import values_of
from aclbroker.broker.gate.shown import SHOWN
from aclbroker.turns import in_turns

NO_ADDRESS: Final[Address] = ("", -1)
"""The address of a node that the gateway does not serve, as Kafka writes that there is none."""


class _Place(NamedTuple):
    """The structs on the way to the addresses, and the field with the node id beside each address.

    ``node_id`` is "" for addresses without one: those of a controller's listeners.
    """

    structs: tuple[str, ...]
    node_id: str


def rewrite_addresses(key: int, response: Any, address_of: Callable[[int], Address | None]) -> None:
    """Replace the host and port of each node in a response.

    ``address_of`` returns the address of a node id on the client's listener, None if it has none.
    """
    for structs, node_id in _places(key):
        if node_id:
            for entry in in_turns(_entries(response, structs)):
                entry.host, entry.port = address_of(getattr(entry, node_id)) or NO_ADDRESS
        else:
            for owner in in_turns(_entries(response, structs[:-1])):
                setattr(owner, structs[-1], [])


def _entries(response: Any, structs: Sequence[str]) -> list[Any]:
    """Return all structs at a path."""
    entries = [response]
    for name in structs:
        entries = [
            inner
            for entry in in_turns(entries)
            for inner in in_turns(values_of(getattr(entry, name)))
        ]
    return entries


@cache
def _places(key: int) -> tuple[_Place, ...]:
    """Return the places of addresses in the answers of a key, as `broker.gate.shown` has them."""
    places = []
    for line in SHOWN[key]:
        for path in line.paths if isinstance(line, Nodes) else ():
            *structs, names = path.split(".")
            *node_id, host = names.removesuffix("|port").split("|")
            if host == "host":
                places.append(_Place(tuple(structs), "".join(node_id)))
    return tuple(places)
