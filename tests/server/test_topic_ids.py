"""Declared topics have random ids that outlive a restart."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from aclbroker.broker.server.topic_ids import KIND, load_topic_ids
from aclbroker.broker.stores import StoreError
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest
from aclbroker.protocol.primitives import ZERO_UUID
from tests.conftest import StartBroker
from tests.server.test_authorizers import EXAMPLES
from tests.stores.origins import ORIGIN
from tests.support.broker import Broker
from tests.support.client import Client

CATALOG = {"aclbroker.catalog.topics": "orders:1,payments:2"}


def topic_ids(broker: Broker) -> dict[str, bytes]:
    """The id of each topic, by name."""
    with Client(broker.listeners["PLAINTEXT"]) as client:
        answer = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    return {topic.name: topic.topic_id for topic in answer.topics}


def cluster_id(broker: Broker) -> str:
    """The cluster's id as the broker logs it."""
    [ready] = [event for event in broker.events() if event["event"] == "ready"]
    return str(ready["cluster_id"])


@pytest.mark.broker_process
@pytest.mark.parametrize("authorizer", ["owner_authorizer:OwnerAuthorizer", None])
def test_a_topic_keeps_its_id_over_a_restart(
    start_broker: StartBroker, monkeypatch: pytest.MonkeyPatch, authorizer: str | None
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    chosen = {"authorizer.class.name": authorizer} if authorizer else {}
    broker = start_broker(CATALOG | chosen)
    before = topic_ids(broker)
    broker.restart()
    assert topic_ids(broker) == before
    assert len(set(before.values()) - {ZERO_UUID}) == 2


def test_brokers_of_one_cluster_id_and_the_same_topics_have_other_ids(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    empty = start_broker()
    empty.terminate()
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(empty.store, other)
    brokers = start_broker(CATALOG), start_broker(CATALOG, other)
    first, second = map(topic_ids, brokers)
    assert len(set(map(cluster_id, brokers))) == 1
    assert not set(first.values()) & set(second.values())
    assert {uuid.UUID(bytes=each).version for each in (*first.values(), *second.values())} == {4}


@pytest.mark.parametrize(
    "without_a_store", [{"aclbroker.store": "memory:"}, {"authorizer.class.name": ""}]
)
def test_without_a_store_ids_are_new_at_each_start(
    start_broker: StartBroker, without_a_store: dict[str, str]
) -> None:
    broker = start_broker(CATALOG | without_a_store)
    before = topic_ids(broker)
    broker.restart()
    after = topic_ids(broker)
    assert after.keys() == {"orders", "payments"}
    assert not set(after.values()) & set(before.values())


async def test_a_topic_that_is_declared_anew_has_another_id(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "acl.db")
    await store.open()
    try:
        first = await load_topic_ids(store, {"orders", "payments"})
        assert await load_topic_ids(store, {"payments"}) == {"payments": first["payments"]}
        again = await load_topic_ids(store, {"orders", "payments"})
    finally:
        await store.close()
    assert again["payments"] == first["payments"]
    assert again["orders"] != first["orders"]


@pytest.mark.parametrize("text", ["", "AAAA", "\xe9" * 22, "A" * 21, "?"])
async def test_an_id_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    store = SqliteStore(tmp_path / "acl.db")
    await store.open()
    try:
        await store.apply_records(KIND, {"orders": text}, [], ORIGIN)
        with pytest.raises(StoreError, match=r"as the id of the topic orders.*restore the store"):
            await load_topic_ids(store, {"orders"})
    finally:
        await store.close()
