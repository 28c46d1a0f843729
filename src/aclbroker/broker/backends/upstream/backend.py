"""The cluster upstream as a backend: what a listener of the gateway shows of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from aclbroker.broker.backends.backend import (
    Answers,
    BackendHandler,
    FeatureRange,
    KeyVersions,
    Node,
    Relay,
)
from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
from aclbroker.broker.backends.upstream.pipeline import Pipeline
from aclbroker.broker.backends.upstream.share_members import ShareMembers
from aclbroker.broker.backends.upstream.subscriptions import Subscriptions
from aclbroker.broker.backends.upstream.topics import TopicDirectory, UpstreamTopics
from aclbroker.broker.client.settings import Address
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.turns import wait


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamBackend:
    """A real cluster behind the gate.

    Requests go to the broker ``node_id``, or to any if it is None. The gateway's address by
    listener is in ``advertised``. The port of the broker with the id 0 by listener is in
    ``first_ports``. A listener without one can lead to one broker only.
    """

    exceeds_rights: ClassVar[bool] = True
    short_answers: ClassVar[Collection[int]] = ()

    cluster: UpstreamCluster
    directory: TopicDirectory
    topics: UpstreamTopics
    handlers: Mapping[int, BackendHandler]
    advertised: Mapping[str, Node]
    first_ports: Mapping[str, int]
    node_id: int | None = None
    subscriptions: Subscriptions
    share_members: ShareMembers = field(default_factory=ShareMembers)
    """The members of share groups; the backends of all brokers have them together."""

    relay: Callable[[UpstreamBackend, Pipeline, Answers], Relay]
    pipelines: dict[object, Pipeline] = field(default_factory=dict)
    """The pipeline of each client, by the connection of its session."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster upstream."""
        return self.cluster.state.cluster_id

    @property
    def listed(self) -> Sequence[KeyVersions]:
        """The API keys that are forwarded, at versions that both sides know."""
        return self.cluster.state.listed

    @property
    def features(self) -> Mapping[str, FeatureRange]:
        """The features of the cluster upstream."""
        return self.cluster.state.features

    @property
    def features_epoch(self) -> int:
        """The epoch of the features' levels."""
        return self.cluster.state.features_epoch

    def address_of(self, rights: RequestRights, node_id: int) -> Address | None:
        """Return the gateway's address for a broker on the session's listener, None without one.

        It may wait, and raise `UpstreamUnavailable`, if the broker is not known yet.
        """
        if node_id < 0:
            return None
        if node_id not in self.cluster.state.brokers:
            wait(self.cluster.refresh())
        return self._address(rights, node_id) if node_id in self.cluster.state.brokers else None

    def _address(self, rights: RequestRights, node_id: int) -> Address:
        listener = rights.context.session.listener
        node = self.advertised[listener]
        first = self.first_ports.get(listener)
        return node.host, node.port if first is None else first + node_id

    def node(self, rights: RequestRights) -> Node:
        """Return the broker upstream, with the gateway's address on the session's listener."""
        return self.nodes(rights)[0]

    def nodes(self, rights: RequestRights) -> tuple[Node, ...]:
        """Return all brokers upstream, with the gateway's address for each of them."""
        return tuple(
            Node(node_id, *self._address(rights, node_id)) for node_id in self.cluster.state.brokers
        )

    def connected(self, connection: object, answers: Answers) -> Relay | None:
        """Prepare the pipeline of a client; the first request connects it to the broker."""
        if connection in self.pipelines:
            return None
        pipeline = self.pipelines[connection] = self.cluster.pipeline(self.node_id, answers)
        return self.relay(self, pipeline, answers)

    def disconnected(self, connection: object) -> None:
        """Close the connection upstream of a client that is gone."""
        pipeline = self.pipelines.pop(connection, None)
        if pipeline is not None:
            pipeline.close()
