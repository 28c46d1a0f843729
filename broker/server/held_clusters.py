"""The further clusters whose ACLs this server holds: what is loaded of each, and who decides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import NamedTuple

from aclbroker.broker.authorizer.opening import Waits
from aclbroker.broker.authorizer.standard import StandardAuthorizer, follower_of
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import Config
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX
from aclbroker.broker.config.model import ClusterSettings
from aclbroker.broker.credentials import Credentials, TokenSettings, load_credentials
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, StoreError, open_store

log = get_logger()


class HeldCluster(NamedTuple):
    """A further cluster: it has an authorizer, a store and users of SCRAM of its own."""

    settings: ClusterSettings
    store: AclStore
    authorizer: StandardAuthorizer
    credentials: Credentials
    catalog: Catalog

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.settings.cluster_id


async def load_clusters(
    config: Config, lines: LimitedLog, running: AsyncExitStack, waits: Waits
) -> tuple[HeldCluster, ...]:
    """Load what is needed of the further clusters; ``running`` closes it again.

    Raises `StoreError` that names the cluster.
    """
    return tuple([await _load(config, each, lines, running, waits) for each in config.clusters])


async def _load(
    config: Config,
    settings: ClusterSettings,
    lines: LimitedLog,
    running: AsyncExitStack,
    waits: Waits,
) -> HeldCluster:
    with _naming(settings.cluster_id):
        store = open_store(settings.store, config.properties, cluster_id=settings.cluster_id)
        authorizer = StandardAuthorizer(store)
        authorizer.lines, authorizer.waits = lines, waits
        authorizer.limit_name = f"{CLUSTER_PREFIX}{settings.cluster_id}.acl.limit"
        authorizer.configure(settings.properties)
        await authorizer.start()
        running.push_async_callback(authorizer.close)
        credentials = await load_store_credentials(config, store, lines, running)
        if follower := follower_of(authorizer, store):
            await credentials.follow(store, follower.listen, follower.has_reached)
        status = await store.status()
    if status.is_new and status.is_durable:
        log.warning(
            "the ACL store is new: it has no ACLs of former times",
            store=status.place,
            cluster_id=settings.cluster_id,
        )
    catalog = Catalog(
        {}, (), config.node_id, auto_creates=config.auto_create_topics_enable, topic_ids=None
    )
    return HeldCluster(settings, store, authorizer, credentials, catalog)


@contextmanager
def _naming(cluster_id: str) -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        # Of the same class: one that is out of reach may be there later.
        raise type(error)(f"{CLUSTER_PREFIX}{cluster_id}.store: {error}") from error


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
