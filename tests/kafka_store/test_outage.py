"""What a store in a topic leaves behind when the network is lost, of a Kafka in memory."""

import asyncio
import gc
from typing import Any

import pytest

from aclbroker.broker.stores import StoreUnavailable, open_store
from aclbroker.broker.stores.kafka import writer
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

# aiokafka forgets a connection that it gives up while it begins; it is closed when it is freed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

WITHIN_S = 30.0
MANY = [allow(f"User:{number}", name=f"topic-{number}") for number in range(3000)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(writer, "_WITHIN_S", 1.0)
    monkeypatch.setattr(writer, "_STOP_S", 0.5)
    monkeypatch.setattr("aclbroker.broker.stores.kafka.store._PATIENCE_S", 1.0)


@pytest.fixture
def network(memory_proxy):
    yield memory_proxy
    memory_proxy.mend()
    memory_proxy.drop()


async def opened(network, topic):
    store = open_store(f"kafka://{network.address}/{topic}", {"node.id": "1"})
    await store.open()
    return store


async def test_a_large_change_that_is_cut_off_is_refused_and_the_store_closes(network, monkeypatch):
    store = await opened(network, "large")
    queued, batches = writer.Writer._queued, 0

    async def cut_at_the_third(*arguments):
        nonlocal batches
        batches += 1
        if batches == 3:
            network.cut()
        return await queued(*arguments)

    monkeypatch.setattr(writer.Writer, "_queued", cut_at_the_third)
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailable):
            await store.apply(MANY, [], ORIGIN)
        await store.close()


async def changed_again(store):
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                return await store.apply([allow("User:late")], [], ORIGIN)
            except StoreUnavailable:
                continue


async def test_a_change_that_is_refused_leaves_nothing_that_goes_on(network):
    complaints = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    store = await opened(network, "left")
    await store.apply([allow()], [], ORIGIN)
    for number in range(2):
        network.cut()
        with pytest.raises(StoreUnavailable):
            await store.apply([allow(f"User:{number}")], [], ORIGIN)
        network.mend()
        await changed_again(store)
    await store.close()
    async with asyncio.timeout(WITHIN_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_a_change_is_refused_at_once_when_nothing_was_heard_for_long(network, monkeypatch):
    store: Any = await opened(network, "silent")
    await store.apply([allow()], [], ORIGIN)
    monkeypatch.setattr("aclbroker.broker.stores.kafka.store._SILENT_S", 2.0)
    network.cut()
    async with asyncio.timeout(WITHIN_S):
        while store.silent_s < 2.1:
            await asyncio.sleep(0.1)

    async def never(*_):
        await asyncio.Event().wait()

    store._writer.write = store._reader.end = never
    for change in (store.apply([allow("User:bob")], [], ORIGIN), store.position()):
        with pytest.raises(StoreUnavailable, match="no answer for"):
            await change
    await store.close()


async def test_a_store_that_is_closed_while_it_is_read_anew_leaves_no_reader(network):
    store: Any = await opened(network, "anew")
    before, is_closing = store._reader, asyncio.Event()
    close = before.close

    async def never():
        is_closing.set()
        await asyncio.Event().wait()

    before.close = never
    loading = asyncio.create_task(store._load())
    await asyncio.wait_for(is_closing.wait(), WITHIN_S)
    loading.cancel()
    await asyncio.wait([loading])
    await store.close()
    await close()
    async with asyncio.timeout(WITHIN_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)
