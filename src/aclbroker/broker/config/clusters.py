"""Reads the further clusters whose ACLs this server holds, and where its HTTP API listens."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from typing import Final

from aclbroker.broker.config.endpoints import is_every_interface, is_loopback
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX, METADATA_PREFIX
from aclbroker.broker.config.model import ClusterSettings, Listener, ServerUrl
from aclbroker.broker.config.reader import Reader
from aclbroker.broker.config.tls import read_tls
from aclbroker.broker.config.values import INT_MAX

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LISTENERS: Final = f"{METADATA_PREFIX}listeners"


def read_clusters(reader: Reader, listeners: Sequence[Listener]) -> tuple[ClusterSettings, ...]:
    """The further clusters, in the order of their ids; problems go to the reader's report."""
    found: dict[str, ClusterSettings] = {}
    names = [name for name in reader.settings if name.startswith(CLUSTER_PREFIX)]
    for cluster_id in sorted({_id_of(name) for name in names}):
        if _ID.fullmatch(cluster_id) is None:
            first = next(name for name in names if _id_of(name) == cluster_id)
            reader.report.problems.append(
                f"{reader.settings[first].origin}: {first}: {cluster_id!r} is no id of a cluster; "
                f"allowed: {CLUSTER_PREFIX}ID.SETTING, with an ID of 1 to 64 letters, digits, _ "
                "and -"
            )
            continue
        found[cluster_id] = _cluster(reader, cluster_id, listeners)
    if found and reader.value("aclbroker.cluster") == "memory":
        reader.refuse("aclbroker.cluster", "there are further clusters", "none beside them")
    _check_shared(reader, list(found.values()))
    return tuple(found.values())


def read_metadata_listeners(
    reader: Reader, listeners: Sequence[Listener], clusters: Sequence[ClusterSettings]
) -> tuple[Listener, ...]:
    """The listeners of the HTTP API; their names are their URLs."""
    urls: tuple[ServerUrl, ...] = reader.value(_LISTENERS)
    if not urls:
        return ()
    if len({(url.host, url.port) for url in urls}) < len(urls):
        reader.refuse(_LISTENERS, "an address is there twice")
    elsewhere = {name for cluster in clusters for name in cluster.listeners}
    own = [listener for listener in listeners if listener.name not in elsewhere]
    if not any(_has_passwords(listener) for listener in own):
        reader.refuse(
            _LISTENERS,
            "nobody could log in: its users are those of the SASL listeners of the server's own "
            "cluster",
            "a listener with PLAIN or SCRAM in listeners beside it",
        )
    return tuple(_metadata_listener(reader, url) for url in urls)


def warn_of_clusters(
    reader: Reader, listeners: Sequence[Listener], clusters: Sequence[ClusterSettings]
) -> None:
    """Warn of clusters that nobody can administer, or anybody."""
    for cluster in clusters:
        name = f"{CLUSTER_PREFIX}{cluster.cluster_id}.super.users"
        users = reader.cluster_value(cluster.cluster_id, "super.users")
        if not users:
            reader.report.warn(f"{name} is empty: only whom an ACL allows it can change its ACLs")
        if "User:ANONYMOUS" not in users:
            continue
        for listener in listeners:
            is_open = listener.admits_anybody and not is_loopback(listener.host)
            if listener.name in cluster.listeners and is_open:
                reader.report.warn(
                    f"{name} holds User:ANONYMOUS: whoever reaches listener {listener.name} may "
                    "do anything in the cluster"
                )


def _metadata_listener(reader: Reader, url: ServerUrl) -> Listener:
    has_tls = url.scheme == "https"
    protocol = "SASL_SSL" if has_tls else "SASL_PLAINTEXT"
    if not has_tls and not is_loopback(url.host):
        reader.report.warn(
            f"{reader.setting(_LISTENERS).origin}: {_LISTENERS}: {url} has no TLS: passwords and "
            "tokens can be read on their way"
        )
    host = url.host if url.host and not is_every_interface(url.host) else socket.getfqdn()
    return Listener(
        name=str(url),
        security_protocol=protocol,
        host=url.host,
        port=url.port,
        advertised_host=host,
        advertised_port=url.port,
        mechanisms={},
        max_reauth_ms={},
        principal_builder_class="",
        ssl_principal_mapping_rules=None,
        sasl_kerberos_principal_to_local_rules=None,
        max_connections=INT_MAX,
        tls=read_tls(reader, str(url), protocol) if has_tls else None,
    )


