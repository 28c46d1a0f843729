"""A Kafka of its own behind a network that is cut, and whose files are damaged."""

import asyncio
import gc
import itertools
import logging
import random
import secrets
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from aclbroker.broker.stores import AclStore, StoreError, StoreUnavailable, open_store
from tests.acl.examples import allow, deny
from tests.stores.following import WITHIN_S, Followed, loaded
from tests.stores.origins import ORIGIN
from tests.stores.shared_copies import store as command

# aiokafka forgets a connection that it gives up while it begins; it is closed when it is freed.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

_names = (f"cut-{number}" for number in itertools.count())
_nodes = itertools.count(1)
_LENGTH = 8
"""Where a batch has its length, of four bytes, behind its offset."""
OPENED_WITHIN_S = 3.0
MAYBE = [allow("User:maybe"), deny("User:maybe", name="secret")]


@asynccontextmanager
async def opened(address: str, topic: str) -> AsyncIterator[AclStore]:
    store = open_store(f"kafka://{address}/{topic}", {"node.id": str(next(_nodes))})
    await store.open()
    try:
        yield store
    finally:
        await store.close()
        gc.collect()


async def refuses(store, monkeypatch) -> None:
    """See that changes are refused, by a store that waits for a tenth of the time."""
    with monkeypatch.context() as impatient:
        impatient.setattr("aclbroker.broker.stores.kafka.writer._WITHIN_S", 2.0)
        impatient.setattr("aclbroker.broker.stores.kafka.store._PATIENCE_S", 2.0)
        with pytest.raises(StoreUnavailable):
            await store.apply(MAYBE, [], ORIGIN)
        with pytest.raises(StoreUnavailable):
            await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)


async def applied(store, acl) -> None:
    """Wait until a change is made."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await store.apply([acl], [], ORIGIN)
            except StoreUnavailable:
                await asyncio.sleep(0.05)
            else:
                return


def has(followed: Followed, acl) -> bool:
    return acl in followed.acls


@pytest.mark.parametrize("how", [pytest.param("cut", marks=pytest.mark.thorough), "drop"])
async def test_a_lost_network_lets_reads_go_on_refuses_changes_and_loses_nothing(
    kafka_behind, monkeypatch, how
):
    kafka, proxy = kafka_behind
    topic = next(_names)
    async with (
        opened(proxy.address, topic) as store,
        opened(kafka.listeners["PLAINTEXT"], topic) as other,
        Followed(store) as followed,
    ):
        await store.apply([allow()], [], ORIGIN)
        proxy.cut()
        if how == "drop":
            proxy.drop()
        await refuses(store, monkeypatch)
        await other.apply([deny()], [allow()], ORIGIN)
        assert await loaded(store) == [allow()]
        proxy.mend()
        if how == "drop":
            proxy.drop()
        await followed.until(partial(has, followed, deny()))
        assert allow() not in followed.acls
        await applied(store, allow("User:late"))
        # What was refused may have been made all the same; then it is all there, for everybody.
        assert len(followed.acls.intersection(MAYBE)) in (0, 2)
        await other.position()
        assert await loaded(other) == await loaded(store)
        assert {deny(), allow("User:late")} <= set(await loaded(other))


class Failure(logging.Handler):
    """Notes that aiokafka could not ask for messages; it waits then, to try again."""

    def __init__(self) -> None:
        super().__init__()
        self.came = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Failed fetch messages"):
            self.came.set()


async def test_a_store_that_has_just_lost_its_connections_closes_and_leaves_nothing(kafka_behind):
    _, proxy = kafka_behind
    failure, fetcher = Failure(), logging.getLogger("aiokafka.consumer.fetcher")
    fetcher.addHandler(failure)
    try:
        async with opened(proxy.address, next(_names)):
            async with asyncio.timeout(WITHIN_S):
                while not failure.came.is_set():
                    # No connection fails on which aiokafka does not fetch yet.
                    proxy.drop()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(failure.came.wait(), 0.5)
    finally:
        fetcher.removeHandler(failure)
    async with asyncio.timeout(WITHIN_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)


async def opens(url: str):
    """What a store has that is started; None where it is not served."""
    store = open_store(url, {"node.id": str(next(_nodes))})
    try:
        async with asyncio.timeout(OPENED_WITHIN_S):
            await store.open()
        return await loaded(store)
    except (StoreError, TimeoutError):
        return None
    finally:
        await store.close()
        gc.collect()


def noticed(log: bytes) -> list[int]:
    """The bytes of a log that Kafka's checksums are about.

    The offset of a batch is not: with another one it is passed over by clients of Kafka, or the
    next one is, and nobody is told.
    """
    places: list[int] = []
    begin = 0
    while begin < len(log):
        [length] = struct.unpack_from(">i", log, begin + _LENGTH)
        end = begin + _LENGTH + 4 + length
        places += range(begin + _LENGTH, end)
        begin = end
    return places


async def test_flipped_bytes_of_the_topic_are_never_served_as_if_it_were_whole(
    kafka_behind, capsys, every_case
):
    kafka, _ = kafka_behind
    topic = next(_names)
    url = f"kafka://{kafka.listeners['PLAINTEXT']}/{topic}"
    acls = [*(allow(f"User:{number}") for number in range(5)), deny()]
    async with opened(kafka.listeners["PLAINTEXT"], topic) as running:
        for acl in acls:
            await running.apply([acl], [], ORIGIN)
        log = kafka.directory / "data" / f"{topic}-0" / f"{0:020}.log"
        whole = log.read_bytes()
        seed = secrets.randbits(32)
        chance = random.Random(seed)
        refused = 0
        for place in chance.sample(noticed(whole), 20 if every_case else 5):
            bit = 1 << chance.randrange(8)
            with log.open("r+b") as file:
                file.seek(place)
                file.write(bytes([whole[place] ^ bit]))
            found = await opens(url)
            refused += found is None
            assert found in (None, sorted(acls)), f"byte {place}, Random({seed})"
            with log.open("r+b") as file:
                file.seek(place)
                file.write(whole[place : place + 1])
        assert refused
        # A store that is open goes on with what it has read.
        assert await loaded(running) == sorted(acls)
    with log.open("r+b") as file:
        file.seek(len(whole) // 2)
        file.write(b"garbage!" * 8)
    assert await asyncio.to_thread(command, "check", "--store", url) == 1
    assert url in capsys.readouterr().err
    log.write_bytes(whole)
    assert await opens(url) == sorted(acls)
