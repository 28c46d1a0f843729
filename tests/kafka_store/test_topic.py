"""What the store makes of a topic that is not as it should be; of a real Kafka."""

import asyncio
import itertools

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
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
from tests.stores.shared_copies import store as command
from tests.stores.test_contract import loaded
from tests.support.process import wait_for

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
        return open_store(self.url, {"node.id": node_id})

    def make(self, partitions=1, **config):
        config = {"cleanup.policy": "compact", **config}
        wanted = NewTopic(self.name, partitions, 1, config=config)
        [made] = self.admin.create_topics([wanted]).values()
        made.result(WITHIN)

    def delete(self):
        [gone] = self.admin.delete_topics([self.name]).values()
        gone.result(WITHIN)

    @property
    def url(self):
        return f"kafka://{self.address}/{self.name}"

    def configure(self, **config):
        """Change settings of the topic. Their names have underscores instead of dots."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=SET)
            for name, value in config.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name, incremental_configs=entries)
        [altered] = self.admin.incremental_alter_configs([resource]).values()
        altered.result(WITHIN)

    def delete_records_before(self, offset, policy):
        """Have it begin at an offset; Kafka does that to a topic with another policy alone."""
        self.configure(**{name.replace(".", "_"): value for name, value in policy.items()})
        begin = TopicPartition(self.name, 0, offset)

        def deleted():
            [result] = self.admin.delete_records([begin]).values()
            try:
                result.result(WITHIN)
            except KafkaException as error:
                # The broker applies the new policy a moment after the controller has accepted it.
                if error.args[0].code() != KafkaError.POLICY_VIOLATION:
                    raise
                return None
            return True

        wait_for("the deletion", deleted, WITHIN)
        self.configure(cleanup_policy="compact")

    def accept(self):
        """Confirm that brokers may use the topic as it is."""
        assert command("accept", "--store", self.url, "--yes") == 0

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


def why_refused(store):
    """Return a function that tells whether the store is unavailable for a given reason."""

    async def refuses_for(reason):
        try:
            await store.position()
        except StoreUnavailable as error:
            return reason in str(error)
        return False

    return refuses_for


async def test_a_policy_that_is_changed_while_brokers_run_is_told_until_it_is_set_back(
    topic, looks_often
):
    store = topic.store()
    await store.open()
    await store.apply([allow()], [], ORIGIN)
    refuses_for = why_refused(store)
    topic.configure(cleanup_policy="compact,delete")
    await until(lambda: refuses_for("cleanup.policy=compact,delete; it must be compact"))
    assert await refuses_for("kafka-configs.sh --alter --topic")
    with pytest.raises(StoreUnavailable):
        await store.apply([deny()], [], ORIGIN)
    topic.configure(cleanup_policy="compact")

    async def is_well():
        return not await refuses(store)

    await until(is_well)
    await store.apply([deny()], [], ORIGIN)
    assert await loaded(store) == sorted([allow(), deny()])
    await store.close()


async def test_a_beginning_that_was_deleted_is_damage_until_an_operator_confirms_it(
    topic, looks_often, tmp_path, capsys
):
    store = topic.store()
    await store.open()
    await store.apply_records("drill", {"zoe": "1"}, [], ORIGIN)
    end = await store.apply([allow(), deny()], [], ORIGIN)
    kept = await store.apply([allow("User:kept")], [], ORIGIN)
    assert kept > end
    copy = tmp_path / "copy.db"
    assert await asyncio.to_thread(command, "backup", str(copy), "--store", topic.url) == 0
    await asyncio.to_thread(topic.delete_records_before, end, {"cleanup.policy": "delete"})
    refuses_for = why_refused(store)
    await until(lambda: refuses_for(f"the messages before offset {end} were deleted"))
    # A running broker keeps the ACLs that it has read, and reads on.
    assert await loaded(store) == sorted([allow(), deny(), allow("User:kept")])
    topic.write(key_of(allow("User:kept")), None)

    async def has_read_on():
        return await loaded(store) == sorted([allow(), deny()])

    await until(has_read_on)
    with pytest.raises(StoreError, match="aclbroker store accept"):
        await topic.store("2").open()
    capsys.readouterr()
    assert await asyncio.to_thread(command, "check", "--store", topic.url) == 1
    told = capsys.readouterr().out
    assert "It is damaged:" in told
    assert f"the messages before offset {end} were deleted" in told
    assert await asyncio.to_thread(command, "accept", "--store", topic.url) == 1
    assert "nothing was confirmed" in capsys.readouterr().err
    restore = ("restore", str(copy), "--store", topic.url, "--yes")
    assert await asyncio.to_thread(command, *restore) == 0
    assert await asyncio.to_thread(command, "check", "--store", topic.url) == 1
    await asyncio.to_thread(topic.accept)
    assert await asyncio.to_thread(command, "check", "--store", topic.url) == 0
    assert await asyncio.to_thread(command, "accept", "--store", topic.url) == 0
    assert "nothing to confirm" in capsys.readouterr().out
    everything = sorted([allow(), deny(), allow("User:kept")])

    async def is_used():
        return not await refuses(store) and await loaded(store) == everything

    await until(is_used)
    assert await store.load_records("drill") == {"zoe": "1"}
    other = topic.store("2")
    await other.open()
    assert await loaded(other) == everything
    # The confirmation of one loss does not cover a later one.
    await asyncio.to_thread(topic.delete_records_before, kept + 1, {"cleanup.policy": "delete"})
    await until(lambda: refuses_for(f"the messages before offset {kept + 1} were deleted"))
    await other.close()
    await store.close()
