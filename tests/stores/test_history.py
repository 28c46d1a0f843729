"""The history of a file: who changed what, the ACLs as they were, and how far back that reaches."""

import sqlite3
from contextlib import closing

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.copies import backup
from aclbroker.broker.stores.examination import examine
from aclbroker.broker.stores.reading import read_acls, read_acls_at, read_history
from aclbroker.broker.stores.repair import repair
from aclbroker.broker.stores.store import Origin, StoreError
from tests.acl.examples import allow, deny
from tests.stores.test_schema import old_file, shell
from tests.stores.test_sqlite import content, loaded, opened, refusal

ALICE = Origin("User:alice", "192.0.2.1", 1_000)
BOB = Origin("User:Zoë\0", "2001:db8::1", 2_000)
BROKER = Origin(None, "", 3_000)
START = 4_000_000_000_000
"""Later than the file was made."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "acls.db"


def at(seconds, origin=ALICE):
    return origin._replace(time_ms=START + seconds * 1000)


def told(path):
    """Each change of the history: its position, sign and resource, and who made it."""
    return [
        (each.position, "-" if each.removed else "+", each.binding.resource_name, made)
        for each in read_history(path).changes
        for made in [each.origin]
    ]


async def test_each_change_is_told_with_who_made_it_when_and_from_where(path):
    async with opened(path) as store:
        await store.apply([allow(name="a"), allow(name="b")], [], ALICE)
        await store.apply_records("scram", {"alice": "1"}, [], BOB)
        await store.apply([allow(name="c")], [allow(name="a")], BOB)
        # Also while the broker goes on.
        assert len(told(path)) == 4
        await store.apply([allow(name="a")], [], BROKER)
    assert told(path) == [
        (2, "+", "a", ALICE),
        (2, "+", "b", ALICE),
        (5, "-", "a", BOB),
        (5, "+", "c", BOB),
        (6, "+", "a", BROKER),
    ]
    assert examine(path).problems == []


@pytest.fixture
async def seconds(path):
    """A file with a change a second, and the position of each."""
    shown: dict[int, tuple[int, list[AclBinding], int]] = {}
    async with opened(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            [[made_at]] = connection.execute("SELECT horizon_ms FROM seal").fetchall()
        start = made_at // 1000 + 1

        def origin(second):
            return ALICE._replace(time_ms=(start + second) * 1000)

        shown[0] = start, [], await store.position()
        acls = [allow(name="a"), deny(), allow(name="b")]
        for second, (added, removed, there) in enumerate(
            [
                (acls[:2], [], acls[:2]),
                ([], acls[:1], acls[1:2]),
                (acls[:1] + acls[2:], acls[1:2], [acls[0], acls[2]]),
                ([], acls[2:], acls[:1]),
            ],
            1,
        ):
            position = await store.apply(added, removed, origin(second))
            shown[second] = start + second, there, position
        await store.apply_records("scram", {"alice": "1"}, [], origin(5))
    return shown


async def test_the_acls_are_told_as_they_were_at_each_position_and_time(path, seconds):
    for second, there, position in seconds.values():
        by_position = read_acls_at(path, position=position)
        assert (sorted(by_position.acls), by_position.position) == (sorted(there), position)
        for time_ms in (second * 1000, second * 1000 + 999):
            by_time = read_acls_at(path, time_ms=time_ms)
            assert (sorted(by_time.acls), by_time.position) == (sorted(there), position)
    latest = read_acls_at(path, time_ms=2**45)
    assert latest.acls == read_acls(path)[0] == [allow(name="a")]


async def test_a_position_within_a_transaction_is_before_it(path, seconds):
    position = seconds[3][2]
    # Three changes are one transaction: until all were made none was visible.
    for within in (position - 1, position - 2, position - 3):
        found = read_acls_at(path, position=within)
        assert (found.acls, found.position) == ([deny()], seconds[2][2])


async def test_what_was_not_yet_and_what_is_no_more_is_an_error(path, seconds):
    with pytest.raises(StoreError, match=r"has come to position 8, and not yet to 9"):
        read_acls_at(path, position=9)
    with pytest.raises(StoreError, match=r"does not reach back to 2001-09-09T01:46:40.000Z"):
        read_acls_at(path, time_ms=1_000_000_000_000)


async def test_a_clock_that_jumps_back_leaves_the_last_change_of_a_time(path):
    async with opened(path) as store:
        for second in (1, 9, 3):
            name = f"at-{second}"
            await store.apply([allow(name=name)], [], at(second))
        names = [
            [acl.resource_name for acl in read_acls_at(path, time_ms=at(each).time_ms).acls]
            for each in (2, 3, 10)
        ]
    assert names == [["at-1"], ["at-1", "at-9", "at-3"], ["at-1", "at-9", "at-3"]]


@pytest.fixture
def tidy(monkeypatch):
    """Let the file be compacted after every third removal."""
    monkeypatch.setattr("aclbroker.broker.stores.database._LITTER", 3)


async def test_the_history_is_bounded_by_a_number_of_changes(path, tidy):
    kept = allow("User:kept")
    async with opened(path, history_changes=12) as store:
        await store.apply([kept], [], BOB)
        positions = []
        for number in range(20):
            await store.apply([allow(name=str(number))], [], ALICE)
            positions.append(await store.apply([], [allow(name=str(number))], ALICE))
            assert await loaded(store) == [kept]
        await store.apply_records("scram", {"alice": "1"}, [], ALICE)
        await store.apply_records("scram", {"alice": "2"}, [], ALICE)
    history = read_history(path)
    # The last twelve positions are those of ten changes of ACLs and two of records.
    assert history.horizon == positions[14]
    assert len(history.changes) == 1 + 10
    # Who granted what is there stays known.
    assert told(path)[0] == (1, "+", "orders", BOB)
    assert shell(path, "SELECT count(*) FROM origin") == [(1 + 10 + 2,)]
    assert read_acls_at(path, position=positions[14]).acls == [kept]
    with pytest.raises(StoreError, match=f"it begins at position {positions[14]}, 1970-01-01T"):
        read_acls_at(path, position=positions[14] - 1)
    assert read_acls_at(path, position=positions[16] - 1).acls == [kept, allow(name="16")]
    assert examine(path).problems == []
    assert await content(path) == [kept]


async def test_without_history_only_what_is_there_is_told(path, tidy):
    async with opened(path, history_changes=0) as store:
        await store.apply([allow(name=each) for each in "abcd"], [], ALICE)
        await store.apply([], [allow(name=each) for each in "abc"], BOB)
        await loaded(store)
    assert told(path) == [(4, "+", "d", ALICE)]
    with pytest.raises(StoreError, match="begins at position 7"):
        read_acls_at(path, position=4)


async def test_records_that_are_changed_again_and_again_do_not_fill_the_file(path, tidy):
    async with opened(path, history_changes=5) as store:
        await loaded(store)
        for number in range(50):
            await store.apply_records("token", {"a": str(number)}, [], ALICE)
        await loaded(store)
        [[rows]] = shell(path, "SELECT count(*) FROM origin")
        assert rows <= 5 + 2 * 3


async def test_what_an_older_version_wrote_has_no_history(path):
    old_file(path, 4)
    async with opened(path) as store:
        await store.apply([], [allow()], ALICE)
    assert {made for *_, made in told(path)[:-1]} == {None}
    assert told(path)[-1] == (7, "-", "orders", ALICE)
    assert len(read_acls_at(path, position=6).acls) == 6
    with pytest.raises(StoreError, match="begins at position 6"):
        read_acls_at(path, position=5)


ROW_1 = "first, time_ms, principal, host, kind, names, checksum FROM origin WHERE position = 1"


@pytest.mark.parametrize(
    ("damage", "starts"),
    [
        ("UPDATE origin SET principal = 'User:eve' WHERE position = 1", True),
        ("UPDATE origin SET principal = NULL WHERE position = 1", True),
        ("UPDATE origin SET host = x'ff' WHERE position = 1", True),
        ("UPDATE origin SET host = CAST(x'ff' AS TEXT) WHERE position = 1", True),
        ("UPDATE origin SET time_ms = 'x' WHERE position = 1", True),
        ("UPDATE origin SET kind = '' WHERE position = 1", True),
        ("UPDATE origin SET checksum = 5 WHERE position = 1", False),
        ("DELETE FROM origin WHERE position = 1", False),
        (f"INSERT INTO origin SELECT 9, {ROW_1}", False),
        ("UPDATE seal SET horizon = 1", False),
    ],
)
async def test_a_damaged_origin_is_told_to_nobody_and_left_out_by_a_repair(
    path, tmp_path, damage, starts
):
    async with opened(path) as store:
        await store.apply([allow()], [], ALICE)
        await store.apply([deny()], [], BOB)
    shell(path, damage)
    # No decision depends on what a row says: a broker starts as long as all rows are there.
    if starts:
        assert await content(path) == sorted([allow(), deny()])
    else:
        assert "restore it from a backup" in await refusal(path)
    assert examine(path).problems
    with pytest.raises(StoreError, match="damaged"):
        read_history(path)
    with pytest.raises(StoreError, match="damaged"):
        read_acls_at(path, position=2)
    with pytest.raises(StoreError, match="damaged"):
        backup(path, tmp_path / "copy.db")
    is_sealed = "seal" not in damage
    repair(path, tmp_path / "repaired.db", accept_loss=not is_sealed)
    assert await content(tmp_path / "repaired.db") == sorted([allow(), deny()])
    if is_sealed:
        assert told(tmp_path / "repaired.db")[-1] == (2, "+", "orders", BOB)


async def test_a_copy_has_the_history(path, tmp_path, seconds):
    backup(path, tmp_path / "copy.db")
    assert told(tmp_path / "copy.db") == told(path)
    _, there, position = seconds[1]
    assert sorted(read_acls_at(tmp_path / "copy.db", position=position).acls) == sorted(there)
