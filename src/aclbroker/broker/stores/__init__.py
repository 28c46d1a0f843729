"""Where ACLs and other records are kept: one small interface, `AclStore`, and stores behind it.

A store is named by a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

from aclbroker.acl.settings import history_changes
from aclbroker.broker.config.access_rules import KRAFT_INTERVAL
from aclbroker.broker.config.store_url import ZOOKEEPER
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import (
    AclStore,
    Origin,
    StoreError,
    StoreMissing,
    StoreUnavailable,
)
from aclbroker.broker.urls import without_login

__all__ = [
    "AclStore",
    "Origin",
    "StoreError",
    "StoreMissing",
    "StoreUnavailable",
    "leave_stores_to",
    "open_store",
    "path_of",
]

_SQLITE: Final = "sqlite:///"
_KAFKA: Final = "kafka://"

_CLUSTER: Final = "kafka+acls://"
_INTERVAL_MS: Final = 1000

_NONE: Final[Mapping[str, str]] = {}


_made_by: ContextVar[Callable[[str, str], AclStore] | None] = ContextVar("stores", default=None)


def leave_stores_to(owner: Callable[[str, str], AclStore]) -> None:
    """In the current context, have `open_store` return what an owner of stores gives.

    It is given the id of the further cluster whose store it is, "" for the broker's own, and the
    URL.
    """
    _made_by.set(owner)


def open_store(
    url: str,
    properties: Mapping[str, str] = _NONE,
    *,
    makes: bool = True,
    accepts_loss: bool = False,
    role: str = "",
    cluster_id: str = "",
) -> AclStore:
    """Return the store that a URL names; its own ``open`` is still to be awaited.

    ``sqlite:///path`` is a file relative to the working directory, ``sqlite:////path`` an absolute
    one, ``memory:`` keeps nothing over a restart. Several brokers share
    ``zookeeper://host:port,host:port/chroot`` and the topic ``kafka://host:port,host:port/topic``.
    ``kafka+acls://host:port,host:port`` is a Kafka with its ACLs, and without any records.
    ``properties`` say how to reach these, and how many changes of the past a file keeps. A writer
    to a topic is identified by the number of its node, and by its ``role`` if brokers of another
    cluster may have the same number. ``open`` makes a shared store that does not exist, unless
    ``makes`` is false: then it raises `StoreMissing`. A topic that has lost messages is opened only
    with ``accepts_loss``. ``cluster_id`` is the id of the further cluster whose store it is. Raises
    `StoreError` for any other URL, and if an extra is missing.
    """
    if (owner := _made_by.get()) is not None:
        return owner(cluster_id, url)
    if url in ("memory:", "memory://"):
        return MemoryStore()
    if url.startswith(ZOOKEEPER):
        return _zookeeper_store(url, properties, makes=makes)
    if url.startswith(_KAFKA):
        return _topic(url, properties, role, makes=makes, accepts_loss=accepts_loss)
    if url.startswith(_CLUSTER):
        return _cluster(url, properties)
    path = path_of(url)
    if path is None:
        raise StoreError(
            f"aclbroker.store={without_login(url)!r} names no store; "
            "write sqlite:///relative/path, sqlite:////absolute/path, "
            "zookeeper://HOST:PORT,HOST:PORT/CHROOT, kafka://HOST:PORT,HOST:PORT/TOPIC or memory:"
        )
    return SqliteStore(path, history_changes(properties))


def _topic(
    url: str, properties: Mapping[str, str], role: str, *, makes: bool, accepts_loss: bool
) -> AclStore:
    # Imported where it is asked for: aiokafka's client takes time to load.
    from aclbroker.broker.stores.kafka import snapshots
    from aclbroker.broker.stores.kafka.connection import SETTING, place_of
    from aclbroker.broker.stores.kafka.store import KafkaStore

    place = place_of(url, properties.get(SETTING) or None)
    node = role + (properties.get("node.id") or properties.get("broker.id") or "0")
    directory = snapshots.directory_of(properties.get(snapshots.SETTING))
    return KafkaStore(
        place,
        f"aclbroker-{place.topic}-{node}",
        directory,
        makes=makes,
        accepts_loss=accepts_loss,
    )


def _cluster(url: str, properties: Mapping[str, str]) -> AclStore:
    # Imported where it is asked for, as most brokers have no client.
    from aclbroker.broker.client.errors import ClientConfigError
    from aclbroker.broker.client.settings import read_addresses, read_settings
    from aclbroker.broker.stores.cluster import ClusterStore
    from aclbroker.broker.stores.kafka.connection import SETTING

    try:
        addresses = read_addresses(url.removeprefix(_CLUSTER), _CLUSTER)
        settings = read_settings(properties.get(SETTING) or None)
    except ClientConfigError as error:
        raise StoreError("\n".join(error.problems)) from None
    interval_ms = int(properties.get(KRAFT_INTERVAL) or _INTERVAL_MS)
    return ClusterStore(url, addresses, settings, interval_ms / 1000)


def _zookeeper_store(url: str, properties: Mapping[str, str], *, makes: bool) -> AclStore:
    # Imported where a URL asks for it: it is an extra, and others start sooner without.
    try:
        import kazoo  # noqa: F401
        import puresasl  # noqa: F401
    except ImportError as error:
        raise StoreError(
            f"{without_login(url)}: a store in ZooKeeper needs the extra zookeeper, and "
            f"{error.name} is not installed: pip install 'aclbroker[zookeeper]'"
        ) from None
    from aclbroker.broker.stores.zookeeper.settings import zookeeper_settings
    from aclbroker.broker.stores.zookeeper.store import ZookeeperStore

    return ZookeeperStore(zookeeper_settings(url, properties), makes=makes)


def path_of(url: str) -> str | None:
    """Return the path of the file that a URL names, None if it names none."""
    path = url.removeprefix(_SQLITE)
    return None if path == url or not path or "\0" in path else path
