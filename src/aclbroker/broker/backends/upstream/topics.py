"""Resolves topic ids and asks whether topics exist, for the gate of a cluster upstream."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable
from typing import Any, Final

from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
from aclbroker.broker.gate.need import Row
from aclbroker.broker.gate.topic_resolver import wanted
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_MOST_NAMES: Final = 100_000
"""The most topic ids that are remembered; the oldest is forgotten for the next one."""

_TOPICS_A_REQUEST: Final = 1000

_MISSING: Final = frozenset(
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
)


class KnownTopics:
    """What is known of the topics of one request: existing names, and the names of all known ids.

    It is `broker.gate.topics_known.Topics`. The gateway keeps no fetch sessions.
    """

    def __init__(self, resolver: UpstreamTopics, partitions: dict[str, int]) -> None:
        self._resolver = resolver
        self._partitions = partitions

    @property
    def node_id(self) -> int:
        """The id of the broker that answers."""
        return next(iter(self._resolver.cluster.state.brokers))

    @property
    def auto_creates(self) -> bool:
        """Whether the broker creates a missing topic that a Metadata asks for."""
        return self._resolver.auto_creates

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic has it."""
        return self._resolver.names.get(topic_id)

    def exists(self, name: str) -> bool:
        """Return whether there was a topic of that name when the request came."""
        return name in self._partitions

    def has_partition(self, name: str | None, partition: int) -> bool:
        """Return whether there was a topic of that name with that partition."""
        return name is not None and 0 <= partition < self._partitions.get(name, 0)

    def keeps_session(self, _session_id: int) -> bool:
        """Return False, since no fetch session is ever begun."""
        return False


class UpstreamTopics:
    """Asks the cluster upstream for the names of topic ids, and whether topics exist.

    ``names`` has the topic ids that are known by now. An id never gets another name. Whether a
    topic exists is asked for each request anew.
    """

    def __init__(self, cluster: UpstreamCluster, *, auto_creates: bool) -> None:
        self.cluster = cluster
        self.auto_creates = auto_creates
        self.names: dict[bytes, str] = {}
        self._nothing = KnownTopics(self, {})

    def known(self, row: Row, request: Any) -> KnownTopics | Awaitable[KnownTopics]:
        """Return what is known of the topics in a request, or an awaitable of it.

        The awaitable raises `UpstreamUnavailable`.
        """
        if not row.resolves:
            return self._nothing
        ids, names = wanted(row, request)
        ids -= self.names.keys()
        if row.key == ApiKey.METADATA and not (
            self.auto_creates and request.allow_auto_topic_creation
        ):
            names = set()
        return self._asked(ids, names) if ids or names else self._nothing

    async def learn(self, ids: Collection[bytes]) -> None:
        """Ask for the names of topic ids; raises `UpstreamUnavailable`."""
        for some in _parts(ids):
            request = MetadataRequest([MetadataRequestTopic(each, None) for each in some], False)
            for topic in (await self.cluster.ask(ApiKey.METADATA, request)).topics:
                if topic.name and topic.topic_id in ids:
                    self._remember(topic.topic_id, topic.name)

    async def _asked(self, ids: Collection[bytes], names: Collection[str]) -> KnownTopics:
        await self.learn(ids)
        partitions: dict[str, int] = {}
        for some in _parts(names):
            request = MetadataRequest([MetadataRequestTopic(name=name) for name in some], False)
            for topic in (await self.cluster.ask(ApiKey.METADATA, request)).topics:
                if topic.name in names and topic.error_code not in _MISSING:
                    partitions[topic.name] = len(topic.partitions)
        return KnownTopics(self, partitions)

    def _remember(self, topic_id: bytes, name: str) -> None:
        if len(self.names) >= _MOST_NAMES:
            del self.names[next(iter(self.names))]
        self.names[topic_id] = name


def _parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    listed = list(values)
    for first in range(0, len(listed), _TOPICS_A_REQUEST):
        yield listed[first : first + _TOPICS_A_REQUEST]
