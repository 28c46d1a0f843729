"""What a broker loads before clients are let in: its store, ACLs, users, topics and clusters."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from aclbroker.acl.authorizer import Authorizer
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.opening import Waits, nobody, opened
from aclbroker.broker.authorizer.standard import StandardAuthorizer, follower_of
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import BUILT_IN_AUTHORIZER, NO_AUTHORIZER, Config
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX
from aclbroker.broker.config.store_url import store_url
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.plugins import make_plugin
from aclbroker.broker.server.held_clusters import HeldClusters, load_store_credentials
from aclbroker.broker.server.membership import Membership
from aclbroker.broker.server.start_error import StartError
from aclbroker.broker.server.topic_ids import follow_topic_ids, load_topic_ids
from aclbroker.broker.stores import AclStore, StoreError, open_store
from aclbroker.broker.stores.store import new_cluster_id

if TYPE_CHECKING:
    from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
    from aclbroker.broker.http_api.registry import ClusterRegistry
    from aclbroker.broker.memory import MemoryCluster

log = get_logger()


class Loaded(NamedTuple):
    """What is loaded before clients are let in."""

    authorizer: Authorizer | None
    store: AclStore | None
    credentials: Credentials | None
    cluster_id: str
    catalog: Catalog
    cluster: MemoryCluster | None
    kept: dict[str, str | int]
    membership: Membership
    clusters: HeldClusters
    cluster_registry: ClusterRegistry | None = None
    upstream: UpstreamCluster | None = None


async def load_parts(
    config: Config,
    lines: LimitedLog,
    running: AsyncExitStack,
    waits: Waits = nobody,
    *,
    bears_failures: bool = False,
) -> Loaded:
    """Load what is needed before clients are let in; ``running`` closes it again.

    ``waits`` is called with the reason while a shared store or the cluster upstream is out of
    reach. Further clusters whose stores are out of reach are left for later, and with
    ``bears_failures`` those whose stores fail.
    Raises StartError, and StoreError if the store fails.
    """
    try:
        membership = Membership(config.groups_file)
    except ValueError as error:
        raise StartError(str(error)) from error
    authorizer = _authorizer(config, lines, waits)
    if authorizer is not None:
        await authorizer.start()
        running.push_async_callback(authorizer.close)
    store = await _store(config, authorizer, running, waits)
    credentials = registry = follower = None
    if store is not None:
        credentials = await load_store_credentials(config, store, lines, running)
        registry = await _cluster_registry(config, store, lines)
        if store.is_shared:
            follower = await _follower(authorizer, store, running)
            await credentials.follow(store, follower.listen, follower.has_reached)
            if registry is not None:
                await registry.follow(follower.listen, follower.has_reached)
    cluster_id = new_cluster_id() if store is None else await store.cluster_id()
    clusters = HeldClusters(config, lines, waits)
    if cluster_id in clusters.by_id:
        raise StartError(
            f"{CLUSTER_PREFIX}{cluster_id}.store: that is the id of the server's own cluster, "
            "whose store is aclbroker.store"
        )
    upstream = await _upstream(config, running, waits)
    cluster = _cluster(config)
    catalog = cluster.topics if cluster is not None else await _catalog(config, store)
    if isinstance(catalog, Catalog) and store is not None and follower is not None:
        await follow_topic_ids(store, catalog, follower.listen)
    kept = await _kept(authorizer, store)
    if config.groups_file is not None:
        kept["groups"] = membership.groups().names
    # They come last, so that they are not loaded anew where something else is lost.
    running.push_async_callback(clusters.close)
    await clusters.load(bears_failures=bears_failures)
    return Loaded(
        *(authorizer, store, credentials, cluster_id, catalog, cluster),
        *(kept | clusters.counts(), membership, clusters),
        cluster_registry=registry,
        upstream=upstream,
    )


async def _upstream(
    config: Config, running: AsyncExitStack, waits: Waits
) -> UpstreamCluster | None:
    """Return the cluster upstream, if there is to be one; wait until it is within reach."""
    if not config.upstream:
        return None
    # Imported where it is needed: other brokers start sooner.
    from aclbroker.broker.backends.upstream.access import UpstreamSettingsError, upstream_access
    from aclbroker.broker.backends.upstream.cluster import UpstreamCluster

    try:
        cluster = UpstreamCluster(upstream_access(config))
    except UpstreamSettingsError as error:
        raise StartError(str(error)) from error
    running.push_async_callback(cluster.close)
    await cluster.begin(waits)
    return cluster


async def _store(
    config: Config, authorizer: Authorizer | None, running: AsyncExitStack, waits: Waits
) -> AclStore | None:
    """Return the open store: the authorizer's, else one for credentials if they are needed.

    With several stores of ACLs it is the one that would be alone without `access_rules`.
    """
    if isinstance(authorizer, StandardAuthorizer):
        if (found := authorizer.store_for_records) is not None:
            return found
        return await _opened(config, running, waits)
    scram = any(name.startswith("SCRAM-") for each in config.listeners for name in each.mechanisms)
    if not scram and config.delegation_token_secret_key is None:
        return None
    return await _opened(config, running, waits)


async def _opened(config: Config, running: AsyncExitStack, waits: Waits) -> AclStore:
    store = open_store(store_url(config.properties), config.properties)
    await opened(store, waits)
    running.push_async_callback(store.close)
    return store


async def _cluster_registry(
    config: Config, store: AclStore, lines: LimitedLog
) -> ClusterRegistry | None:
    """Return the names of clusters that a store has, if the HTTP API is served."""
    if not config.metadata_listeners:
        return None
    # Imported where it is asked for: other brokers start sooner.
    from aclbroker.broker.http_api.registry import ClusterRegistry

    registry = ClusterRegistry(store, lines)
    await registry.load()
    return registry


async def _follower(
    authorizer: Authorizer | None, store: AclStore, running: AsyncExitStack
) -> Follower:
    """Return what follows a shared store: the authorizer's, else one for credentials alone."""
    if isinstance(authorizer, StandardAuthorizer) and (found := follower_of(authorizer, store)):
        return found
    follower = Follower(store, AclIndex())
    await follower.start(await store.position())
    running.push_async_callback(follower.close)
    return follower


