"""Accidents of the store in a topic, as those of the other stores."""

import itertools

import pytest
from confluent_kafka import Producer

from aclbroker.broker.stores import open_store
from aclbroker.broker.stores.kafka.messages import key_of
from aclbroker.broker.stores.reading import read_history
from tests.acl.examples import deny
from tests.stores.brokers_at_once import check_brokers_at_once
from tests.stores.clock import check_clock
from tests.stores.first_values import check_first_values
from tests.stores.kills import check_kills
from tests.stores.origins import ORIGIN
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

_names = (f"drill-{number}" for number in itertools.count())


@pytest.fixture
def url(kafka):
    """A topic that is not there."""
    return f"kafka://{kafka.listeners['PLAINTEXT']}/{next(_names)}"


async def test_brokers_that_begin_at_once_agree_on_all_that_must_be_alike(url):
    await check_first_values(lambda number: open_store(url, {"node.id": str(number)}))


def test_a_topic_is_backed_up_and_restored(url, tmp_path, capsys):
    copy = check_there_and_back(url, tmp_path, capsys)
    [first, *_] = read_history(copy).changes
    assert first.origin == ORIGIN


def test_a_backup_is_of_one_position_while_brokers_write(url, tmp_path):
    check_one_position(url, tmp_path)


def test_a_topic_that_is_not_there_is_not_made_by_a_check_and_is_by_a_restore(
    url, tmp_path, capsys
):
    copy = tmp_path / "copy.db"
    assert store("check", "--store", url) == 1
    assert store("backup", str(copy), "--store", url) == 1
    assert f"{url}: there is no such topic" in capsys.readouterr().err
    fill(f"sqlite:///{copy}", ACLS, put=RECORDS)
    assert store("restore", str(copy), "--store", url) == 1
    assert store("check", "--store", url) == 1
    assert store("restore", str(copy), "--store", url, "--yes") == 0
    assert content(url) == Content(set(ACLS), RECORDS)


def test_records_with_which_no_broker_starts_are_told(url, capsys):
    fill(url, ACLS, put={"SCRAM-SHA-256:eve": "nonsense"}, kind="scram")
    assert store("check", "--store", url) == 1
    told = capsys.readouterr().out
    assert "It is whole." in told
    assert "a record of the kind scram that is no credential: 'SCRAM-SHA-256:eve'" in told


def test_all_messages_that_cannot_be_read_are_named_and_nothing_is_copied(
    url, kafka, tmp_path, capsys
):
    fill(url, ACLS)
    producer = Producer({"bootstrap.servers": kafka.listeners["PLAINTEXT"]})
    topic = url.rpartition("/")[2]
    for key, value in (
        (b"foreign", b"1"),
        (key_of(deny()), b"{"),
        (b'["record","scram","a"]', b"{}"),
    ):
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0
    assert store("check", "--store", url) == 1
    told = capsys.readouterr().out
    assert "It is damaged:" in told
    assert "its key is no JSON" in told
    assert "its value is no JSON" in told
    assert "a record without a text" in told
    assert store("backup", str(tmp_path / "copy.db"), "--store", url) == 1
    assert "is damaged, and is not copied" in capsys.readouterr().err
    assert not (tmp_path / "copy.db").exists()
    assert store("repair", "--store", url) == 1
    assert "only a file can be repaired" in capsys.readouterr().err


def test_nothing_acknowledged_is_lost_by_kills_at_random_points(url, every_case):
    check_kills(url, 50 if every_case else 10)
    assert store("check", "--store", url) == 0


def test_a_restore_that_is_killed_is_finished_by_the_next_one(url, tmp_path):
    check_restore_is_killed(url, tmp_path)


async def test_a_clock_that_jumps_loses_nothing(url, monkeypatch):
    await check_clock(open_store(url, {"node.id": "1"}), monkeypatch)


def test_brokers_that_are_started_at_once_are_one_cluster(url, tmp_path):
    check_brokers_at_once(url, tmp_path)
