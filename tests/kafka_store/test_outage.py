"""What a store in a topic leaves behind when the network is lost, of a Kafka in memory."""

import asyncio
import gc
from typing import Any

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.stores import StoreUnavailable, open_store
from aclbroker.broker.stores.kafka import writer
from aclbroker.broker.stores.kafka.connection import place_of
from aclbroker.broker.stores.kafka.freshness import Moment
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.store import StoreFenced
from tests.acl.examples import allow
from tests.stores.following import loaded
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


async def changed(store, acl):
    """Wait until a change is made, however often it is refused by who is impatient."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                return await store.apply([acl], [], ORIGIN)
            except StoreUnavailable:
                await asyncio.sleep(0.05)


async def test_a_change_that_is_refused_leaves_nothing_that_goes_on(network):
    complaints = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    store = await opened(network, "left")
    await changed(store, allow())
    for number in range(2):
        network.cut()
        with pytest.raises(StoreUnavailable):
            await store.apply([allow(f"User:{number}")], [], ORIGIN)
        network.mend()
        await changed(store, allow("User:late"))
    await store.close()
    async with asyncio.timeout(WITHIN_S):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.01)
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


def break_down(reader: Any, monkeypatch: pytest.MonkeyPatch) -> asyncio.Task[None]:
    """Let the task of aiokafka that fetches meet what it does not expect; return it."""
    fetcher = reader._consumer._fetcher

    def unexpected(_: object) -> None:
        raise ValueError("what aiokafka does not expect")

    monkeypatch.setattr(fetcher, "_get_actions_per_node", unexpected)
    fetching: asyncio.Task[None] = fetcher.error_future
    return fetching


async def test_a_store_whose_fetching_has_ended_is_read_anew(network, monkeypatch):
    store: Any = await opened(network, "ended")
    await changed(store, allow())
    fetching = break_down(store._reader, monkeypatch)
    async with asyncio.timeout(WITHIN_S):
        await asyncio.wait([fetching])
    # A fetch that had begun before brings the first one.
    acls = [allow(f"User:{number}") for number in range(3)]
    for acl in acls:
        await changed(store, acl)
    assert await loaded(store) == sorted([allow(), *acls])
    await store.close()


async def test_who_reads_everything_is_told_that_fetching_has_ended(network, monkeypatch):
    store: Any = await opened(network, "ended-at-once")
    await changed(store, allow())
    reader = Reader(place_of(f"kafka://{network.address}/ended-at-once", None))
    await reader.open()
    break_down(reader, monkeypatch)
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(StoreUnavailable, match="fetches no more"):
            async for _ in reader.everything():
                pass
    await reader.close()
    await store.close()


async def test_a_change_is_refused_at_once_when_nothing_was_heard_for_long(network, monkeypatch):
    store: Any = await opened(network, "silent")
    await changed(store, allow())
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


async def test_a_broker_whose_node_id_another_broker_has_is_told_so(network, monkeypatch):
    monkeypatch.setattr(writer, "_WITHIN_S", WITHIN_S)
    store: Any = await opened(network, "fenced")
    started = writer.Writer._started

    async def overtaken(self):
        """Return the producer after another writer has taken its transactional id."""
        producer = await started(self)
        if self is store._writer:
            other = writer.Writer(store._place, self._id)
            await other.begin()
            await other.close()
        return producer

    monkeypatch.setattr(writer.Writer, "_started", overtaken)
    with pytest.raises(StoreFenced, match=r"different values of node\.id") as refused:
        await store.apply([allow()], [], ORIGIN)
    assert "this broker's node.id" in refused.value.client_text
    monkeypatch.undo()
    await store.close()


async def unknown(_reader):
    """Return no settings, as for a user that may not describe the topic."""


@pytest.mark.parametrize(
    ("boot_s", "wall_s", "loses_connections", "settings"),
    [
        pytest.param(700, -86_400, False, None, id="suspended, and its clock set back"),
        pytest.param(0, 86_400, True, None, id="paused, and its clock set after that"),
        pytest.param(11, 0, False, unknown, id="stopped, and the retention is not known"),
    ],
)
async def test_a_machine_that_slept_reads_the_topic_anew_before_it_is_ready(
    network, monkeypatch, boot_s, wall_s, loses_connections, settings
):
    store = await opened(network, f"slept-{boot_s}")
    if settings is not None:
        monkeypatch.setattr(Reader, "settings", settings)
    await changed(store, allow())
    now = Moment.now

    def later():
        found = now()
        return Moment(found.boot_s + boot_s, found.wall_ms + wall_s * 1000)

    with capture_logs() as logs:
        if settings is not None:
            monkeypatch.setattr("aclbroker.broker.stores.kafka.health._LOOK_S", 0.0)
            async with asyncio.timeout(WITHIN_S):
                while not any("no right to describe" in each["event"] for each in logs):
                    await asyncio.sleep(0.05)
        monkeypatch.setattr(Moment, "now", later)
        if loses_connections:
            network.drop()
        async with asyncio.timeout(WITHIN_S):
            while not any(each["event"] == "topic for ACLs read again" for each in logs):
                # The store reports no position until it has read the whole topic again.
                with pytest.raises(StoreUnavailable):
                    await store.position()
                await asyncio.sleep(0.01)
            while not await has_position(store):
                await asyncio.sleep(0.05)
    assert any("may have dropped revokes" in each.get("reason", "") for each in logs)
    assert await loaded(store) == [allow()]
    await store.close()


async def has_position(store):
    try:
        await store.position()
    except StoreUnavailable:
        return False
    return True
