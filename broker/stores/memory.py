"""The store that keeps ACLs in memory only: for tests, and for brokers without a disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores.store import StoreStatus, new_cluster_id


class MemoryStore:
    """Keeps bindings and records as long as the object lives, also over `close` and `open`."""

    def __init__(self) -> None:
        self._bindings: dict[AclBinding, None] = {}
        self._records: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._cluster_id = new_cluster_id()

    async def open(self) -> None:
        """Do nothing: there is nothing to open."""

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

    async def apply(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        """Add and remove bindings."""
        self._bindings.update(dict.fromkeys(added))
        for binding in removed:
            self._bindings.pop(binding, None)

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the records of a kind."""
        return dict(self._records[kind])

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str]
    ) -> None:
        """Put and remove records."""
        self._records[kind].update(put)
        for name in removed:
            self._records[kind].pop(name, None)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
