"""Who closes a store, or is cancelled while it disconnects, of a real Kafka."""

import asyncio
import itertools
from typing import Any

import pytest
from confluent_kafka import Producer

from aclbroker.broker.stores import StoreUnavailable, open_store
from aclbroker.broker.stores.kafka.connection import place_of
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.writer import Writer

_names = (f"closing-{number}" for number in itertools.count())
WITHIN_S = 30.0
TURNS = 16
"""More than it takes to disconnect."""


@pytest.fixture
async def url(kafka):
    """A topic that is there."""
    address = f"kafka://{kafka.listeners['PLAINTEXT']}/{next(_names)}"
    store = open_store(address, {"node.id": "0"})
    await store.open()
    await store.close()
    return address


async def reading(place):
    reader = Reader(place)
    await reader.open()
    async for _ in reader.everything():
        pass
    return reader


async def writing(place):
    writer = Writer(place, "closing")
    await writer.begin()
    return writer


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.thorough
@pytest.mark.parametrize("connected", [reading, writing])
async def test_who_is_cancelled_while_it_disconnects_is_told_and_leaves_nothing(url, connected):
    place = place_of(url, None)
    lost = []
    # Before the first turn it has not begun.
    for count in itertools.count(1):
        closing = asyncio.create_task((await connected(place)).close())
        await turns(count)
        if not closing.cancel():
            break
        await asyncio.wait([closing])
        if not closing.cancelled():
            lost.append(count)
    assert count > 1
    assert lost == []
    async with asyncio.timeout(WITHIN_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)


@pytest.mark.thorough
async def test_a_store_closes_at_each_moment_of_being_read_anew(url):
    """It has a new reader then, and the one before disconnects."""
    stores: list[Any] = [open_store(url, {"node.id": str(each)}) for each in range(TURNS)]
    await asyncio.gather(*(store.open() for store in stores))
    before = [store._reader for store in stores]
    address, _, topic = url.removeprefix("kafka://").partition("/")
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, b"{}", b"who knows")
    assert producer.flush(WITHIN_S) == 0
    await asyncio.gather(*map(until_refused, stores))
    producer.produce(topic, None, b"who knows")
    assert producer.flush(WITHIN_S) == 0

    async def close(count):
        while stores[count]._reader is before[count]:
            await asyncio.sleep(0)
        await turns(count)
        await stores[count].close()

    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*map(close, range(TURNS)))


async def until_refused(store):
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await store.position()
            except StoreUnavailable:
                return
            await asyncio.sleep(0.05)
