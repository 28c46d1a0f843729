"""The cluster in memory: everything that is lost when the broker ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import Groups, GroupSettings
from aclbroker.broker.memory.quotas import Quotas
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.sessions import FetchSessions
from aclbroker.broker.memory.share import SharePartitions, ShareSession, ShareSessions
from aclbroker.broker.memory.topics import MemoryTopics, coordinator_of
from aclbroker.broker.memory.transaction import Producer
from aclbroker.broker.memory.transactions import Transactions
from aclbroker.broker.memory.upkeep import Upkeep
from aclbroker.broker.topic_configs import BrokerDefault
from aclbroker.protocol.errors import ErrorCode


class MemorySettings(NamedTuple):
    """The broker's settings that concern its data; the names are those of the configuration.

    ``full`` is ``delete`` or ``refuse``.
    """

    auto_create_topics: bool = True
    partitions: int = 1
    replicas: int = 1
    topic_defaults: Mapping[str, BrokerDefault] = MappingProxyType({})
    max_bytes: int = 256 << 20
    full: str = "delete"
    longest_transaction_ms: int = 900_000
    groups: GroupSettings = GroupSettings()


class MemoryCluster:
    """What a cluster of Kafka keeps for its clients. All nodes are this one process.

    ``on_close`` has what is to be called at the end: whoever waits is to be woken.
    """

    def __init__(self, clock: Clock, node_ids: Sequence[int], settings: MemorySettings) -> None:
        self.clock = clock
        self.node_ids = tuple(node_ids)
        self.settings = settings
        self.room = Room(settings.max_bytes, settings.full)
        self.topics = MemoryTopics(
            self.node_ids,
            self.room,
            auto_creates=settings.auto_create_topics,
            defaults=settings.topic_defaults,
        )
        self.groups = Groups(clock, settings.groups, self.topics)
        self.producer_ids = count()
        self.transactions = Transactions(
            clock,
            self.producer_ids,
            _Markers(self),
            settings.longest_transaction_ms,
            self.groups.account,
        )
        self.topics.transactions = self._may_write
        self.quotas = Quotas()
        self.fetch_sessions = FetchSessions()
        self.topics.sessions = self.fetch_sessions
        self.share_partitions = SharePartitions(clock, self.groups, self.topics)
        self.share_sessions = ShareSessions(
            settings.groups.share_max_sessions, self.share_partitions.forget_unread
        )
        self._upkeep = Upkeep(clock, self.topics)
        self.on_close: set[Callable[[], None]] = set()
        self.is_closed = False

    def coordinator(self, key: str) -> int:
        """Return the id of the node that coordinates a group or a transactional id."""
        return coordinator_of(key, self.node_ids)

    def end_share_session(self, session: ShareSession) -> None:
        """End a session of a member of a share group; what it has is others' again."""
        key = session.key
        self.share_partitions.release(key.group_id, key.member_id, session.partitions)
        self.share_sessions.close(session)

    def disconnected(self, connection: object) -> None:
        """Note that a client is gone, with its sessions of share groups."""
        for session in self.share_sessions.of_connection(connection):
            self.end_share_session(session)

    def _may_write(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        topic: str,
        index: int,
        adds: bool,
    ) -> ErrorCode:
        """Tell whether a producer may begin to write to a partition (see `VerifyTransaction`)."""
        producer, place = Producer(producer_id, epoch), (topic, index)
        if adds:
            code = self.transactions.add(
                transactional_id, producer, [place], by_second_version=True
            )
        else:
            code = self.transactions.verify(transactional_id, producer, place)
        # Who writes is told so by the partition, as in Kafka.
        return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code

    def close(self) -> None:
        """Let nobody wait any more; what comes later waits for nothing."""
        self.is_closed = True
        self.clock.close()
        for wake in list(self.on_close):
            wake()


class _Markers:
    """Writes the ends of transactions into the logs of partitions, and into the groups' offsets."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def end_partition(self, topic: str, index: int, producer: Producer, *, commits: bool) -> None:
        """End the transaction of a producer in a partition, if that still exists."""
        partition = self._cluster.topics.partition(topic, index)
        if partition is not None:
            # A newer epoch there means that it has been ended before, as by an administrator.
            with suppress(LogError):
                partition.log.append_marker(
                    producer.producer_id,
                    producer.epoch,
                    commits=commits,
                    now_ms=self._cluster.clock.now_ms(),
                )

    def end_group(self, group_id: str, producer: Producer, *, commits: bool) -> Iterator[None]:
        """Let the offsets that a transaction committed count, or forget them, one at each step."""
        return self._cluster.groups.offsets.complete(
            producer.producer_id, group_id, commits=commits
        )