def _has_passwords(listener: Listener) -> bool:
    return any(name == "PLAIN" or name.startswith("SCRAM-") for name in listener.mechanisms)


def _id_of(name: str) -> str:
    return name.removeprefix(CLUSTER_PREFIX).partition(".")[0]


def _cluster(reader: Reader, cluster_id: str, listeners: Sequence[Listener]) -> ClusterSettings:
    def value(name: str) -> object:
        return reader.cluster_value(cluster_id, name)

    store = value("store")
    if not reader.cluster_setting(cluster_id, "store").value:
        reader.refuse_of_cluster(cluster_id, "store", "the cluster has no store")
    names = tuple(name.upper() for name in reader.cluster_value(cluster_id, "listeners"))
    known = [listener.name for listener in listeners]
    for name in names:
        if name not in known:
            reader.refuse_of_cluster(
                cluster_id, "listeners", f"{name!r} is not in listeners", ", ".join(known)
            )
    for name in ("super.users", "broker.users", "acl.limit"):
        value(name)
    return ClusterSettings(
        cluster_id=cluster_id,
        store=str(store or "memory:"),
        listeners=names,
        properties=_properties(reader, cluster_id, names, str(store)),
    )


_OF_ALL: Final = (
    "aclbroker.acl.host.cidr",
    "aclbroker.store.max.lag.ms",
    "aclbroker.store.read",
    "aclbroker.store.stale",
)
"""The settings of the server that hold for all clusters."""


def _properties(
    reader: Reader, cluster_id: str, names: Sequence[str], store: str
) -> dict[str, str]:
    """The properties of the cluster's authorizer, under the names that a broker's own have."""

    def text(name: str) -> str:
        return reader.cluster_setting(cluster_id, name).value

    return {
        **{name: reader.setting(name).value for name in _OF_ALL},
        "super.users": text("super.users"),
        "broker.users": text("broker.users"),
        "inter.broker.listener.name": _brokers_listener(reader, cluster_id, names),
        "aclbroker.acl.limit": text("acl.limit"),
        "aclbroker.store": store,
    }


def _brokers_listener(reader: Reader, cluster_id: str, names: Sequence[str]) -> str:
    setting = "inter.broker.listener.name"
    named = reader.cluster_value(cluster_id, setting)
    if named is not None:
        if named.upper() not in names:
            allowed = ", ".join(names) or "nothing: the cluster has no listeners"
            why = "it is not among the cluster's listeners"
            reader.refuse_of_cluster(cluster_id, setting, why, allowed)
        return str(named)
    if len(names) != 1 and reader.cluster_value(cluster_id, "broker.users"):
        reader.refuse_of_cluster(
            cluster_id,
            "broker.users",
            "it is not known which listener is that of the cluster's brokers",
            f"one listener in {CLUSTER_PREFIX}{cluster_id}.listeners, or "
            f"{CLUSTER_PREFIX}{cluster_id}.{setting}",
        )
    # No listener has that name, so that nobody comes by it.
    return names[0] if len(names) == 1 else f"{cluster_id}/none"


def _check_shared(reader: Reader, clusters: Sequence[ClusterSettings]) -> None:
    """Refuse a listener or a store that two clusters have."""
    taken: dict[str, str] = {}
    stores = {reader.value("aclbroker.store"): "the server's own cluster"}
    for cluster in clusters:
        for name in cluster.listeners:
            if taken.setdefault(name, cluster.cluster_id) != cluster.cluster_id:
                why = f"listener {name} is that of cluster {taken[name]}"
                reader.refuse_of_cluster(cluster.cluster_id, "listeners", why, "another listener")
        if cluster.store in stores and not cluster.store.startswith("memory:"):
            why = f"it is the store of {stores[cluster.store]}"
            reader.refuse_of_cluster(cluster.cluster_id, "store", why, "a store of its own")
        stores[cluster.store] = f"cluster {cluster.cluster_id}"
