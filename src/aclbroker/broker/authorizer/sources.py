"""The sources of ACLs that decide together: one in most brokers, several with providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

from aclbroker.acl.authorizer import Position
from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.index import AclIndex
from aclbroker.acl.joint import parts_of
from aclbroker.acl.settings import StaleSettings
from aclbroker.broker.authorizer.index_changes import IndexChanges
from aclbroker.broker.authorizer.migration import AclMigration
from aclbroker.broker.authorizer.opening import Waits, nobody, opened
from aclbroker.broker.authorizer.source import AclSource
from aclbroker.broker.authorizer.source_guard import SourceGuard
from aclbroker.broker.authorizer.staleness import Staleness
from aclbroker.broker.config.access_rules import CONFLUENT, access_rules
from aclbroker.broker.config.store_url import store_url
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreUnavailable, open_store
from aclbroker.turns import in_turns

log = get_logger()


class Sources:
    """The stores that decide together, by the names of their providers.

    Requests list and change the ACLs of the one that is ``managed``. ``records`` is which one has
    those, too. If it ``migrates``, the managed ACLs are copied to those of CONFLUENT, unless the
    ``guard`` refuses. `load` opens the stores and `close` closes them.
    """

    def __init__(
        self,
        stores: Mapping[str, AclStore],
        managed: str = "",
        records: str | None = "",
        *,
        migrates: bool = False,
        guard: SourceGuard | None = None,
    ) -> None:
        self.stores = stores
        self.for_records = None if records is None else stores[records]
        """The one that keeps records besides ACLs, None if none of them does."""

        self._name = managed
        self._migrates = migrates
        self._guard = guard
        self._all: list[AclSource] = []
        self._running = AsyncExitStack()
        self.waits: Waits = nobody
        """Is told while a store that others share is not within reach."""

        self.migration: AclMigration | None = None
        """What copies, once it is loaded; it is still to be started."""

    @classmethod
    def named_by(cls, properties: Mapping[str, str]) -> Sources:
        """Return those that a broker's properties name.

        Raises `AccessRuleError` for bad settings of providers, `StoreError` for a bad URL.
        """
        rules = access_rules(properties)
        if rules is None:
            return cls({"": open_store(store_url(properties), properties)})
        stores = {
            each.name: open_store(each.store, each.properties, role=f"{each.name}-")
            for each in rules.providers
        }
        url = store_url(properties)
        records = next((each.name for each in rules.providers if each.store == url), None)
        guard = SourceGuard(rules.max_loss_percent, rules.accepted_loss)
        return cls(stores, rules.managed.name, records, migrates=rules.migrates, guard=guard)

    @property
    def store(self) -> AclStore:
        """The one whose ACLs requests list and change."""
        return self.stores[self._name]

    @property
    def managed(self) -> AclSource:
        """The source of `store`, once it is loaded."""
        return next(each for each in self._all if each.name == self._name)

    def source_of(self, store: AclStore) -> AclSource | None:
        """Return the source of a store, None if it has none, or is not loaded."""
        return next((each for each in self._all if each.store is store), None)

    async def load(
        self, index: AclIndex, cidr: bool, stale: StaleSettings, acls_file: str, limit: int | None
    ) -> Sequence[AclBinding]:
        """Open the stores and fill an empty index with what all of them have together.

        Return the ACLs that a new store got from the file of first ACLs. Raises `StoreError`.
        """
        joint = len(self.stores) > 1
        parts = parts_of(index, len(self.stores), cidr=cidr) if joint else []
        indexes: Sequence[AclIndex] = parts or [index]
        first: Sequence[AclBinding] = ()
        try:
            for (name, store), own in zip(self.stores.items(), indexes, strict=True):
                source = AclSource(name, store, own, follows=joint)
                await opened(store, self.waits)
                self._running.push_async_callback(source.close)
                is_managed = name == self._name
                first = await source.load(stale, acls_file * is_managed, limit) or first
                self._all.append(source)
        except BaseException:
            await self._running.aclose()
            raise
        if self._migrates:
            by_name = {each.name: each for each in self._all}
            watched = parts[[*by_name].index(self._name)]
            source, target = by_name[self._name], by_name[CONFLUENT]
            self.migration = AclMigration(source, target, watched, self._guard)
        return first

    async def close(self) -> None:
        """Copy what is not copied yet, stop following, and close the stores."""
        if self.migration is not None:
            await self.migration.close()
        await self._running.aclose()
        for store in self.stores.values():
            await store.close()

    def looked_after(self) -> list[tuple[AclStore, Staleness]]:
        """Return the stores that are elsewhere, with what looks after each."""
        return [(each.store, each.staleness) for each in self._all if each.staleness is not None]

    def position(self, writer: object) -> Callable[[], Position]:
        """Return what tells the position of the ACLs that decide: of each provider, if several.

        ``writer`` has it in ``position`` where no store is followed.
        """
        if len(self._all) > 1:
            return self._positions
        return partial(getattr, self._all[0].follower or writer, "position")

    def _positions(self) -> Position:
        return tuple(
            (each.name, each.follower.position) for each in self._all if each.follower is not None
        )

    async def remove_copies(self, removed: Collection[AclBinding], origin: Origin) -> None:
        """Remove ACLs where other sources have them, too, so that removing them has an effect.

        Raises `StoreError`.
        """
        if not removed:
            return
        for source in self._all:
            if source.name == self._name or source.follower is None:
                continue
            copies = await IndexChanges(source.index).run(_those_in, source.index, removed)
            if not copies:
                continue
            position = await source.store.apply((), copies, origin)
            if not await source.follower.has_reached(position):
                raise StoreUnavailable(f"{source.name}: a change has not come back in time")


def _those_in(index: AclIndex, acls: Collection[AclBinding]) -> list[AclBinding]:
    return [acl for acl in in_turns(acls) if acl in index]
