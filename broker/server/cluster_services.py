"""What serves connections: of each node of a cluster in memory, and of each cluster held here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config.store_url import topics_of
from aclbroker.broker.handlers.services import Node, Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.server.doors import Door
from aclbroker.broker.server.held_clusters import HeldCluster


def services_by_node(
    services: Services,
    sockets: Iterable[tuple[int, Door]],
    catalog_of: Callable[[int], Catalog],
) -> dict[int, Services]:
    """Return what the handlers need, which differs by the node that a client talks to."""
    peers: dict[str, list[Node]] = {}
    by_node: dict[int, dict[str, Node]] = {}
    for node_id, bound in sockets:
        listener = bound.listener
        node = Node(node_id, listener.advertised_host, listener.advertised_port or bound.port)
        peers.setdefault(listener.name, []).append(node)
        by_node.setdefault(node_id, {})[listener.name] = node
    nodes = {name: tuple(nodes) for name, nodes in peers.items()}
    return {
        node_id: replace(services, advertised=advertised, catalog=catalog_of(node_id), peers=nodes)
        for node_id, advertised in by_node.items()
    }


def services_of_clusters(
    own: Services, clusters: Sequence[tuple[HeldCluster, Audit]]
) -> dict[str, Services]:
    """Return what serves the further clusters, by their ids.

    Their clients are not told the settings, which are those of the server.
    """
    return {
        cluster.cluster_id: replace(
            own,
            cluster_id=cluster.cluster_id,
            authorizer=cluster.authorizer,
            audit=audit,
            catalog=cluster.catalog,
            settings={},
            credentials=cluster.credentials,
            reserved_topics=topics_of([cluster.settings.store]),
        )
        for cluster, audit in clusters
    }
