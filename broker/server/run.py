"""From a configuration to a running broker and back: start, signals, stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from importlib.metadata import version
from typing import Final

import structlog

from aclbroker.broker.acl.authorizer import Authorizer
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import BUILT_IN_AUTHORIZER, NO_AUTHORIZER, Config
from aclbroker.broker.credentials import Credentials, TokenSettings, load_credentials
from aclbroker.broker.logins.jwks_source import JwksUnavailable
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import LogOutput
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.plugins import make_plugin
from aclbroker.broker.server.server import Server
from aclbroker.broker.server.topic_ids import load_topic_ids
from aclbroker.broker.stores import AclStore, StoreError, open_store
from aclbroker.broker.stores.store import new_cluster_id

log = structlog.get_logger()


# How many new objects there are before the garbage collector looks through them. Python has it do
# so at 700, which a single request of 500 topics exceeds, without a cycle among them.
_YOUNG_OBJECTS: Final = 10_000


class StartError(Exception):
    """The broker cannot start; the text says why and what to do."""


def run(config: Config, output: LogOutput) -> None:
    """Serve until SIGTERM or SIGINT; raises `StartError` if that cannot begin.

    ``output`` is where audit records go that have no file of their own.
    """
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(config, output))
    else:
        uvloop.run(_serve(config, output))


async def _serve(config: Config, output: LogOutput) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    authorizer = _authorizer(config)
    async with AsyncExitStack() as running:
        try:
            with _objects_that_stay():
                if authorizer is not None:
                    await authorizer.start()
                    running.push_async_callback(authorizer.close)
                store = await _store(config, authorizer, running)
                credentials = await _credentials(config, store, running)
                cluster_id = new_cluster_id() if store is None else await store.cluster_id()
                catalog = await _catalog(config, store)
        except StoreError as error:
            raise StartError(str(error)) from error
        await _serve_with(config, output, cluster_id, catalog, authorizer, credentials, stop)
    log.info("stopped")


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


async def _credentials(
    config: Config, store: AclStore | None, running: AsyncExitStack
) -> Credentials | None:
    if store is None:
        return None
    tokens = None
    if config.delegation_token_secret_key is not None:
        tokens = TokenSettings(
            config.delegation_token_secret_key,
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
        )
    interval_ms = config.delegation_token_expiry_check_interval_ms
    credentials = await load_credentials(store, tokens, interval_ms)
    running.push_async_callback(credentials.close)
    return credentials


@contextmanager
def _objects_that_stay() -> Iterator[None]:
    """Keep the garbage collector from looking through the objects that are made inside the block.

    While ACLs are loaded it would do so over and over, which takes as long as loading them. Later,
    with a million ACLs, it would stop the broker for half a second each time. After the block the
    collector runs less often than by Python's default.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        gc.enable()


async def _serve_with(
    config: Config,
    output: LogOutput,
    cluster_id: str,
    catalog: Catalog,
    authorizer: Authorizer | None,
    credentials: Credentials | None,
    stop: asyncio.Event,
) -> None:
    try:
        audit = Audit(config, cluster_id, output)
        metrics = Metrics()
        server = Server(config, cluster_id, catalog, authorizer, audit, metrics, credentials)
        listeners = await server.start()
        if config.metrics_address is not None:
            host, _ = config.metrics_address
            log.info("metrics", address=f"{host}:{metrics.serve(*config.metrics_address)}")
    except (OSError, ValueError, JwksUnavailable) as error:
        raise StartError(str(error)) from error

    def renew() -> None:
        audit.reopen()
        server.reload_certificates()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
    log.info(
        "ready",
        version=version("aclbroker"),
        listeners=listeners,
        cluster_id=cluster_id,
        node_id=config.node_id,
        authorizer=config.authorizer_class_name or "none",
    )
    await stop.wait()
    log.info("stopping")
    await server.stop()
    metrics.close()
    audit.close()


def _authorizer(config: Config) -> Authorizer | None:
    """Make the authorizer that the configuration names, configured and not yet started."""
    name = config.authorizer_class_name
    if name == NO_AUTHORIZER:
        return None
    try:
        made: Authorizer = (
            StandardAuthorizer()
            if name == BUILT_IN_AUTHORIZER
            else make_plugin("authorizer.class.name", name, "aclbroker.Authorizer")
        )
        made.configure(config.properties)
    except (StoreError, ValueError) as error:
        raise StartError(str(error)) from error
    return made
