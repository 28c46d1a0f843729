"""The further clusters whose ACLs this server holds: each is loaded on its own.

A store of this machine is read before clients are let in. One that is elsewhere may be out of
reach: then the start goes on without that cluster, which is served when its store is there.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from aclbroker.broker.authorizer.opening import NOT_READ, Waits, nobody
from aclbroker.broker.authorizer.standard import StandardAuthorizer, follower_of
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import Config
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX
from aclbroker.broker.config.model import ClusterSettings
from aclbroker.broker.credentials import Credentials, TokenSettings, load_credentials
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger, say_in_context
from aclbroker.broker.stores import AclStore, StoreError, StoreUnavailable, open_store
from aclbroker.broker.stores.store import SerialStore

log = get_logger()

_RETRY_S: Final = 2.0

_PATIENCE_S: Final = 10.0
"""How long a start waits for a store elsewhere that neither answers nor refuses: reading much takes
its time, and who is there soon need not be refused first."""


_WHY: Final = "their store is out of reach, or still being read."


class LoadedCluster(NamedTuple):
    """What is loaded of a cluster: an authorizer, a store and users of SCRAM of its own."""

    settings: ClusterSettings
    store: AclStore
    authorizer: StandardAuthorizer
    credentials: Credentials
    catalog: Catalog

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.settings.cluster_id


class HeldCluster:
    """A further cluster, which is loaded, waited for, or cannot be loaded."""

    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.loaded: LoadedCluster | None = None
        self.failure: Exception | None = None
        """Why it cannot be loaded."""

        self.waits_for = NOT_READ
        """Why it is waited for; "" once it is served."""

        self.running = AsyncExitStack()
        self.settled = asyncio.Event()
        """Set when a start need not wait for it: it is loaded, out of reach, or has failed."""

        self._is_elsewhere = False
        self._properties: Mapping[str, str] | None = None

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.settings.cluster_id

    @property
    def problem(self) -> str:
        """Why it is not served; "" if it is."""
        of, reason = f"cluster {self.cluster_id}: its ACLs", self.waits_for
        if self.failure is not None:
            return " ".join(f"{of} cannot be read: {self.failure}".split())
        return " ".join(f"{of} are not loaded yet: {reason}".split()) if reason else ""

    @property
    def refusal(self) -> str:
        """What clients are told while it is not served: nothing of where its store is."""
        of = f"The ACLs of the cluster {self.cluster_id}"
        if self.failure is not None:
            return f"{of} cannot be read; the server's log says why."
        return f"{of} have not been read yet: {_WHY} Try again."

    def begins(self, store: AclStore) -> None:
        """Note that a store is about to be opened."""
        self._is_elsewhere = store.is_shared and not isinstance(store, SerialStore)
        if self._is_elsewhere and not self.settled.is_set():
            asyncio.get_running_loop().call_later(_PATIENCE_S, self.settled.set)

    def waits(self, reason: str) -> None:
        """Note why it is not loaded yet."""
        self.waits_for = reason
        if self._is_elsewhere and reason != NOT_READ:
            self.settled.set()

    def has(self, loaded: LoadedCluster) -> None:
        """Note that it is loaded."""
        if self._properties is not None:
            loaded.authorizer.reconfigure(self._properties)
        self.loaded = loaded

    def is_served(self) -> None:
        """Note that it is served from now on."""
        self.waits_for = ""
        self.settled.set()

    def fails(self, error: Exception) -> None:
        """Note that it cannot be loaded."""
        self.failure = error
        self.settled.set()

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Take what its authorizer can take anew, now or when it is loaded."""
        self._properties = properties
        if self.loaded is not None:
            self.loaded.authorizer.reconfigure(properties)


Arrived = Callable[[LoadedCluster], Awaitable[None]]


