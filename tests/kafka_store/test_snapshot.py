"""A start from a snapshot: it has what the topic has, or it is not used."""

import asyncio
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from aclbroker.broker.stores import StoreError, open_store
from aclbroker.broker.stores.kafka import snapshot as snapshot_file
from aclbroker.broker.stores.kafka import snapshots
from aclbroker.broker.stores.kafka.freshness import Moment
from aclbroker.broker.stores.kafka.messages import key_of
from aclbroker.broker.stores.kafka.topic import Topic
from tests.acl.examples import allow, deny
from tests.kafka_store.test_topic import WITHIN, until
from tests.kafka_store.test_topic import Topic as OwnTopic
from tests.stores.origins import ORIGIN
from tests.stores.test_contract import loaded

pytestmark = pytest.mark.usefixtures("looks_often")
USED = "topic for ACLs read from a snapshot on"


class Snapshots:
    """A topic, and a directory with its snapshots."""

    def __init__(self, kafka, directory: Path):
        self.topic = OwnTopic(kafka)
        self.directory = directory / "snapshots"

    def store(self):
        properties = {"node.id": "1", "aclbroker.store.snapshot.dir": str(self.directory)}
        return open_store(f"kafka://{self.topic.address}/{self.topic.name}", properties)

    @property
    def file(self) -> Path:
        [found] = self.directory.glob("*.snapshot")
        return found

    async def started(self):
        """What a start has, whether it used the snapshot, and what it warned of."""
        store = self.store()
        with capture_logs() as logs:
            await store.open()
            found = await loaded(store), await store.load_records("scram")
            await store.close()
        told = [each for each in logs if "snapshot" in each["event"]]
        is_used = any(each["event"] == USED for each in told)
        return *found, is_used, [each["event"] for each in told if each["log_level"] == "warning"]

    async def write(self, changes):
        """Make changes through a store, and wait for its snapshot."""
        store = self.store()
        await store.open()
        for added, removed in changes:
            await store.apply(added, removed, ORIGIN)
        await store.apply_records("scram", {"zoe": "secret"}, (), ORIGIN)

        async def is_written():
            return any(self.directory.glob("*.snapshot"))

        await until(is_written)
        await store.close()


@pytest.fixture
def made(kafka, tmp_path):
    return Snapshots(kafka, tmp_path)


