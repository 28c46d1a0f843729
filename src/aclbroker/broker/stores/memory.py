"""The store that keeps ACLs in memory only: for tests, and for brokers without a disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.recent_changes import RecentChanges, records_changed
from aclbroker.broker.stores.store import (
    Origin,
    StoreChange,
    StoreReset,
    StoreStatus,
    new_cluster_id,
)


class MemoryStore:
    """Keeps bindings and records as long as the object lives, also over `close` and `open`.

    Several authorizers of a process may share one that ``is_shared``, as the brokers of a cluster
    would. It is open until all have closed it.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        self._bindings: dict[AclBinding, None] = {}
        self._records: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._cluster_id = new_cluster_id()
        self._recent = RecentChanges()
        self._users = 0

    async def open(self) -> None:
        """Count who uses it: there is nothing else to open."""
        if not self._users:
            self._recent.restart(self._recent.position)
        self._users += 1

    async def status(self) -> StoreStatus:
        """Return that it is in memory, and new, because nothing is kept over a restart."""
        records = sum(map(len, self._records.values()))
        return StoreStatus("memory", is_durable=False, is_new=True, records=records)

    async def cluster_id(self) -> str:
        """Return the id of this object."""
        return self._cluster_id

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings in one list."""
        yield list(self._bindings)

    async def position(self) -> int:
        """Return how many changes were made."""
        return self._recent.position

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings."""
        self._bindings.update(dict.fromkeys(added))
        for binding in removed:
            self._bindings.pop(binding, None)
        if added or removed:
            self._recent.add(self._recent.position + 1, added, removed, {}, origin)
        return self._recent.position

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return the changes that were made through this object."""
        return self._recent.follow(position, self._everything)

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the records of a kind."""
        return dict(self._records[kind])

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Put and remove records."""
        records = self._records[kind]
        gone = [name for name in removed if records.pop(name, None) is not None]
        records.update(put)
        if put or gone:
            changed = records_changed(kind, put, gone)
            self._recent.add(self._recent.position + 1, (), (), changed, origin)
        return self._recent.position

    async def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Put those records that are not there; return the values of all."""
        there = self._records[kind]
        missing = {name: value for name, value in values.items() if name not in there}
        await self.apply_records(kind, missing, (), origin)
        return {name: there[name] for name in values}

    async def close(self) -> None:
        """End what is followed, when it is used by nobody else."""
        self._users = max(0, self._users - 1)
        if not self._users:
            self._recent.end()

    async def _everything(self) -> StoreReset:
        records = {
            (kind, name): value
            for kind, values in self._records.items()
            for name, value in values.items()
        }
        return StoreReset(self._recent.position, list(self._bindings), records)
