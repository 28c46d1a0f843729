"""Brokers that lost contact with Kafka until compaction had dropped a revoke."""

import asyncio
import signal
import time
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.client.acls import create_acls
from aclbroker.broker.client.scram_users import add_user
from aclbroker.broker.stores import open_store
from aclbroker.broker.stores.kafka import snapshots
from aclbroker.broker.stores.kafka.messages import key_of
from aclbroker.broker.stores.kafka.snapshot import write_snapshot
from tests.acl.examples import allow
from tests.kafka_store.test_brokers import WITHIN, logs_in, sees_orders, session
from tests.server.test_status import STATUS, page
from tests.stores.following import Followed, loaded
from tests.stores.origins import ORIGIN
from tests.support.broker import Broker

REVOKED = allow("User:alice", name="orders")
KEPT = allow("User:bob", name="orders")
RETENTION_MS = 12_000
FORGOTTEN_WITHIN_S = 90.0
TOPIC = "forgotten"


def make(address):
    """Create a topic that Kafka compacts at once, and that keeps removals for seconds."""
    config = {
        "cleanup.policy": "compact",
        "delete.retention.ms": str(RETENTION_MS),
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
    }
    admin = AdminClient({"bootstrap.servers": address})
    [made] = admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)]).values()
    made.result(WITHIN)


def keys_of(address):
    """Return the keys of all messages in the topic, including removals."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "looks"})
    try:
        place = TopicPartition(TOPIC, 0)
        begin, end = consumer.get_watermark_offsets(place, WITHIN)
        consumer.assign([TopicPartition(TOPIC, 0, begin)])
        found = set()
        while consumer.position([place])[0].offset < end:
            found |= {message.key() for message in consumer.consume(1000, 0.2)}
        return found
    finally:
        consumer.close()


async def forget(store, address):
    """Wait until Kafka has dropped the revoked ACL, and the message that removed it."""
    number = 0
    async with asyncio.timeout(FORGOTTEN_WITHIN_S):
        while key_of(REVOKED) in await asyncio.to_thread(keys_of, address):
            number += 1
            await store.apply_records("other", {"filler": str(number)}, [], ORIGIN)
            await asyncio.sleep(0.3)


def broker(directory, address, node_id):
    """Return a broker that denies all if revokes may be missing, or after a silent minute."""
    directory.mkdir()
    return Broker(
        directory,
        {
            "aclbroker.store": f"kafka://{address}/{TOPIC}",
            "node.id": str(node_id),
            "aclbroker.store.max.lag.ms": "60000",
            "aclbroker.store.stale": "deny",
            "aclbroker.catalog.topics": "orders:1",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            **STATUS,
        },
    )


def is_ready(one):
    return page(one, "/readyz")[0] == 200


def check_until_ready(brokers, always):
    """Poll brokers until all are ready, and assert that a ready broker allows nothing revoked.

    The broker ``always`` must deny the revoked rights before it is ready, too.
    """
    deadline = time.monotonic() + FORGOTTEN_WITHIN_S
    ready: set[Broker] = set()
    while len(ready) < len(brokers):
        assert time.monotonic() < deadline, [page(each, "/readyz") for each in brokers]
        for each in brokers:
            was_ready = is_ready(each)
            if was_ready or each is always:
                assert not sees_orders(each, "alice")
            if was_ready:
                assert not logs_in(each, "zoe-secret")
                ready.add(each)


@pytest.mark.thorough
async def test_nothing_revoked_is_allowed_by_a_broker_that_was_away_longer_than_the_topic_keeps_it(
    kafka_behind, monkeypatch, tmp_path
):
    kafka, proxy = kafka_behind
    address = kafka.listeners["PLAINTEXT"]
    make(address)
    monkeypatch.setattr(snapshots, "_LEAST_S", 0.0)
    monkeypatch.setattr(snapshots, "_MANY", 1)
    written = []

    def noted(path, about, bindings, records):
        written.append((list(bindings), dict(records)))
        write_snapshot(path, about, bindings, records)

    monkeypatch.setattr("aclbroker.broker.stores.kafka.snapshots.write_snapshot", noted)
    settings = {"node.id": "1", "aclbroker.store.snapshot.dir": str(tmp_path / "snapshots")}
    cut = open_store(f"kafka://{proxy.address}/{TOPIC}", settings)
    writer = open_store(f"kafka://{address}/{TOPIC}", {"node.id": "2"})
    offline = broker(tmp_path / "offline", proxy.address, 3)
    stopped = broker(tmp_path / "stopped", address, 4)
    with ExitStack() as stack:
        for each in (offline, stopped):
            await asyncio.to_thread(each.start)
            stack.callback(each.kill)
        await cut.open()
        await writer.open()
        with session(stopped) as client:
            create_acls(client, [REVOKED, KEPT])
            add_user(client, "zoe", "zoe-secret", ScramMechanism.SCRAM_SHA_256, 4096)
        await writer.apply_records("token", {"one": "value"}, [], ORIGIN)
        await cut.position()
        assert await loaded(cut) == sorted([REVOKED, KEPT])
        assert all(sees_orders(each, "alice") for each in (offline, stopped))
        assert all(logs_in(each, "zoe-secret") for each in (offline, stopped))
        async with Followed(cut) as followed:
            proxy.cut()
            stopped.process.send_signal(signal.SIGSTOP)
            await writer.apply([], [REVOKED], ORIGIN)
            await writer.apply_records("scram", {}, ["SCRAM-SHA-256:zoe"], ORIGIN)
            await writer.apply_records("token", {}, ["one"], ORIGIN)
            await forget(writer, address)
            assert not sees_orders(offline, "alice")
            written.clear()
            stopped.process.send_signal(signal.SIGCONT)
            proxy.mend()
            await asyncio.to_thread(check_until_ready, (offline, stopped), offline)
            await followed.until(lambda: followed.acls == {KEPT})
            assert await loaded(cut) == [KEPT]
            assert await cut.load_records("scram") == await cut.load_records("token") == {}
        await cut.close()
        await writer.close()
    assert written
    for acls, records in written:
        assert acls == [KEPT]
        assert not [kind for kind, _ in records if kind in ("scram", "token")]