async def test_a_start_has_what_the_snapshot_has_and_what_came_since(made):
    await made.write([([allow(), deny(), allow("User:bob")], [])])
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    other = open_store(f"kafka://{made.topic.address}/{made.topic.name}", {"node.id": "2"})
    await other.open()
    await other.apply([allow("User:carol")], [deny()], ORIGIN)
    await other.close()
    acls, records, is_used, warnings = await made.started()
    assert acls == sorted([allow(), allow("User:bob"), allow("User:carol")])
    assert (records, is_used, warnings) == ({"zoe": "secret"}, True, [])


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"User:alice")
    content[at + 5] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _row_removed(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM acl WHERE permission = 'DENY'")


def _ahead(path: Path) -> None:
    """It says that it has more than it has."""
    with sqlite3.connect(path) as database:
        database.execute("UPDATE about SET line = replace(line, ', ', ',9')")


@pytest.mark.parametrize("damage", [_flipped, _cut, _emptied, _row_removed, _ahead])
async def test_a_damaged_snapshot_is_thrown_away(made, damage):
    await made.write([([allow(), deny()], [])])
    path = made.file
    damage(path)
    acls, records, is_used, warnings = await made.started()
    assert acls == sorted([allow(), deny()])
    assert (records, is_used) == ({"zoe": "secret"}, False)
    assert warnings == [
        "snapshot of the topic is damaged: it is thrown away, and the topic read whole"
    ]


async def test_a_topic_that_was_made_anew_since_the_snapshot_is_used_when_that_is_removed(made):
    await made.write([([allow()], [])])
    made.topic.delete()
    made.topic.make()
    with pytest.raises(StoreError, match="deleted and made anew") as refused:
        await made.started()
    assert f"remove the snapshot {made.file}" in str(refused.value)
    made.file.unlink()
    acls, _, is_used, warnings = await made.started()
    assert (acls, is_used, warnings) == ([], False, [])


@pytest.mark.parametrize("hours", [-1, 25])
async def test_a_snapshot_from_which_removals_may_be_missing_is_not_used(made, hours, monkeypatch):
    """The topic keeps a message without a value for a day. A clock may have been set back."""
    await made.write([([allow(), deny()], [])])
    now_ms = time.time_ns() // 1_000_000 + hours * 3_600_000
    monkeypatch.setattr(snapshots, "_now_ms", lambda: now_ms)
    acls, _, is_used, warnings = await made.started()
    assert (acls, is_used) == (sorted([allow(), deny()]), False)
    assert warnings == ["snapshot of the topic not used; it is read whole"]


async def test_a_topic_that_ends_before_the_snapshot_has_lost_messages(made):
    """As after messages were lost with the disks of all replicas."""
    await made.write([([allow()], [])])
    found = snapshot_file.read_snapshot(made.file)
    assert found is not None
    snapshot_file.write_snapshot(
        made.file,
        found.about._replace(offset=found.about.offset + 1000),
        list(found.bindings),
        list(found.records.items()),
    )
    with pytest.raises(StoreError, match="so messages were lost"):
        await made.started()
    made.file.unlink()
    acls, _, is_used, _ = await made.started()
    assert (acls, is_used) == ([allow()], False)


async def test_a_snapshot_before_the_beginning_of_the_topic_is_not_used(made):
    await made.write([([allow()], [])])
    store = open_store(f"kafka://{made.topic.address}/{made.topic.name}", {"node.id": "2"})
    await store.open()
    end = await store.apply([deny()], [], ORIGIN)
    await store.close()
    policy = {"cleanup.policy": "compact,delete"}
    await asyncio.to_thread(made.topic.delete_records_before, end, policy)
    with pytest.raises(StoreError, match="DENYs among them"):
        await made.started()
    await asyncio.to_thread(made.topic.accept)
    acls, _, is_used, _ = await made.started()
    assert (acls, is_used) == ([], False)


async def test_a_snapshot_counts_the_time_since_it_was_written_by_a_clock_that_nobody_sets(
    made, monkeypatch
):
    await made.write([([allow()], [])])
    now = Moment.now()
    later = now._replace(boot_s=now.boot_s + 25 * 3600)
    monkeypatch.setattr(Moment, "now", lambda: later)
    acls, _, is_used, warnings = await made.started()
    assert (acls, is_used) == ([allow()], False)
    assert warnings == ["snapshot of the topic not used; it is read whole"]


async def test_a_transaction_that_is_read_in_part_is_in_no_snapshot(made):
    """Of another program, of whose transaction the second message comes later."""
    made.topic.make()
    producer = Producer({"bootstrap.servers": made.topic.address})

    def write(acl):
        headers: list[tuple[str, str | bytes | None]] = [("transaction", b"slow 2")]
        producer.produce(made.topic.name, b"{}", key_of(acl), headers=headers)
        assert producer.flush(WITHIN) == 0

    store = made.store()
    await store.open()
    write(allow())
    write(deny())

    async def has_both():
        return await loaded(store) == sorted([allow(), deny()])

    await until(has_both)

    async def is_written():
        return any(made.directory.glob("*.snapshot"))

    await until(is_written)
    await store.close()
    acls, _, is_used, _ = await made.started()
    assert (acls, is_used) == (sorted([allow(), deny()]), True)


async def test_what_a_killed_broker_has_left_unfinished_is_removed(tmp_path):
    """It has secrets."""
    topic = Topic("acls", "id", "cluster", "0a", 1)
    kept = snapshots.Snapshots(tmp_path)
    left = tmp_path / ".acls-id.snapshot.4711"
    other = tmp_path / ".acls-id2.snapshot.4711"
    for each in (left, other):
        each.write_text("secret")
    assert await kept.found(topic) is None
    assert list(tmp_path.iterdir()) == [other]


async def test_what_cannot_be_written_is_told_and_the_store_goes_on(made):
    made.directory.write_text("no directory")
    store = made.store()
    with capture_logs() as logs:
        await store.open()
        await store.apply([allow()], [], ORIGIN)

        async def is_told():
            return any("snapshot of the topic not written" in each["event"] for each in logs)

        await until(is_told)
        assert await loaded(store) == [allow()]
        await store.close()
