"""Several users of one SQLite file: what each changes holds for all, whoever comes or dies."""

import asyncio
import fcntl
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.authorizer import AclError, RequestContext, Session
from aclbroker.acl.bindings import AclFilter
from aclbroker.acl.index import AclIndex
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.authorizer.seed import seed
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.credentials.credentials import load_credentials
from aclbroker.broker.server.topic_ids import load_topic_ids
from aclbroker.broker.stores import file_systems
from aclbroker.broker.stores.connection import _checkpointed
from aclbroker.broker.stores.copies import backup, restore
from aclbroker.broker.stores.examination import examine
from aclbroker.broker.stores.file_systems import network_file_system
from aclbroker.broker.stores.locks import StoreLocks
from aclbroker.broker.stores.repair import repair
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import (
    Origin,
    StoreConflict,
    StoreError,
    StoreReset,
    StoreUnavailable,
)
from tests.acl.examples import READ, TOPIC, allow, deny
from tests.stores import killed_beside
from tests.stores.origins import ORIGIN
from tests.stores.test_schema import ACLS, VERSIONS, old_file, rows
from tests.stores.test_sqlite import content, loaded, opened, refusal
from tests.stores.test_whole import until, wal

SIX = range(6)
CONTEXT = RequestContext(Session(("User:admin",), "192.0.2.1", "PLAINTEXT"), 30, 3, None, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "acls.db"


@pytest.fixture
def impatient(monkeypatch):
    """Let nobody wait long for a file that somebody has alone, or for a transaction."""
    monkeypatch.setattr("aclbroker.broker.stores.opening._PATIENCE_S", 0.1)
    monkeypatch.setattr("aclbroker.broker.stores.connection._BUSY_TIMEOUT_S", 0.1)


@asynccontextmanager
async def two(path, **settings):
    async with opened(path, **settings) as one, opened(path, **settings) as other:
        yield one, other


@asynccontextmanager
async def authorizers(path, properties=None):
    made = [StandardAuthorizer(SqliteStore(path)) for _ in range(2)]
    for each in made:
        each.configure(properties or {})
        await each.start()
    try:
        yield made
    finally:
        for each in made:
            await each.close()


def may_read(authorizer, principal="User:alice"):
    [decision] = authorizer.authorize(
        CONTEXT._replace(session=Session((principal,), "192.0.2.1", "PLAINTEXT")),
        READ,
        TOPIC,
        ["orders"],
    )
    return decision.allowed


async def test_what_one_grants_and_revokes_holds_for_the_other(path):
    async with authorizers(path) as (one, other):
        await one.create_acls(CONTEXT, [allow()])
        assert may_read(one)
        await until(lambda: may_read(other))
        await other.delete_acls(CONTEXT, [AclFilter()])
        assert not may_read(other)
        await until(lambda: not may_read(one))


async def test_a_deletion_takes_what_another_has_added_a_moment_ago(path):
    async with authorizers(path) as (one, other):
        await one.create_acls(CONTEXT, [allow(), allow(name="other")])
        await other.create_acls(CONTEXT, [deny(), allow("User:bob")])
        by_name = AclFilter(resource_name="orders")
        results = await one.delete_acls(CONTEXT, [by_name, AclFilter(principal="User:bob")])
        assert [sorted(each.bindings) for each in results] == [
            sorted([allow(), deny(), allow("User:bob")]),
            [allow("User:bob")],
        ]
        assert list(one.acls(AclFilter())) == [allow(name="other")]
        # And nobody is told to have deleted what another has deleted before.
        [again] = await other.delete_acls(CONTEXT, [by_name])
        assert again.bindings == []
    assert await content(path) == [allow(name="other")]


async def test_what_another_has_removed_a_moment_ago_is_created_again(path):
    async with authorizers(path) as (one, other):
        for _ in range(5):
            await one.create_acls(CONTEXT, [allow()])
            await other.delete_acls(CONTEXT, [AclFilter()])
            await one.create_acls(CONTEXT, [allow(), deny()])
            assert sorted(one.acls(AclFilter())) == sorted([allow(), deny()])
            await other.create_acls(CONTEXT, [allow(), deny()])
            await one.delete_acls(CONTEXT, [AclFilter()])
    assert await content(path) == []


async def test_what_is_there_is_not_stored_again(path):
    async with authorizers(path) as (one, other):
        for _ in range(3):
            for each in (one, other):
                [result] = await each.create_acls(CONTEXT, [allow()])
                assert result.error_code == AclError.NONE
    assert rows(path) == 1


async def test_many_who_change_the_same_at_once_come_to_the_same(path):
    async with authorizers(path) as (one, other):

        async def change(authorizer, number):
            for turn in range(10):
                await authorizer.create_acls(
                    CONTEXT, [allow(name=f"{number % 3}"), allow(f"User:{number}-{turn}")]
                )
                await authorizer.delete_acls(CONTEXT, [AclFilter(resource_name=f"{number % 3}")])

        await asyncio.gather(*(change(each, number) for each in (one, other) for number in SIX))
        expected = sorted(allow(f"User:{number}-{turn}") for number in SIX for turn in range(10))
        for each in (one, other):
            await until(lambda each=each: sorted(each.acls(AclFilter())) == expected)
    assert await content(path) == expected


async def test_a_large_change_is_followed_without_being_read_as_a_whole_store(path):
    acls = [allow(name=str(number)) for number in range(12_000)]
    async with two(path) as (one, other):
        news = other.follow(await other.position())
        waiting = asyncio.create_task(anext(news))
        await one.apply(acls, [], ORIGIN)
        change = await waiting
        assert not isinstance(change, StoreReset)
        assert (list(change.added), change.origin) == (acls, ORIGIN)
        await news.aclose()


async def test_who_has_missed_what_is_not_kept_is_told_everything(path, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.database._LITTER", 2)
    async with two(path, history_changes=0) as (one, other):
        old = await other.position()
        await one.apply([allow(), deny(), allow("User:bob")], [], ORIGIN)
        await one.apply([], [allow("User:bob"), deny()], ORIGIN)
        await one.apply_records("scram", {"alice": "1"}, [], ORIGIN)
        await loaded(one)
        news = other.follow(old)
        told = await anext(news)
        assert isinstance(told, StoreReset)
        assert (told.bindings, told.records) == ([allow()], {("scram", "alice"): "1"})
        await news.aclose()
        # A change that was planned before is not made of what is not known any more.
        with pytest.raises(StoreUnavailable, match="try again"):
            await other.transact(old, lambda _: ([allow("User:new")], ()), ORIGIN)


async def test_a_change_of_which_no_mark_was_left_is_seen_all_the_same(path, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.sqlite._TICK_S", 0.05)
    monkeypatch.setattr(StoreLocks, "write_mark", lambda *_: None)
    async with authorizers(path) as (one, other):
        await one.create_acls(CONTEXT, [allow()])
        await until(lambda: may_read(other))


async def test_a_mark_that_is_written_late_hides_no_later_change(path, monkeypatch):
    may_write = threading.Event()
    async with two(path) as (one, other):
        locks = other._database._locks
        write_mark = locks.write_mark

        def late(mark):
            may_write.wait()
            write_mark(mark)

        monkeypatch.setattr(locks, "write_mark", late)
        change = asyncio.create_task(other.apply([allow()], [], ORIGIN))
        await until(lambda: other._database.stored.transactions == 1)
        await one.apply([deny()], [], ORIGIN)
        may_write.set()
        await change
        assert locks.read_mark().transactions == 2
        assert other._database.others_mark()
        assert not one._database.others_mark()


HOLDER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print(flush=True)
    sys.stdin.read()
"""


async def test_a_process_that_is_stopped_while_it_writes_the_mark_keeps_nobody_waiting(path):
    async with two(path) as (one, other):
        read_mark = one._database._locks.read_mark
        command = [sys.executable, "-c", HOLDER, f"{path}.lock"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as stopped:
            assert stopped.stdout is not None
            stopped.stdout.readline()
            await one.apply([allow()], [], ORIGIN)
            assert read_mark().transactions == 0
        await one.apply([deny()], [], ORIGIN)
        assert read_mark().transactions == 2
        assert await other.position() == 2


async def test_a_plan_of_nothing_and_a_claim_of_what_is_there_write_nothing(path):
    async with two(path) as (one, other):
        await one.claim("salt", {"a": "1"}, ORIGIN)
        await one.apply([allow()], [], ORIGIN)
        assert await other.claim("salt", {"a": "2"}, ORIGIN) == {"a": "1"}

        def plan(missed):
            return (() if missed.added else [allow()]), ()

        assert await other.transact(1, plan, ORIGIN) == await one.position() == 2
        assert other._database.stored.transactions == one._database.stored.transactions == 2
        assert not one._database.others_mark()
        assert (await other.apply([deny()], [], ORIGIN), other.told) == (3, 3)


@pytest.mark.parametrize("name", ["look", "apply"])
async def test_what_a_call_has_found_or_made_is_told_when_nobody_waits_for_it(
    path, name, monkeypatch
):
    at_its_end, may_end = threading.Event(), threading.Event()
    async with two(path) as (one, other):
        await one.apply([deny()], [], ORIGIN)
        call = getattr(other._database, name)

        def held_up(*args):
            found = call(*args)
            at_its_end.set()
            may_end.wait()
            return found

        monkeypatch.setattr(other._database, name, held_up)
        calls = {"look": other.position, "apply": lambda: other.apply([allow()], [], ORIGIN)}
        waiting = asyncio.create_task(calls[name]())
        await asyncio.to_thread(at_its_end.wait)
        waiting.cancel()
        await asyncio.wait([waiting])
        may_end.set()
        await other.cluster_id()
        assert other.told == (1 if name == "look" else 2)


async def test_records_are_followed_with_their_values(path):
    async with two(path) as (one, other):
        news = other.follow(await other.position())
        waiting = asyncio.create_task(anext(news))
        await one.apply_records("scram", {"alice": "1", "bob": "2"}, [], ORIGIN)
        assert (await waiting).records == {("scram", "alice"): "1", ("scram", "bob"): "2"}
        waiting = asyncio.create_task(anext(news))
        await one.apply_records("scram", {"é\0": "3"}, ["alice"], ORIGIN)
        assert (await waiting).records == {("scram", "alice"): None, ("scram", "é\0"): "3"}
        await news.aclose()


async def test_a_record_that_another_has_changed_is_not_written_over(path):
    async with two(path) as (one, other):
        position = await one.position()
        await other.apply_records("token", {"a": "removed"}, [], ORIGIN)
        await other.apply_records("token", {}, ["a"], ORIGIN)
        with pytest.raises(StoreConflict):
            await one.apply_records_since(position, "token", {"a": "renewed"}, [], ORIGIN)
        await one.apply_records_since(position, "token", {"b": "2"}, [], ORIGIN)
        assert await other.load_records("token") == {"b": "2"}


async def test_origins_with_a_clock_that_goes_back_are_followed_in_their_order(path):
    times = [5_000, 4_000, 6_000, 1_000]
    async with two(path) as (one, other):
        news = other.follow(await other.position())
        for number, time_ms in enumerate(times):
            store = (one, other)[number % 2]
            await store.apply([allow(name=str(number))], [], Origin("User:a", "h", time_ms))
        told = [await anext(news) for _ in times]
        await news.aclose()
    assert [each.origin.time_ms for each in told] == times
    assert [each.added[0].resource_name for each in told] == ["0", "1", "2", "3"]


@contextmanager
def reader_of_what_was_before(path):
    """Begin to read what the file has; give what ends that before the block does."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM seal").fetchall()
        yield reader.rollback


async def test_a_copy_without_the_log_is_noticed_whoever_changed_and_whoever_settled(
    path, tmp_path, monkeypatch
):
    # Nobody settles before the file was copied.
    monkeypatch.setattr("aclbroker.broker.stores.sqlite._TICK_S", 1_000.0)
    async with two(path) as stores:

        def are_settled():
            for each in stores:
                each._tick()
            return not wal(path).stat().st_size and all(s._database.is_settled for s in stores)

        for number in range(4):
            changed, copy = stores[number % 2], tmp_path / f"copy-{number}.db"
            await changed.apply([allow(name=str(number))], [], ORIGIN)
            shutil.copy(path, copy)
            with pytest.raises(StoreError, match="without its write-ahead log"):
                await content(copy)
            await until(are_settled)
        shutil.copy(path, tmp_path / "whole.db")
    assert len(await content(tmp_path / "whole.db")) == 4


async def test_the_file_says_that_it_is_not_whole_when_others_have_read_what_was_before(
    path, tmp_path, monkeypatch
):
    monkeypatch.setattr("aclbroker.broker.stores.database._READERS_S", 20.0)
    outcomes: list[bool] = []
    async with opened(path) as store:
        with reader_of_what_was_before(path) as end_reading:

            def checkpointed(connection, mode):
                outcomes.append(_checkpointed(connection, mode))
                end_reading()
                return outcomes[-1]

            monkeypatch.setattr("aclbroker.broker.stores.connection._checkpointed", checkpointed)
            await store.apply([allow()], [], ORIGIN)
        assert outcomes == [False, True]
        shutil.copy(path, tmp_path / "copy.db")
    assert "without its write-ahead log" in await refusal(tmp_path / "copy.db")


async def test_who_reads_for_long_keeps_a_change_waiting_for_a_moment_once(
    path, tmp_path, monkeypatch
):
    monkeypatch.setattr("aclbroker.broker.stores.database._READERS_S", 0.01)
    monkeypatch.setattr("aclbroker.broker.stores.sqlite._TICK_S", 1_000.0)
    async with opened(path) as store:
        with reader_of_what_was_before(path):
            await store.apply([allow()], [], ORIGIN)
            monkeypatch.setattr("aclbroker.broker.stores.database._READERS_S", 1_000.0)
            async with asyncio.timeout(20):
                await store.apply([deny()], [], ORIGIN)
        await store.apply([allow("User:new")], [], ORIGIN)
        shutil.copy(path, tmp_path / "copy.db")
    assert "without its write-ahead log" in await refusal(tmp_path / "copy.db")
    assert await content(path) == sorted([allow(), deny(), allow("User:new")])


async def test_the_file_is_kept_from_restore_and_repair_until_the_last_has_closed_it(
    path, tmp_path
):
    copy = tmp_path / "copy.db"
    async with opened(path) as one:
        async with opened(path) as other:
            await other.apply([allow()], [], ORIGIN)
            backup(path, copy)
            await one.apply([deny()], [], ORIGIN)
        assert examine(path).is_running
        with pytest.raises(StoreError, match="in use by a broker"):
            restore(copy, path)
        with pytest.raises(StoreError, match="in use by a broker"):
            repair(path, tmp_path / "repaired.db", accept_loss=True)
        assert await loaded(one) == sorted([allow(), deny()])
    restore(copy, path)
    assert await content(path) == [allow()]


@pytest.mark.skipif(sys.platform != "linux", reason="the file is locked on Linux alone")
@pytest.mark.parametrize("ending", ["", ".lock"])
async def test_a_broker_of_an_older_version_is_kept_out_and_keeps_others_out(
    path, impatient, ending
):
    await content(path)
    async with opened(path):
        with Path(f"{path}{ending}").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with Path(f"{path}{ending}").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert "a broker of an older version" in await refusal(path)
    assert await content(path) == []


async def test_a_file_on_a_network_file_system_has_one_user(path, impatient, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.opening.network_file_system", lambda _path: "nfs4")
    async with opened(path) as store:
        await store.apply([allow()], [], ORIGIN)
        with pytest.raises(StoreError, match=r"network file system \(nfs4\)"):
            await content(path)
    assert await content(path) == [allow()]


def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 0:9 / /data rw shared:5 - nfs4 server:/x rw\n"
        "3 2 8:2 / /data/a\\040b rw - xfs /dev/sdb rw\n"
        "4 1 0:8 / /home/me rw - fuse.sshfs me@host: rw\n"
        "5 1 0:7 / /over rw - nfs server:/y rw\n"
        "6 1 0:7 / /over rw - tmpfs none rw\n"
    )
    monkeypatch.setattr(file_systems, "_MOUNTS", mounts)
    kinds = {
        name: network_file_system(Path(name))
        for name in ("/x.db", "/data/x.db", "/data/a b/x.db", "/home/me/x.db", "/database/x.db")
    }
    assert list(kinds.values()) == [None, "nfs4", None, "fuse.sshfs", None]
    assert network_file_system(Path("/over/x.db")) is None
    mounts.unlink()
    assert network_file_system(Path("/data/x.db")) is None


async def test_who_waits_too_long_for_another_is_told_to_try_again(path, impatient):
    async with authorizers(path) as (one, other):
        await one.create_acls(CONTEXT, [allow()])
        begun, release, asked = threading.Event(), threading.Event(), []

        def hold(missed):
            # A plan is asked for once before the transaction, and then in it.
            asked.append(missed)
            if len(asked) == 2:
                begun.set()
                release.wait(20)
            return [deny()], ()

        holding = asyncio.create_task(
            other.store.transact(await other.store.position(), hold, ORIGIN)
        )
        await asyncio.to_thread(begun.wait, 20)
        with capture_logs() as logs:
            [created] = await one.create_acls(CONTEXT, [allow("User:bob")])
        assert created.error_code == AclError.REQUEST_TIMED_OUT
        assert "another program holds it" in logs[-1]["reason"]
        assert may_read(one)
        release.set()
        await holding
        [created] = await one.create_acls(CONTEXT, [allow("User:bob")])
        assert created.error_code == AclError.NONE


@pytest.mark.parametrize("answer", ["deny", "serve"])
async def test_a_file_that_is_away_for_long_is_a_store_that_is_stale(
    path, tmp_path, monkeypatch, answer
):
    monkeypatch.setattr("aclbroker.broker.stores.sqlite._TICK_S", 0.02)
    monkeypatch.setattr("aclbroker.broker.authorizer.staleness._LOOKS_S", 0.02)
    stale = {"aclbroker.store.max.lag.ms": "1000", "aclbroker.store.stale": answer}
    with capture_logs() as logs:
        async with authorizers(path, stale) as (one, _):
            await one.create_acls(CONTEXT, [allow()])
            path.rename(tmp_path / "away.db")
            await until(lambda: sum("may be stale" in each["event"] for each in logs) == 2)
            assert may_read(one) == (answer == "serve")
            (tmp_path / "away.db").rename(path)
            await until(lambda: sum("up to date again" in each["event"] for each in logs) == 2)
            await until(lambda: may_read(one))


async def test_what_is_damaged_is_not_followed_and_told(path, monkeypatch):
    # Nobody looks before the row is damaged.
    for name in ("_TICK_S", "_POLL_S"):
        monkeypatch.setattr(f"aclbroker.broker.stores.sqlite.{name}", 1_000.0)
    async with authorizers(path) as (one, other):
        await one.create_acls(CONTEXT, [allow()])
        with closing(sqlite3.connect(path, isolation_level=None)) as shell:
            shell.execute("UPDATE acl_change SET principal = 'User:mallory'")
        with pytest.raises(StoreError, match="without their checksums"):
            await other.store.position()
        with capture_logs() as logs:
            [result] = await other.create_acls(CONTEXT, [allow("User:bob")])
        assert result.error_code == AclError.UNKNOWN_SERVER_ERROR
        assert "without their checksums" in logs[0]["reason"]
        assert not may_read(other, "User:mallory")


def started(path: str, barrier, results) -> None:
    async def start():
        store = SqliteStore(path)
        barrier.wait(60)
        await store.open()
        credentials = await load_credentials(store, None, 1_000)
        ids = await load_topic_ids(store, ["orders", "payments"])
        index = AclIndex()
        position = await store.position()
        for acl in await loaded(store):
            index.add(acl)
        first = await seed(store, index, f"{path}.yaml", None, position)
        decoy = credentials.users.look_up(ScramMechanism.SCRAM_SHA_256, "nobody").credential
        status = await store.status()
        found = await store.cluster_id(), decoy.salt, ids["orders"], ids["payments"]
        results.put((found, status.is_new, len(first)))
        # Nobody may have opened it alone when the first one has gone again.
        barrier.wait(60)
        await store.close()

    asyncio.run(start())


def test_two_that_start_at_once_where_there_is_no_file_make_one_cluster(path):
    Path(f"{path}.yaml").write_text(
        "version: 1\nacls:\n- principal: User:alice\n  rules:\n  - topic: orders\n    allow: READ\n"
    )
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    processes = [
        context.Process(target=started, args=(str(path), barrier, results)) for _ in range(2)
    ]
    for each in processes:
        each.start()
    found = [results.get(timeout=60) for _ in processes]
    for each in processes:
        each.join(60)
    assert found[0][0] == found[1][0]
    assert sorted(each[1] for each in found) == [False, True]
    assert sorted(each[2] for each in found) == [0, 1]
    assert rows(path) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_two_that_open_an_older_file_at_once_upgrade_it_once(path, version):
    old_file(path, version)
    stores = [SqliteStore(path) for _ in range(4)]
    await asyncio.gather(*(each.open() for each in stores))
    for each in stores:
        assert await loaded(each) == ACLS
        await each.close()
    assert await content(path) == ACLS


async def test_a_store_that_another_uses_and_somebody_removed_is_not_made_anew(path, tmp_path):
    async with opened(path) as store:
        await store.apply([allow()], [], ORIGIN)
        path.rename(tmp_path / "away.db")
        with pytest.raises(StoreError, match=r"removed while another|No such file"):
            await content(path)
        (tmp_path / "away.db").rename(path)
        assert await content(path) == [allow()]


@pytest.mark.thorough
def test_fifty_that_are_killed_in_mid_write_harm_nothing_beside_one_that_goes_on(path):
    command = [sys.executable, "-m", killed_beside.__name__, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.startswith("done")
    assert not os.path.exists(f"{path}-wal")
