"""Accidents of the store in ZooKeeper, as those of the other stores."""

import pytest

from tests.acl.examples import READ, allow, deny
from tests.stores.brokers_at_once import check_brokers_at_once
from tests.stores.clock import check_clock
from tests.stores.first_values import check_first_values
from tests.stores.kills import check_kills
from tests.stores.restarted_restore import check_restore_is_killed
from tests.stores.shared_copies import (
    ACLS,
    RECORDS,
    Content,
    check_one_position,
    check_there_and_back,
    content,
    fill,
    store,
)
from tests.zookeeper.opening import store_at


@pytest.fixture
def url(connect):
    """A place where nothing is."""
    return f"zookeeper://{connect}"


async def test_brokers_that_begin_at_once_agree_on_all_that_must_be_alike(connect):
    await check_first_values(lambda _: store_at(connect))


def test_a_zookeeper_is_backed_up_and_restored(url, tmp_path, capsys):
    check_there_and_back(url, tmp_path, capsys)


def test_a_backup_is_of_one_position_while_brokers_write(url, tmp_path):
    check_one_position(url, tmp_path)


def test_a_place_that_is_not_there_is_not_made_by_a_check_and_is_by_a_restore(
    url, zk, tmp_path, capsys
):
    copy = tmp_path / "copy.db"
    assert store("check", "--store", url) == 1
    assert store("backup", str(copy), "--store", url) == 1
    assert f"{url}: there are no nodes of a store" in capsys.readouterr().err
    fill(f"sqlite:///{copy}", ACLS, put=RECORDS)
    assert store("restore", str(copy), "--store", url) == 1
    assert zk.get_children("/") == []
    assert store("restore", str(copy), "--store", url, "--yes") == 0
    assert content(url) == Content(set(ACLS), RECORDS)


def test_all_nodes_that_cannot_be_read_are_named_and_nothing_is_copied(url, zk, tmp_path, capsys):
    fill(url, ACLS, put=RECORDS)
    zk.set("/kafka-acl/Topic/topic-7", b"{")
    zk.set("/kafka-acl/Topic/topic-8", b'{"version":2,"acls":[]}')
    zk.set("/aclbroker/records/drill/alice", b"\xff\xfe")
    assert store("check", "--store", url) == 1
    told = capsys.readouterr().out
    assert "It is damaged:" in told
    for path in ("kafka-acl/Topic/topic-7", "kafka-acl/Topic/topic-8", "records/drill/alice"):
        assert f"{path}: " in told
    assert store("backup", str(tmp_path / "copy.db"), "--store", url) == 1
    assert "is damaged, and is not copied" in capsys.readouterr().err
    assert not (tmp_path / "copy.db").exists()


def test_what_zookeeper_cannot_keep_of_a_backup_is_listed(url, tmp_path, capsys):
    copy = tmp_path / "copy.db"
    kept, lost, denied = allow(), allow(name="a/b"), deny("User:a", READ, "c/d")
    large = "x" * 1_000_000
    fill(f"sqlite:///{copy}", [kept, lost, denied], put={"a": "1", "large": large, "z": "2"})
    assert store("restore", str(copy), "--store", url, "--yes") == 1
    assert "DENYs that cannot be kept there: 1" in capsys.readouterr().err
    assert store("check", "--store", url) == 1
    words = ("restore", str(copy), "--store", url, "--yes", "--accept-lost-denies")
    assert store(*words) == 1
    told = capsys.readouterr().err
    assert "2 ACLs cannot be kept there" in told
    assert "record 'large' of the kind 'drill'" in told
    assert content(url) == Content({kept}, {"a": "1", "z": "2"})
    assert store(*words) == 1


def test_nothing_acknowledged_is_lost_by_kills_at_random_points(url, every_case):
    check_kills(url, 50 if every_case else 10)
    assert store("check", "--store", url) == 0


def test_a_restore_that_is_killed_is_finished_by_the_next_one(url, tmp_path):
    check_restore_is_killed(url, tmp_path)


async def test_a_clock_that_jumps_loses_nothing(connect, monkeypatch):
    await check_clock(store_at(connect), monkeypatch)


def test_brokers_that_are_started_at_once_are_one_cluster(url, tmp_path):
    check_brokers_at_once(url, tmp_path)
