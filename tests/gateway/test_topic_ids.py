"""Topic ids that the gateway does not know: asked for together, and anew each time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aclbroker.broker.backends.upstream.access import upstream_access
from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
from aclbroker.broker.backends.upstream.topics import TopicDirectory
from aclbroker.broker.config import load
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.gateway.test_relay import Scene, scene
from tests.memory_cluster import raw
from tests.memory_cluster.raw import fetched, partition, request
from tests.support.broker import Broker

__all__ = ["scene"]

CLIENTS = 200
UNKNOWN_TOPIC_ID = 100


class Counting(UpstreamCluster):
    """Counts the requests of the gateway itself."""

    asked = 0

    async def ask(self, key: ApiKey, message: Any) -> Any:
        self.asked += 1
        return await super().ask(key, message)


async def test_ids_that_many_clients_ask_for_are_in_few_requests(memory: Broker, tmp_path: Path):
    known = raw.id_of(raw.admin(memory), "plain")
    properties = tmp_path / "server.properties"
    address = memory.listeners["PLAINTEXT"]
    properties.write_text(f"aclbroker.upstream.bootstrap.servers={address}\n")
    cluster = Counting(upstream_access(load(str(properties))))
    await cluster.reach()
    directory = TopicDirectory(cluster)
    unknown = [number.to_bytes(16) for number in range(1, CLIENTS)]
    await asyncio.gather(*(directory.learn([each, known]) for each in unknown))
    assert directory.names == {known: "plain"}
    # The first request had the ids of the first client, the second those of all others.
    assert cluster.asked <= 2
    await directory.learn(unknown[:1])
    assert cluster.asked <= 3
    await cluster.close()


def test_an_id_is_known_as_soon_as_its_topic_is_there(scene: Scene):
    """Each request asks anew, so a new topic is found by the next one."""
    answer = fetched(scene.alice, 13, request({b"\1" * 16: [partition(0)]}))
    assert answer.responses[0].partitions[0].error_code == UNKNOWN_TOPIC_ID
    name = "created-behind-the-gateway"
    upstream = raw._opened(scene.world.proxy.target)
    created = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 10_000)
    upstream.ask(ApiKey.CREATE_TOPICS, 7, created)
    scene.admin.create(raw.acl("alice", raw.READ, name))
    topic_id = raw.id_of(upstream, name)
    answer = fetched(scene.alice, 13, request({topic_id: [partition(0)]}))
    assert answer.responses[0].partitions[0].error_code == 0
