"""Messages that others have written to the topic, of a Kafka in memory."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from aclbroker.broker.stores import StoreError, StoreUnavailable, open_store
from aclbroker.broker.stores.kafka.messages import key_of
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN
from tests.stores.test_contract import loaded

WITHIN_S = 30.0
UNREADABLE = b'["acl","TOPIC","secret","LITERAL","User:m","*","SING","DENY"]'
BEHIND = allow("User:m", name="secret")

_names = (f"others-{number}" for number in itertools.count())


class Shared:
    """A topic, a store in it, and somebody else who writes there, too."""

    def __init__(self, address, properties):
        self._url = f"kafka://{address}/{(name := next(_names))}"
        self._topic = name
        self._properties = {"node.id": "1", **properties}
        self.store: Any = self.made()
        self._producer = AIOKafkaProducer(bootstrap_servers=address)

    def made(self):
        return open_store(self._url, self._properties)

    async def __aenter__(self):
        await self.store.open()
        await self._producer.start()
        return self

    async def __aexit__(self, *_):
        await self._producer.stop()
        await self.store.close()

    async def write(self, *messages):
        """Write messages together: they are read together, too."""
        batch = self._producer.create_batch()
        for key, value, headers in messages:
            batch.append(timestamp=None, key=key, value=value, headers=headers)
        await (await self._producer.send_batch(batch, self._topic, partition=0))

    async def until_refused(self):
        async with asyncio.timeout(WITHIN_S):
            while not self.store._problem:
                await asyncio.sleep(0.01)


@pytest.fixture
def shared(memory_proxy):
    @asynccontextmanager
    async def made(properties=None):
        async with Shared(memory_proxy.address, properties or {}) as found:
            yield found

    return made


async def test_nothing_behind_a_message_that_cannot_be_read_takes_effect(shared):
    async with shared() as others:
        await others.store.apply([allow()], [], ORIGIN)
        await others.write((UNREADABLE, b"{}", []), (key_of(BEHIND), b"{}", []))
        await others.until_refused()
        assert await loaded(others.store) == [allow()]


async def test_no_snapshot_is_of_what_comes_behind_a_message_that_cannot_be_read(shared, tmp_path):
    directory = tmp_path / "snapshots"
    async with shared({"aclbroker.store.snapshot.dir": str(directory)}) as others:
        store = others.store
        await store.apply([allow()], [], ORIGIN)
        await store._snapshots.close()

        async def write_always():
            while not store._problem:
                await store._snapshot()
                await store._snapshots.close()

        writing = asyncio.create_task(write_always())
        await others.write((UNREADABLE, b"{}", []), *[(key_of(BEHIND), b"{}", [])] * 3)
        await others.until_refused()
        await writing
        await store.close()
        with pytest.raises(StoreError, match=r"cannot be read.*SING"):
            await others.made().open()


@pytest.mark.parametrize("header", [("transaction", b"x"), ("origin", None)])
async def test_what_is_removed_with_an_odd_header_is_removed(shared, header):
    async with shared() as others:
        await others.store.apply([allow()], [], ORIGIN)
        await others.write((key_of(allow()), None, [header]))
        async with asyncio.timeout(WITHIN_S):
            while await loaded(others.store):
                await asyncio.sleep(0.01)
        assert not others.store._problem


async def test_another_key_of_an_acl_is_refused_and_its_removal_removes_nothing_else(shared):
    async with shared() as others:
        await others.store.apply([allow()], [], ORIGIN)
        spaced = key_of(allow()).replace(b",", b", ")
        await others.write((spaced, b"{}", []))
        await others.until_refused()
        await others.write((spaced, None, []))
        async with asyncio.timeout(WITHIN_S):
            while others.store._problem:
                await asyncio.sleep(0.01)
        assert await loaded(others.store) == [allow()]


async def test_nobody_waits_for_a_topic_that_is_not_read_on(shared):
    async with shared() as others:
        store = others.store
        waiting = asyncio.create_task(store._has_read(store._offset + 1000))
        await others.write((UNREADABLE, b"{}", []))
        with pytest.raises(StoreUnavailable, match="SING"):
            await asyncio.wait_for(waiting, WITHIN_S)
        for change in (store.apply([allow()], [], ORIGIN), store.apply([], [deny()], ORIGIN)):
            with pytest.raises(StoreUnavailable, match="SING"):
                await change
