"""Resolves topic ids and asks whether topics exist, for the gate of a cluster upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping
from typing import Any, Final

from aclbroker.broker.backends.upstream.access import UpstreamUnavailable
from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
from aclbroker.broker.gate.need import Row
from aclbroker.broker.gate.topic_resolver import wanted
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_MOST_NAMES: Final = 100_000
"""The most topic ids that are remembered; the oldest is forgotten for the next one."""

_TOPICS_A_REQUEST: Final = 1000
_ANY_BROKER: Final = -1

_LISTED_AGAIN_S: Final = 10.0
"""How long the list of all topics may be used, in seconds, as long as Kafka's coordinator waits
between two resolutions of a regular expression.
"""

_MISSING: Final = frozenset(
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
)


class TopicDirectory:
    """Asks the cluster upstream for the names of topic ids, and whether topics exist.

    ``names`` has the topic ids that are known by now. An id never gets another name. Whether a
    topic exists is asked for each request anew.
    """

    def __init__(self, cluster: UpstreamCluster) -> None:
        self.cluster = cluster
        self.names: dict[bytes, str] = {}
        self._listed: tuple[str, ...] = ()
        self._listed_until = 0.0
        self._listing: asyncio.Task[tuple[str, ...]] | None = None
        self._wanted: set[bytes] = set()
        self._learned: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._learning: asyncio.Task[None] | None = None

    def listed(self) -> tuple[str, ...] | Awaitable[tuple[str, ...]]:
        """Return the names of all topics, or an awaitable of them.

        It is the same tuple as long as the topics are the same. The awaitable raises
        `UpstreamUnavailable`.
        """
        if asyncio.get_running_loop().time() < self._listed_until:
            return self._listed
        if self._listing is None or self._listing.done():
            self._listing = asyncio.create_task(self._list())
        return asyncio.shield(self._listing)

    async def _list(self) -> tuple[str, ...]:
        answer = await self.cluster.ask(ApiKey.METADATA, MetadataRequest(None, False))
        names = tuple(sorted(topic.name for topic in answer.topics if topic.name))
        if names != self._listed:
            self._listed = names
        self._listed_until = asyncio.get_running_loop().time() + _LISTED_AGAIN_S
        return self._listed

    async def learn(self, ids: Collection[bytes]) -> None:
        """Ask for the names of topic ids; raises `UpstreamUnavailable`.

        There is one request for ids at a time. The ids that clients ask for meanwhile are in the
        next one, also those that are in the request at work: a topic may have been created since.
        """
        for some in _parts(ids):
            if not self._wanted:
                self._learned = asyncio.get_running_loop().create_future()
            self._wanted.update(some)
            if self._learning is None or self._learning.done():
                self._learning = asyncio.create_task(self._learn_on())
            await asyncio.shield(self._learned)

    async def _learn_on(self) -> None:
        """Ask for the wanted ids until there are none."""
        while self._wanted:
            wanted, self._wanted = self._wanted, set()
            learned = self._learned
            # An error without a client that still waits for it is no news.
            learned.add_done_callback(lambda future: future.exception())
            try:
                await self._ask(wanted)
            except UpstreamUnavailable as error:
                learned.set_exception(error)
            else:
                learned.set_result(None)

    async def _ask(self, ids: Collection[bytes]) -> None:
        for some in _parts(ids):
            request = MetadataRequest([MetadataRequestTopic(each, None) for each in some], False)
            for topic in (await self.cluster.ask(ApiKey.METADATA, request)).topics:
                if topic.name and topic.topic_id in ids:
                    self._remember(topic.topic_id, topic.name)

    async def existing(self, names: Collection[str]) -> dict[str, int]:
        """Return the topics among some names that exist, with their number of partitions.

        Raises `UpstreamUnavailable`.
        """
        partitions: dict[str, int] = {}
        for some in _parts(names):
            request = MetadataRequest([MetadataRequestTopic(name=name) for name in some], False)
            for topic in (await self.cluster.ask(ApiKey.METADATA, request)).topics:
                if topic.name in names and topic.error_code not in _MISSING:
                    partitions[topic.name] = len(topic.partitions)
        return partitions

    def _remember(self, topic_id: bytes, name: str) -> None:
        if len(self.names) >= _MOST_NAMES:
            del self.names[next(iter(self.names))]
        self.names[topic_id] = name


def _parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    listed = list(values)
    for first in range(0, len(listed), _TOPICS_A_REQUEST):
        yield listed[first : first + _TOPICS_A_REQUEST]


class KnownTopics:
    """The topics of one request that exist, and the names of all known topic ids.

    It is `broker.gate.topics_known.Topics`.
    """

    __slots__ = ("_names", "_partitions", "auto_creates", "node_id")

    def __init__(
        self,
        names: Mapping[bytes, str],
        partitions: Mapping[str, int],
        node_id: int,
        *,
        auto_creates: bool,
    ) -> None:
        self._names = names
        self._partitions = partitions
        self.node_id = node_id
        self.auto_creates = auto_creates

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic has it."""
        return self._names.get(topic_id)

    def exists(self, name: str) -> bool:
        """Return whether there was a topic of that name when the request came."""
        return name in self._partitions

    def has_partition(self, name: str | None, partition: int) -> bool:
        """Return whether there was a topic of that name with that partition."""
        return name is not None and 0 <= partition < self._partitions.get(name, 0)

    def keeps_session(self, _session_id: int) -> bool:
        """Return True: the handler knows which fetch sessions the client has."""
        return True


class UpstreamTopics:
    """The topics of a cluster upstream, as the gate asks for them before it checks a request.

    ``node_id`` is the broker that answers; with None it is any broker.
    """

    def __init__(
        self, directory: TopicDirectory, node_id: int | None, *, auto_creates: bool
    ) -> None:
        self._directory = directory
        self._node_id = node_id
        self.auto_creates = auto_creates

    def of_node(self, node_id: int) -> UpstreamTopics:
        """Return the topics as one broker knows them."""
        return UpstreamTopics(self._directory, node_id, auto_creates=self.auto_creates)

    def known(self, row: Row, request: Any) -> KnownTopics | Awaitable[KnownTopics]:
        """Return the known topics of a request, or an awaitable of them.

        The awaitable raises `UpstreamUnavailable`.
        """
        if not row.resolves:
            return self._known({})
        ids, names = wanted(row, request)
        ids -= self._directory.names.keys()
        if row.key == ApiKey.METADATA and not (
            self.auto_creates and request.allow_auto_topic_creation
        ):
            names = set()
        return self._asked(ids, names) if ids or names else self._known({})

    async def _asked(self, ids: Collection[bytes], names: Collection[str]) -> KnownTopics:
        await self._directory.learn(ids)
        return self._known(await self._directory.existing(names))

    def _known(self, partitions: Mapping[str, int]) -> KnownTopics:
        node_id = self._node_id
        if node_id is None:
            brokers = self._directory.cluster.state.brokers
            node_id = next(iter(brokers)) if len(brokers) == 1 else _ANY_BROKER
        names = self._directory.names
        return KnownTopics(names, partitions, node_id, auto_creates=self.auto_creates)
