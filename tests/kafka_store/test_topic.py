"""What the store makes of a topic that is not as it should be; of a real Kafka."""

import asyncio
import itertools

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from aclbroker.broker.stores import StoreError, StoreUnavailable, open_store
from aclbroker.broker.stores.kafka.messages import key_of
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN
from tests.stores.test_contract import loaded

_names = (f"odd-{number}" for number in itertools.count())
WITHIN = 30.0
SET = AlterConfigOpType.SET


class Topic:
    """A topic of its own, and the clients of somebody else."""

    def __init__(self, kafka):
        self.name = next(_names)
        self.address = kafka.listeners["PLAINTEXT"]
        self.admin = AdminClient({"bootstrap.servers": self.address})

    def store(self, node_id="1"):
        return open_store(f"kafka://{self.address}/{self.name}", {"node.id": node_id})

    def make(self, partitions=1, **config):
        config = {"cleanup.policy": "compact", **config}
        wanted = NewTopic(self.name, partitions, 1, config=config)
        [made] = self.admin.create_topics([wanted]).values()
        made.result(WITHIN)

    def delete(self):
        [gone] = self.admin.delete_topics([self.name]).values()
        gone.result(WITHIN)

    def delete_records_before(self, offset, policy):
        """Have it begin at an offset; Kafka does that to a topic with another policy alone."""
        for config in (policy, {"cleanup.policy": "compact"}):
            entries = [
                ConfigEntry(name, value, incremental_operation=SET)
                for name, value in config.items()
            ]
            resource = ConfigResource(
                ConfigResource.Type.TOPIC, self.name, incremental_configs=entries
            )
            [altered] = self.admin.incremental_alter_configs([resource]).values()
            altered.result(WITHIN)
            if config is policy:
                begin = TopicPartition(self.name, 0, offset)
                [deleted] = self.admin.delete_records([begin]).values()
                deleted.result(WITHIN)

    def write(self, key, value):
        producer = Producer({"bootstrap.servers": self.address})
        producer.produce(self.name, value, key)
        assert producer.flush(WITHIN) == 0


@pytest.fixture
def topic(kafka):
    return Topic(kafka)


async def until(is_so):
    async with asyncio.timeout(WITHIN):
        while not await is_so():
            await asyncio.sleep(0.05)


async def refuses(store):
    """Whether the store tells no position, since it cannot read on."""
    try:
        await store.position()
    except StoreUnavailable:
        return True
    return False


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"partitions": 2}, "has 2 partitions; there must be one"),
        ({"cleanup.policy": "delete"}, "cleanup.policy=delete; it must be compact"),
        ({"cleanup.policy": "compact,delete"}, "it must be compact"),
        ({"min.insync.replicas": "2"}, "lets nobody write"),
    ],
)
async def test_a_topic_that_would_lose_changes_is_refused(topic, made, why):
    topic.make(**made)
    with pytest.raises(StoreError, match=why):
        await topic.store().open()


async def test_a_message_that_cannot_be_read_keeps_the_store_shut_until_it_is_removed(topic):
    topic.make()
    topic.write(b"who knows", b"{}")
    store = topic.store()
    with pytest.raises(StoreError, match=r"offset 0 cannot be read.*b'who knows'"):
        await store.open()
    topic.write(b"who knows", None)
    await store.open()
    await store.apply([allow()], [], ORIGIN)
    topic.write(b"who knows", b"{}")
    await until(lambda: refuses(store))
    # What was read before goes on to hold.
    assert await loaded(store) == [allow()]
    topic.write(key_of(deny()), b"{}")
    topic.write(b"who knows", None)

    async def has_gone_on():
        return await loaded(store) == sorted([allow(), deny()])

    await until(has_gone_on)
    await store.close()


async def test_a_newer_format_is_refused_and_left_as_it_is(topic):
    topic.make()
    topic.write(b'["format"]', b'{"version":2}')
    for _ in range(2):
        with pytest.raises(StoreError, match="version 2 of the messages"):
            await topic.store().open()


async def test_a_topic_that_was_made_anew_is_not_taken_for_the_same(topic):
    store = topic.store()
    await store.open()
    await store.apply([allow(), deny()], [], ORIGIN)
    topic.delete()
    topic.make()
    await until(lambda: refuses(store))
    assert await loaded(store) == sorted([allow(), deny()])
    await store.close()


async def test_a_transaction_that_nobody_ends_is_ended_by_kafka(topic):
    """The broker that began it was killed; its producer ends it, if it comes back."""
    store = topic.store()
    await store.open()
    await store.apply([allow()], [], ORIGIN)
    hanging = Producer(
        {
            "bootstrap.servers": topic.address,
            "transactional.id": f"hanging-{topic.name}",
            "transaction.timeout.ms": 5_000,
        }
    )
    await asyncio.to_thread(hanging.init_transactions, WITHIN)
    hanging.begin_transaction()
    hanging.produce(topic.name, b"{}", key_of(allow("User:mallory")))
    assert hanging.flush(WITHIN) == 0
    # It waits for its own change to come back, which is behind the open one.
    await store.apply([deny()], [], ORIGIN)
    assert await loaded(store) == sorted([allow(), deny()])
    await store.close()