class HeldClusters:
    """All further clusters, from `load` to `close`.

    ``waits`` is told for what the start waits long. What clients cause in the log goes through
    ``lines``.
    """

    def __init__(self, config: Config, lines: LimitedLog, waits: Waits = nobody) -> None:
        self.by_id = {each.cluster_id: HeldCluster(each) for each in config.clusters}
        self._config = config
        self._lines = lines
        self._waits = waits
        self._tasks: list[asyncio.Task[None]] = []
        self._is_started = False
        self._arrived: Arrived | None = None
        self._failed: Callable[[HeldCluster], None] | None = None
        self._serves = asyncio.Event()

    @property
    def loaded(self) -> Sequence[LoadedCluster]:
        """What is loaded of those that are served, or about to be."""
        return [each.loaded for each in self.by_id.values() if each.loaded is not None]

    @property
    def missing(self) -> Sequence[HeldCluster]:
        """Those that are waited for, or cannot be loaded."""
        return [each for each in self.by_id.values() if each.loaded is None]

    def stores(self) -> Sequence[AclStore]:
        """Return the stores of those that are loaded."""
        return [each.store for each in self.loaded]

    def counts(self) -> dict[str, str | int]:
        """Return what the log tells of them."""
        if not self.by_id:
            return {}
        missing = ",".join(each.cluster_id for each in self.missing)
        told: dict[str, str | int] = {"clusters": len(self.by_id)}
        return told | ({"missing_clusters": missing} if missing else {})

    def problems(self) -> Mapping[str, str]:
        """Return why each that is not served is not, by its id."""
        return {name: each.problem for name, each in self.by_id.items() if each.problem}

    async def load(self, *, bears_failures: bool = False) -> None:
        """Return when each is loaded, or known to be waited for.

        Raises what one of them has failed with, a `StoreError` that names it, unless the server
        ``bears_failures``: then it is refused alone.
        """
        clusters = self.by_id.values()
        self._tasks = [asyncio.create_task(self._hold(each)) for each in clusters]
        waiting = [asyncio.create_task(each.settled.wait()) for each in clusters]
        try:
            while waiting and not (self._failure() and not bears_failures):
                _, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                waiting = list(rest)
        finally:
            for each in waiting:
                each.cancel()
        if (failure := self._failure()) is not None and not bears_failures:
            raise failure
        self._is_started = True
        for cluster in self.missing:
            log.warning(
                "the ACLs of a cluster are not there yet: what needs them is refused",
                cluster_id=cluster.cluster_id,
                listeners=list(cluster.settings.listeners),
                reason=str(cluster.failure or cluster.waits_for),
            )

    def serve_late(self, arrived: Arrived, failed: Callable[[HeldCluster], None]) -> None:
        """From now on have those served that were waited for, as they come.

        ``failed`` is told of each that cannot be loaded.
        """
        self._arrived, self._failed = arrived, failed
        for each in self.missing:
            if each.failure is not None:
                failed(each)
        self._serves.set()

    async def end_waiting(self) -> None:
        """Let none come any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Close all stores, and what works with them."""
        await self.end_waiting()
        async with AsyncExitStack() as closing:
            for each in self.by_id.values():
                closing.push_async_callback(each.running.aclose)

    def _failure(self) -> Exception | None:
        return next((each.failure for each in self.by_id.values() if each.failure), None)

    async def _hold(self, cluster: HeldCluster) -> None:
        """Load a cluster, and have it served if the start has gone on without it."""
        say_in_context(cluster_id=cluster.cluster_id)
        try:
            loaded = await self._loaded(cluster)
            if not self._is_started:
                cluster.has(loaded)
            else:
                await self._come_late(cluster, loaded)
            cluster.is_served()
        except Exception as error:  # noqa: BLE001 # the others are served all the same
            self._fail(cluster, error)

    async def _come_late(self, cluster: HeldCluster, loaded: LoadedCluster) -> None:
        await self._serves.wait()
        if self._arrived is None:
            raise RuntimeError("nobody serves those that come late")
        # What is loaded stays: the garbage collector need not look through it.
        gc.freeze()
        cluster.has(loaded)
        await self._arrived(loaded)
        log.warning(
            "the ACLs of a cluster are there: it is served from now on",
            acls=loaded.authorizer.acl_count,
        )

    def _fail(self, cluster: HeldCluster, error: Exception) -> None:
        cluster.loaded = None
        cluster.fails(error)
        if not self._is_started:
            return
        is_foreseen = isinstance(error, StoreError)
        log.error(
            "the ACLs of a cluster cannot be read: it is refused until the server is started anew",
            reason=str(error) or type(error).__name__,
            exc_info=None if is_foreseen else error,
        )
        if self._failed is not None:
            self._failed(cluster)

    async def _loaded(self, cluster: HeldCluster) -> LoadedCluster:
        """Return what is loaded of a cluster; begin anew where its store is lost meanwhile."""
        while True:
            async with AsyncExitStack() as running:
                try:
                    loaded = await self._load(cluster, running)
                except StoreUnavailable as error:
                    log.error(
                        "ACL store was lost while it was read; trying again", reason=str(error)
                    )
                    cluster.waits(str(error))
                except StoreError as error:
                    name = f"{CLUSTER_PREFIX}{cluster.cluster_id}.store"
                    raise StoreError(f"{name}: {error}") from error
                else:
                    cluster.running.push_async_exit(running.pop_all())
                    return loaded
            await asyncio.sleep(_RETRY_S)

    async def _load(self, cluster: HeldCluster, running: AsyncExitStack) -> LoadedCluster:
        """Load a cluster once; ``running`` closes it again. Raises `StoreError`."""
        config, settings = self._config, cluster.settings

        def waits(reason: str) -> None:
            cluster.waits(reason)
            # For one that is out of reach the start does not wait.
            if reason == NOT_READ and not self._is_started:
                self._waits(f"cluster {cluster.cluster_id}: {reason}")

        store = open_store(settings.store, config.properties, cluster_id=settings.cluster_id)
        cluster.begins(store)
        authorizer = StandardAuthorizer(store)
        authorizer.lines, authorizer.waits = self._lines, waits
        authorizer.limit_name = f"{CLUSTER_PREFIX}{settings.cluster_id}.acl.limit"
        authorizer.configure(settings.properties)
        await authorizer.start()
        running.push_async_callback(authorizer.close)
        credentials = await load_store_credentials(config, store, self._lines, running)
        if follower := follower_of(authorizer, store):
            await credentials.follow(store, follower.listen, follower.has_reached)
        status = await store.status()
        if status.is_new and status.is_durable:
            log.warning("the ACL store is new: it has no ACLs of former times", store=status.place)
        return LoadedCluster(settings, store, authorizer, credentials, _catalog(config))


def _catalog(config: Config) -> Catalog:
    return Catalog(
        {}, (), config.node_id, auto_creates=config.auto_create_topics_enable, topic_ids=None
    )


async def load_store_credentials(
    config: Config, store: AclStore, lines: LimitedLog, running: AsyncExitStack
) -> Credentials:
    """Return the credentials that an open store has; ``running`` closes them.

    Raises `StoreError`.
    """
    tokens = None
    if config.delegation_token_secret_key is not None:
        tokens = TokenSettings(
            config.delegation_token_secret_key,
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
            config.delegation_tokens_per_requester,
        )
    interval_ms = config.delegation_token_expiry_check_interval_ms
    credentials = await load_credentials(store, tokens, interval_ms, lines)
    running.push_async_callback(credentials.close)
    return credentials
