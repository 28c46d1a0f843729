"""Keeps what a migration knows of its source over restarts, as a record in the central store.

The record's name is the id of the cluster. If only other clusters have records, the source is not
the cluster whose ACLs were copied.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from aclbroker.broker.authorizer.source_guard import SourceGuard
from aclbroker.broker.stores import AclStore, Origin
from aclbroker.broker.stores.identity import CLUSTER_ID, SourceIdentity, identity_of_text

KIND: Final = "migration sources"

_NEW: Final = SourceIdentity().text(stops=0, is_stopped=False)


class RememberedSource:
    """Saves the state of a `SourceGuard` for one cluster in a store, and loads it."""

    def __init__(self, store: AclStore, cluster_id: str, guard: SourceGuard) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._guard = guard
        self._written: dict[str, str] = {}
        # The records of clusters that were copied before, if this cluster has none.
        self._others: dict[str, dict[str, Any]] = {}

    async def load(self, copied: Collection[str]) -> None:
        """Load the state of the guard; ``copied`` are the ids of clusters whose ACLs were copied.

        Raises `StoreError`.
        """
        guard = self._guard
        self._written = await self._store.load_records(KIND)
        if (text := self._written.get(self._cluster_id)) is not None:
            values = json.loads(text)
            guard.known = identity_of_text(values)
            guard.stops, guard.is_stopped = values["stops"], values["is_stopped"]
        elif self._cluster_id not in copied:
            ids = sorted({*copied, *self._written})
            self._others = {each: json.loads(self._written.get(each, _NEW)) for each in ids}
            if ids:
                guard.known = SourceIdentity({CLUSTER_ID: " or ".join(ids)})
                guard.stops = sum(each["stops"] for each in self._others.values())

    async def save(self) -> None:
        """Save the state of the guard. Raises `StoreError`."""
        guard = self._guard
        put: dict[str, str] = {}
        for name, values in self._others.items():
            stops = values["stops"] + (not guard.is_stopped)
            put[name] = json.dumps({**values, "stops": stops, "is_stopped": guard.is_stopped})
        if guard.known is not None and not (self._others and guard.is_stopped):
            put[self._cluster_id] = guard.known.text(stops=guard.stops, is_stopped=guard.is_stopped)
        put = {name: text for name, text in put.items() if self._written.get(name) != text}
        if put:
            await self._store.apply_records(KIND, put, (), Origin.now())
            self._written |= put
        if not guard.is_stopped:
            self._others = {}
