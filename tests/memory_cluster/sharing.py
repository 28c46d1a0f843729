"""Members of share groups that speak the protocol themselves, for what clients hide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages import share_acknowledge as sa
from aclbroker.protocol.messages import share_fetch as sf
from aclbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aclbroker.protocol.messages.metadata import MetadataRequest
from aclbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from aclbroker.testing import AclBroker
from tests.memory.records import batch
from tests.memory_cluster import raw

GROUP = "workers"
TOPIC = "work"
LONG_MS = 15_000


def connected(broker: AclBroker, user: str = "admin", node: int = 0) -> BlockingClient:
    """Return a connection of a user to a node."""
    host, _, port = broker.bootstrap_servers.split(",")[node].partition(":")
    client = BlockingClient(connect(host, int(port), timeout=30), "test")
    raw.OPEN.append(client)
    assert client.login(user, broker.password(user)).error_code == 0
    return client


def configured(client: BlockingClient, **configs: str) -> None:
    """Set share settings of the group: their names with underscores."""
    changes = [
        AlterableConfig(f"share.{name.replace('_', '.')}", 0, value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(32, GROUP, changes)
    answer = client.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource])
    )
    assert [each.error_code for each in answer.responses] == [0]


def write(client: BlockingClient, *values: bytes, index: int = 0) -> None:
    """Write a batch of now to a partition of the topic: older records soon go."""
    data = batch(*values, time_ms=int(time.time() * 1000))
    entry = p.TopicProduceData(TOPIC, partition_data=[p.PartitionProduceData(index, data)])
    answer = client.ask(ApiKey.PRODUCE, 12, p.ProduceRequest(None, -1, 1000, [entry]))
    assert answer.responses[0].partition_responses[0].error_code == 0


class Member:
    """A member of the group with a connection and a share session of its own."""

    def __init__(
        self, broker: AclBroker, member_id: str, user: str = "admin", node: int = 0
    ) -> None:
        self.client = connected(broker, user, node)
        self.member_id = member_id
        self.member_epoch = 0
        self.epoch = 0
        topics = self.client.ask(ApiKey.METADATA, 12, MetadataRequest(None)).topics
        self.topic_id = next((bytes(t.topic_id) for t in topics if t.name == TOPIC), bytes(16))

    def beat(self, topics: Sequence[str] | None = None) -> Any:
        """Send a heartbeat; the first one joins."""
        names = (TOPIC,) if self.member_epoch == 0 and topics is None else topics
        request = ShareGroupHeartbeatRequest(GROUP, self.member_id, self.member_epoch, None, names)
        answer = self.client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        if not answer.error_code:
            self.member_epoch = answer.member_epoch
        return answer

    def assigned(self, topics: Sequence[str] | None = None) -> list[int]:
        """Send a heartbeat; returns the partitions that it tells."""
        answer = self.beat(topics)
        assert answer.error_code == 0
        told = answer.assignment.topic_partitions if answer.assignment else ()
        return [index for each in told for index in each.partitions]

    def asks(self, said: Sequence[tuple[int, int, list[int]]] = (), **changes: Any) -> Any:
        """Fetch with the next epoch; returns the whole answer."""
        partition = sf.FetchPartition(0, [sf.AcknowledgementBatch(*each) for each in said])
        request = sf.ShareFetchRequest(GROUP, self.member_id, self.epoch)
        request.max_wait_ms, request.min_bytes, request.max_bytes = 0, 1, 1 << 20
        request.max_records = request.batch_size = 500
        request.topics = [sf.FetchTopic(self.topic_id, [partition])]
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self.client.ask(ApiKey.SHARE_FETCH, 2, request)
        self.epoch = 0 if answer.error_code else self.epoch + 1
        return answer

    def fetch(self, **changes: Any) -> list[tuple[int, int, int]]:
        """Fetch with the next epoch; returns what was acquired, with how often delivered."""
        answer = self.asks(**changes)
        assert answer.error_code == 0
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for partition in topic.partitions
            for each in partition.acquired_records
        ]

    def say(self, first: int, last: int, *kinds: int, **changes: Any) -> int:
        """Acknowledge records with the next epoch; returns the code."""
        batches = [sa.AcknowledgementBatch(first, last, list(kinds))]
        topics = [sa.AcknowledgeTopic(self.topic_id, [sa.AcknowledgePartition(0, batches)])]
        request = sa.ShareAcknowledgeRequest(GROUP, self.member_id, self.epoch, topics=topics)
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self.client.ask(ApiKey.SHARE_ACKNOWLEDGE, 2, request)
        self.epoch += 1
        assert answer.error_code == 0
        code: int = answer.responses[0].partitions[0].error_code
        return code