async def _kept(authorizer: Authorizer | None, store: AclStore | None) -> dict[str, str | int]:
    """Return what the log tells of the store; warn if a store on disk was made just now."""
    if store is None:
        return {"store": "none"}
    status = await store.status()
    if status.is_new and status.is_durable:
        log.warning("the ACL store is new: it has no ACLs of former times", store=status.place)
    kept: dict[str, str | int] = {"store": status.place, "records": status.records}
    if isinstance(authorizer, StandardAuthorizer):
        kept["acls"] = authorizer.acl_count
    return kept


async def _catalog(config: Config, store: AclStore | None) -> Catalog:
    """Return what the broker is told it has; without a store topics get new ids at each start."""
    topics = config.catalog_topics
    return Catalog(
        topics,
        config.catalog_groups,
        config.node_id,
        auto_creates=config.auto_create_topics_enable,
        topic_ids=None if store is None else await load_topic_ids(store, topics),
    )


def _cluster(config: Config) -> MemoryCluster | None:
    """Return the cluster in memory, if there is to be one, with the topics of the configuration."""
    if config.cluster != "memory":
        return None
    # Who has no data need not wait for these imports, which bring aiokafka's client along.
    from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
    from aclbroker.broker.server.group_settings import group_settings

    nodes = range(config.node_id, config.node_id + config.nodes)
    settings = MemorySettings(
        auto_create_topics=config.auto_create_topics_enable,
        partitions=config.num_partitions,
        replicas=config.default_replication_factor,
        topic_defaults=config.topic_defaults,
        max_bytes=config.memory_max_bytes,
        full=config.memory_full,
        groups=group_settings(config),
    )
    cluster = MemoryCluster(Clock(asyncio.get_running_loop().call_later), nodes, settings)
    for name, partitions in config.catalog_topics.items():
        cluster.topics.create(name, partitions)
    return cluster


def _authorizer(config: Config, lines: LimitedLog, waits: Waits) -> Authorizer | None:
    """Make the authorizer that the configuration names, configured and not yet started."""
    name = config.authorizer_class_name
    if name == NO_AUTHORIZER:
        return None
    try:
        made: Authorizer
        if name == BUILT_IN_AUTHORIZER:
            made = StandardAuthorizer()
            made.lines, made.waits = lines, waits
        else:
            made = make_plugin("authorizer.class.name", name, "aclbroker.Authorizer")
        made.configure(config.properties)
    except (StoreError, ValueError) as error:
        raise StartError(str(error)) from error
    return made
