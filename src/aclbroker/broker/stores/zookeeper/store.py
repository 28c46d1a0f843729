"""The store in ZooKeeper, which Kafka's brokers with AclAuthorizer use as well."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Final

from kazoo.exceptions import NodeExistsError

from aclbroker.acl.bindings import AclBinding, ResourcePattern
from aclbroker.broker.stores.identity import SourceIdentity
from aclbroker.broker.stores.store import (
    Origin,
    StoreChange,
    StoreError,
    StoreReset,
    StoreStatus,
    new_cluster_id,
)
from aclbroker.broker.stores.zookeeper import changing, layout
from aclbroker.broker.stores.zookeeper.connection import ask
from aclbroker.broker.stores.zookeeper.mirror import Mirror
from aclbroker.broker.stores.zookeeper.news import Own, Records, State
from aclbroker.broker.stores.zookeeper.settings import ZookeeperSettings
from aclbroker.broker.stores.zookeeper.tree import (
    CLUSTER_ID,
    read_cluster_id,
    read_identity,
    read_nodes,
)

_CLUSTER: Final = "/cluster"


class ZookeeperStore:
    """Keeps ACLs in the nodes of Kafka's AclAuthorizer, and records beside them.

    What is there is in memory, too, from `open` on. Without a connection that is what is loaded,
    and changes raise `StoreUnavailable`.
    """

    is_shared = True

    def __init__(self, settings: ZookeeperSettings, *, makes: bool = True) -> None:
        self._settings = settings
        self._makes = makes
        self._opened: Mirror | None = None
        self._last = 0

    async def open(self) -> None:
        """Connect and read everything, however long ZooKeeper is not there; the log says so.

        Raises `StoreMissing` where there are no nodes of a store, and none are to be made.
        """
        if self._opened is None:
            mirror = Mirror(self._settings, makes=self._makes)
            await mirror.start()
            self._opened, self._last = mirror, 0

    async def status(self) -> StoreStatus:
        """Return the URL, and the number of records."""
        mirror = self._mirror
        count = sum(map(len, mirror.contents.records.values()))
        return StoreStatus(self._settings.url, is_durable=True, is_new=mirror.is_new, records=count)

    async def cluster_id(self) -> str:
        """Return the id of the cluster, which Kafka's brokers take, too; make it if there is none.

        Raises `StoreError`.
        """
        connection = self._mirror.connection
        made = json.dumps({"version": "1", "id": new_cluster_id()}).encode()
        for path, data in ((_CLUSTER, b""), (CLUSTER_ID, made)):
            [node] = await read_nodes(connection, [path])
            if node.version is None:
                whole = connection.path(path)
                try:
                    await connection.one(ask("create", whole, data, acl=connection.acls))
                except NodeExistsError:
                    continue
        found = await read_cluster_id(connection)
        if found is None:
            raise StoreError(f"{connection.path(CLUSTER_ID)} in ZooKeeper was removed just now")
        return found

    async def identity(self) -> SourceIdentity:
        """Return the id of the cluster, when the node of the ACLs was made, and the last zxid."""
        return await read_identity(self._mirror.connection)

    @property
    def silent_s(self) -> float:
        """For how many seconds ZooKeeper has not been there, or could not be read."""
        return 0.0 if self._opened is None else self._opened.silent_s

    def unread(self, position: int) -> int | None:
        """Return None: ZooKeeper does not tell how many changes there are."""
        return None

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all ACLs, one's own changes included, in lists of a few thousand."""
        mirror = self._mirror
        await mirror.reached(self._last)
        for chunk in mirror.contents.chunks():
            yield chunk

    def unreadable(self) -> Collection[ResourcePattern]:
        """Return the patterns whose nodes cannot be read."""
        return self._mirror.contents.unreadable.keys()

    def refusal(self, binding: AclBinding) -> str | None:
        """Tell why an ACL cannot be kept: its name, its operation, or its node cannot be read."""
        reason = layout.refusal(binding)
        hidden = () if self._opened is None else self._opened.contents.unreadable
        if reason is None and binding.pattern in hidden:
            path = layout.node_path(binding.pattern)
            return f"The ACLs of {path} in ZooKeeper cannot be read, so they are not changed."
        return reason

    async def position(self) -> int:
        """Return the zxid of the last change, after asking for those of others."""
        mirror = self._mirror
        await mirror.refresh()
        return max(mirror.position, self._last)

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove ACLs: in one transaction, if 512 KiB are enough for it."""
        mirror = self._mirror

        def made(zxid: int, acls: State) -> None:
            self._last = mirror.made(zxid, Own(origin, acls, {}))

        await changing.change_acls(
            mirror.connection, lambda pattern: mirror.contents.of(pattern), added, removed, made
        )
        return max(self._last, mirror.position)

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return what is changed by anybody; a new session with ZooKeeper is a `StoreReset`."""
        mirror = self._mirror
        return mirror.recent.follow(position, mirror.everything)

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        mirror = self._mirror
        await mirror.reached(self._last)
        return dict(mirror.contents.records.get(kind, {}))

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Put and remove records, in one transaction if 512 KiB are enough for it.

        A call that changes nothing returns once all changes of other brokers are in memory.
        """
        mirror = self._mirror
        last = self._last

        def made(zxid: int, records: Records) -> None:
            self._last = mirror.made(zxid, Own(origin, {}, records))

        await changing.change_records(mirror.connection, kind, put, removed, made)
        if last == self._last:
            await changing.check_writable(mirror.connection)
            await mirror.refresh()
        return max(self._last, mirror.position)

    async def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Put those records that are not there; return the values of all.

        A node is made by one alone, however many try.
        """
        mirror = self._mirror

        def made(zxid: int, records: Records) -> None:
            self._last = mirror.made(zxid, Own(origin, {}, records))

        return await changing.claim_records(mirror.connection, kind, values, made)

    async def close(self) -> None:
        """End the session with ZooKeeper."""
        mirror, self._opened = self._opened, None
        if mirror is not None:
            await mirror.close()

    @property
    def _mirror(self) -> Mirror:
        if self._opened is None:
            raise StoreError(f"the ACL store {self._settings.url} is not open")
        return self._opened
