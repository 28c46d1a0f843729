"""What serves connections: of each node of a cluster in memory, and of each cluster held here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakSet

from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.backends.backend import Node
from aclbroker.broker.backends.declared import DECLARED_HANDLERS, DECLARED_LISTED
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config.model import ClusterSettings
from aclbroker.broker.config.store_url import topics_of
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.server.doors import Door
from aclbroker.broker.server.held_clusters import HeldCluster, LoadedCluster
from aclbroker.broker.server.registry import OpenConnection


class ListenerNodes(NamedTuple):
    """By the name of a listener: ``own`` is the node itself, ``all`` has every node."""

    own: Mapping[str, Node]
    all: Mapping[str, tuple[Node, ...]]


def nodes_by_id(sockets: Iterable[tuple[int, Door]]) -> dict[int, ListenerNodes]:
    """Return the advertised nodes of all listeners, for each node id."""
    peers: dict[str, list[Node]] = {}
    by_node: dict[int, dict[str, Node]] = {}
    for node_id, bound in sockets:
        listener = bound.listener
        node = Node(node_id, listener.advertised_host, listener.advertised_port or bound.port)
        peers.setdefault(listener.name, []).append(node)
        by_node.setdefault(node_id, {})[listener.name] = node
    nodes = {name: tuple(nodes) for name, nodes in peers.items()}
    return {node_id: ListenerNodes(own, nodes) for node_id, own in by_node.items()}


def credentials_by_listener(
    clusters: Iterable[tuple[LoadedCluster, Audit]], missing: Iterable[HeldCluster]
) -> dict[str, Credentials | None]:
    """Return whose users log in at listeners of further clusters; None are not known yet."""
    found: dict[str, Credentials | None] = {}
    for cluster, _ in clusters:
        found |= dict.fromkeys(cluster.settings.listeners, cluster.credentials)
    for each in missing:
        found |= dict.fromkeys(each.settings.listeners)
    return found


class ServedClusters:
    """What serves each cluster: ``own`` the server's own, and others those held besides.

    Clients of the others are not told the settings, which are those of the server.
    """

    def __init__(self, own: Services, nodes: ListenerNodes) -> None:
        self._own = own
        self._nodes = nodes
        self.by_id = {own.cluster_id: own}
        self._by_listener: dict[str, Services] = {}
        self._refused: dict[str, WeakSet[Any]] = {}

    def of_listener(self, name: str) -> Services | None:
        """Return what serves a listener; None if it is one of the server's own cluster."""
        return self._by_listener.get(name)

    def serve(self, cluster: LoadedCluster, audit: Audit) -> None:
        """Have a cluster served from now on."""
        self._put(
            cluster.settings,
            replace(
                self._own,
                authorizer=cluster.authorizer,
                audit=audit,
                backend=self._backend(cluster.cluster_id, cluster.catalog),
                credentials=cluster.credentials,
                reserved_topics=topics_of([cluster.settings.store]),
            ),
        )

    def refuse(self, cluster: HeldCluster) -> None:
        """Have a cluster refused from now on, whose ACLs are not there."""
        self._put(
            cluster.settings,
            replace(
                self._own,
                # None would allow everything. This one, which is never started, decides nothing.
                authorizer=StandardAuthorizer(),
                backend=self._backend(
                    cluster.cluster_id, Catalog({}, (), auto_creates=False, topic_ids=None)
                ),
                credentials=None,
                waits=cluster.refusal,
            ),
        )

    def connected(self, listener: str, connection: OpenConnection) -> None:
        """Remember a connection that is refused, as long as it is there."""
        services = self._by_listener.get(listener)
        if services is not None and services.waits:
            self._refused.setdefault(listener, WeakSet()).add(connection)

    def refused(self, listener: str) -> list[OpenConnection]:
        """Return the connections that began while a listener was refused, and forget them."""
        return list(self._refused.pop(listener, ()))

    def _backend(self, cluster_id: str, catalog: Catalog) -> DeclaredBackend:
        return DeclaredBackend(
            cluster_id=cluster_id,
            catalog=catalog,
            handlers=DECLARED_HANDLERS,
            listed=DECLARED_LISTED,
            advertised=self._nodes.own,
            peers=self._nodes.all,
        )

    def _put(self, settings: ClusterSettings, services: Services) -> None:
        self.by_id[settings.cluster_id] = services
        self._by_listener |= dict.fromkeys(settings.listeners, services)
