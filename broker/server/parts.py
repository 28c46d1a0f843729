"""The parts of a broker, made from its configuration: what is loaded, and what serves clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from aclbroker.broker.acl.authorizer import Authorizer
from aclbroker.broker.authorizer.standard import StandardAuthorizer, explained
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import BUILT_IN_AUTHORIZER, NO_AUTHORIZER, Config
from aclbroker.broker.credentials import Credentials, TokenSettings, load_credentials
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.changes import expired_tokens, first_acls
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.logins.jwks_source import JwksUnavailable
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import LogOutput, get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.plugins import make_plugin
from aclbroker.broker.server.membership import Membership
from aclbroker.broker.server.server import Server
from aclbroker.broker.server.topic_ids import load_topic_ids
from aclbroker.broker.stores import AclStore, StoreError, open_store
from aclbroker.broker.stores.store import new_cluster_id

if TYPE_CHECKING:
    from aclbroker.broker.memory import MemoryCluster

log = get_logger()


class StartError(Exception):
    """The broker cannot start; the text says why and what to do."""


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


async def load_parts(config: Config, lines: LimitedLog, running: AsyncExitStack) -> Loaded:
    """Load what is needed before clients are let in; ``running`` closes it again.

    Raises StartError, and StoreError if the store fails.
    """
    try:
        membership = Membership(config.groups_file)
    except ValueError as error:
        raise StartError(str(error)) from error
    authorizer = _authorizer(config, lines)
    if authorizer is not None:
        await authorizer.start()
        running.push_async_callback(authorizer.close)
    store = await _store(config, authorizer, running)
    credentials = await _credentials(config, store, lines, running)
    cluster_id = new_cluster_id() if store is None else await store.cluster_id()
    cluster = _cluster(config)
    catalog = await _catalog(config, store) if cluster is None else cluster.topics
    kept = await _kept(authorizer, store)
    if config.groups_file is not None:
        kept["groups"] = membership.groups().names
    return Loaded(authorizer, store, credentials, cluster_id, catalog, cluster, kept, membership)


async def _store(
    config: Config, authorizer: Authorizer | None, running: AsyncExitStack
) -> AclStore | None:
    """Return the open store: the authorizer's, else one for credentials if they are needed."""
    if isinstance(authorizer, StandardAuthorizer):
        return authorizer.store
    scram = any(name.startswith("SCRAM-") for each in config.listeners for name in each.mechanisms)
    if not scram and config.delegation_token_secret_key is None:
        return None
    store = open_store(config.store)
    await store.open()
    running.push_async_callback(store.close)
    return store


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
        max_bytes=config.memory_max_bytes,
        full=config.memory_full,
        groups=group_settings(config),
    )
    cluster = MemoryCluster(Clock(asyncio.get_running_loop().call_later), nodes, settings)
    for name, partitions in config.catalog_topics.items():
        cluster.topics.create(name, partitions)
    return cluster


async def _credentials(
    config: Config, store: AclStore | None, lines: LimitedLog, running: AsyncExitStack
) -> Credentials | None:
    if store is None:
        return None
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


async def start_parts(
    config: Config,
    output: LogOutput,
    loaded: Loaded,
    metrics: Metrics,
    lines: LimitedLog,
    *,
    audit_class: type[Audit] = Audit,
    rights_class: type[RequestRights] = RequestRights,
    faults: Faults | None = None,
) -> tuple[Audit, Server, dict[str, str]]:
    """Let clients in; return what serves them, and the address of each listener by its name.

    ``audit_class`` is told of each decision, ``rights_class`` asks for them, and ``faults`` come
    before all else. Raises StartError.
    """
    authorizer = loaded.authorizer
    explain = partial(explained, authorizer) if isinstance(authorizer, StandardAuthorizer) else None
    try:
        with naming("aclbroker.audit.file", config.audit_file, "cannot be opened"):
            audit = audit_class(config, loaded.cluster_id, output, explain)
        _count_missing_records(metrics, audit)
        # A person at a console needs their number, which the log tells, and not a line for each.
        tells_each = config.audit_file is not None or output.is_json
        _record_changes_without_request(audit, loaded, tells_first_acls=tells_each)
        server = Server(
            config,
            loaded.cluster_id,
            loaded.catalog,
            authorizer,
            audit,
            metrics,
            loaded.credentials,
            lines,
            loaded.membership,
            loaded.cluster,
            rights_class,
            faults,
        )
        return audit, server, await server.start()
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
    except (ValueError, JwksUnavailable) as error:
        raise StartError(str(error)) from error


def _record_changes_without_request(
    audit: Audit, loaded: Loaded, *, tells_first_acls: bool
) -> None:
    """Have the audit log tell of the ACLs of a new store, and of tokens that are swept."""
    authorizer = loaded.authorizer
    if isinstance(authorizer, StandardAuthorizer):
        if tells_first_acls:
            audit.changed_by("aclbroker.acls.file", first_acls(authorizer.first_acls))
        authorizer.first_acls = ()
    if loaded.credentials is not None:
        loaded.credentials.start(lambda tokens: audit.changed_by("broker", expired_tokens(tokens)))


def _count_missing_records(metrics: Metrics, audit: Audit) -> None:
    for kind in audit.left_out():
        source = partial(_left_out, audit, kind)
        metrics.read("aclbroker_left_out_audit_records", source, kind)
    metrics.read("aclbroker_lost_audit_records", lambda: audit.lost)


def _left_out(audit: Audit, kind: str) -> int:
    return audit.left_out()[kind]


@contextmanager
def naming(setting: str, value: str | None, failure: str) -> Iterator[None]:
    """Make of an `OSError` a `StartError` that names the setting behind it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(f"{setting}={value}: {failure}: {reason}") from error


def _authorizer(config: Config, lines: LimitedLog) -> Authorizer | None:
    """Make the authorizer that the configuration names, configured and not yet started."""
    name = config.authorizer_class_name
    if name == NO_AUTHORIZER:
        return None
    try:
        made: Authorizer
        if name == BUILT_IN_AUTHORIZER:
            made = StandardAuthorizer()
            made.lines = lines
        else:
            made = make_plugin("authorizer.class.name", name, "aclbroker.Authorizer")
        made.configure(config.properties)
    except (StoreError, ValueError) as error:
        raise StartError(str(error)) from error
    return made
