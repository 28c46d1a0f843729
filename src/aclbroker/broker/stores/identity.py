"""The identity of a source of ACLs, which reveals another source, or an older state of the same.

A store that lost its data answers like any other. Its cluster id, or a number that never decreases,
shows the loss.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from aclbroker.broker.stores.store import AclStore

CLUSTER_ID: Final = "cluster id"
"""The name of the id of the cluster whose ACLs a source has."""

NONE: Final = "none"
"""The value of a name that a source no longer has."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class SourceIdentity(NamedTuple):
    """The names of a source, which stay the same, and its marks, which never go back.

    A name or a mark that only one of two identities has is not compared.
    """

    names: Mapping[str, str] = _NOTHING
    marks: Mapping[str, tuple[int, ...]] = _NOTHING

    def is_other_cluster(self, now: SourceIdentity) -> bool:
        """Return whether a later identity is that of another cluster."""
        return CLUSTER_ID in self.names and now.names.get(CLUSTER_ID, self.cluster_id) != (
            self.cluster_id
        )

    def difference(self, now: SourceIdentity) -> str:
        """Return why a later identity is not that of the same source; "" if it is."""
        for name, before in self.names.items():
            if (value := now.names.get(name, before)) != before:
                return f"its {name} was {before} and is {value} now"
        for name, last in self.marks.items():
            if (mark := now.marks.get(name, last)) < last:
                return f"its {name} went back from {_shown(last)} to {_shown(mark)}"
        return ""

    def updated(self, now: SourceIdentity) -> SourceIdentity:
        """Return a later identity, completed by the names and marks that it lacks."""
        return SourceIdentity({**self.names, **now.names}, {**self.marks, **now.marks})

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, or "none"."""
        return self.names.get(CLUSTER_ID, NONE)

    def text(self, **more: Any) -> str:
        """Return the identity as a text for a record, with ``more`` values beside it."""
        return json.dumps({"names": dict(self.names), "marks": dict(self.marks), **more})


def identity_of_text(values: Mapping[str, Any]) -> SourceIdentity:
    """Return the identity from the parsed values of `SourceIdentity.text`."""
    marks = {name: tuple(mark) for name, mark in values["marks"].items()}
    return SourceIdentity(values["names"], marks)


@runtime_checkable
class IdentifiedStore(Protocol):
    """A store whose identity is more than its cluster id and its position."""

    async def identity(self) -> SourceIdentity:
        """Return the current identity; never makes a missing cluster id. Raises `StoreError`."""


async def identity_of(store: AclStore) -> SourceIdentity:
    """Return the identity of an open store. Raises `StoreError`."""
    if isinstance(store, IdentifiedStore):
        return await store.identity()
    position = await store.position()
    return SourceIdentity({CLUSTER_ID: await store.cluster_id()}, {"position": (position,)})


def _shown(mark: tuple[int, ...]) -> str:
    return ", ".join(map(str, mark))
