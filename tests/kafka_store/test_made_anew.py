"""A topic that is deleted and made anew while a store reads it, of a Kafka in memory."""

import asyncio
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import NodeNotReadyError, UnknownTopicOrPartitionError

from aclbroker.broker.stores import StoreError, open_store
from aclbroker.broker.stores.kafka.topic_id import topic_id
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN
from tests.stores.test_contract import loaded

WITHIN_S = 30.0


async def made_anew(address, name):
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.delete_topics([name])
    config = {"cleanup.policy": "compact"}
    await admin.create_topics([NewTopic(name, 1, 1, topic_configs=config)])
    await admin.close()


@pytest.mark.parametrize("is_led", [True, False])
async def test_one_that_is_longer_than_the_old_one_is_not_taken_for_the_same(
    memory_proxy, monkeypatch, is_led
):
    # A reader that is held for long is not taken for a cluster that is out of reach.
    monkeypatch.setattr("aclbroker.broker.stores.kafka.store._SILENT_S", 1_000.0)
    name, address = f"anew-{is_led}", memory_proxy.address
    url = f"kafka://{address}/{name}"
    store: Any = open_store(url, {"node.id": "1"})
    other = open_store(url, {"node.id": "2"})
    await store.open()
    await store.apply([allow()], [], ORIGIN)
    reader = store._reader
    getmany, is_held, may_read = reader._consumer.getmany, asyncio.Event(), asyncio.Event()

    async def held(*arguments, **options):
        is_held.set()
        await may_read.wait()
        return await getmany(*arguments, **options)

    reader._consumer.getmany = held
    await asyncio.wait_for(is_held.wait(), WITHIN_S)
    await made_anew(address, name)
    if not is_led:
        # As of a client that asked for the leader while there was none, until its next fetch.
        cluster = reader._consumer._client.cluster
        monkeypatch.setattr(cluster, "leader_for_partition", lambda _: None)
    await other.open()
    await other.apply([deny()], [], ORIGIN)
    for number in range(5):
        await other.apply([allow(f"User:{number}")], [], ORIGIN)
    async with asyncio.timeout(WITHIN_S):
        while not reader._ended:
            await asyncio.sleep(0.01)
        may_read.set()
        while not store._problem:
            await asyncio.sleep(0.01)
    assert await loaded(store) == [allow()]
    with pytest.raises(StoreError, match="made anew"):
        await store._load()
    await store.close()
    await other.close()


async def test_of_a_topic_that_is_gone_nobody_hears_that_it_has_no_id(memory_proxy):
    store: Any = open_store(f"kafka://{memory_proxy.address}/asked", {"node.id": "1"})
    await store.open()
    client = store._reader._consumer._client
    node = client.get_random_node()
    assert await topic_id(client, node, "asked") == store._topic.topic_id
    with pytest.raises(UnknownTopicOrPartitionError):
        await topic_id(client, node, "gone")
    with pytest.raises(NodeNotReadyError):
        await topic_id(client, None, "asked")
    await store.close()
