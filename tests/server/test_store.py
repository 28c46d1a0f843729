"""What a user sees of the store: in the log, from `aclbroker store`, and when it is not whole."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartBroker
from tests.support.broker import COMMAND, Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client, topic_read
from tests.support.process import wait_for


def event(broker: Broker, name: str) -> dict[str, Any] | None:
    return next((each for each in broker.events() if each["event"] == name), None)


def ready(broker: Broker) -> dict[str, Any]:
    found = event(broker, "ready")
    assert found is not None
    return found


def create(broker: Broker, *names: str) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(*map(topic_read, names)) == [0] * len(names)


def names(broker: Broker) -> list[str]:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        return client.resource_names()


def store(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [str(COMMAND), "store", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_log_tells_the_place_of_the_store_what_it_has_and_whether_it_is_new(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    assert event(broker, "the ACL store is new: it has no ACLs of former times")
    create(broker, "a", "b")
    first = ready(broker)
    assert (first["store"], first["acls"], first["records"]) == (str(broker.store), 0, 1)
    broker.restart()
    assert not event(broker, "the ACL store is new: it has no ACLs of former times")
    second = ready(broker)
    assert (second["store"], second["acls"], second["records"]) == (str(broker.store), 2, 1)
    assert second["cluster_id"] == first["cluster_id"]


def test_a_broker_without_a_store_says_so(start_broker: StartBroker) -> None:
    assert ready(start_broker({"aclbroker.store": "memory:"}))["store"] == "memory"


def test_a_backup_is_made_while_the_broker_runs_and_restored_when_it_does_not(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    create(broker, "a")
    copy = tmp_path / "copy.db"
    done = store("backup", copy, "--store", broker.store)
    assert (done.returncode, done.stderr) == (0, "")
    assert "which make 1 ACLs" in done.stdout
    create(broker, "b")
    refused = store("restore", copy, "--store", broker.store)
    assert refused.returncode == 1
    assert "stop all brokers that use it first" in refused.stderr
    checked = store("check", "--config", tmp_path / "server.properties")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "It is whole." in checked.stdout
    broker.terminate()
    done = store("restore", copy, "--store", broker.store)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"What was there before is {broker.store}.replaced-" in done.stdout
    broker.start()
    assert names(broker) == ["a"]


def test_a_damaged_store_is_not_served_and_the_commands_say_what_can_be_kept(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    create(broker, *(f"topic-{number}" for number in range(50)))
    broker.terminate()
    data = broker.store.read_bytes()
    place = data.index(b"topic-7\x03User:") + 4
    broker.store.write_bytes(data[:place] + b"k" + data[place + 1 :])
    with pytest.raises(RuntimeError, match=r"those with the ids \d+; the file is damaged"):
        broker.start()
    checked = store("check", "--store", broker.store)
    assert checked.returncode == 1
    assert "topik-7" in checked.stdout
    refused = store("repair", "--store", broker.store)
    assert refused.returncode == 1
    assert "say --accept-lost-acls" in refused.stderr
    done = store("repair", "--store", broker.store, "--accept-lost-acls")
    assert (done.returncode, done.stderr) == (0, "")
    repaired = f"{broker.store}.repaired"
    assert store("restore", repaired, "--store", broker.store).returncode == 0
    broker.start()
    assert len(names(broker)) == 49


def test_an_empty_file_stops_the_start(tmp_path: Path) -> None:
    broker = ThreadBroker(tmp_path)
    broker.store.touch()
    with pytest.raises(RuntimeError, match="is empty \\(0 bytes\\)"):
        broker.start()


def test_a_quiet_store_may_be_copied_as_one_file(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker()
    create(broker, "a", "b")
    log = Path(f"{broker.store}-wal")
    wait_for("a quiet store", lambda: not log.stat().st_size or None, 20)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(broker.store, other)
    assert names(start_broker(directory=other)) == ["a", "b"]


def test_a_store_is_used_by_two_brokers_even_without_the_lock_file(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    Path(f"{broker.store}.lock").unlink()
    copy = broker.store.with_name("copy.db")
    assert store("backup", copy, "--store", broker.store).returncode == 0
    second = start_broker()
    create(broker, "one")
    wait_for("the ACL", lambda: names(second) == ["one"] or None, 10)
    create(second, "other")
    wait_for("the other ACL", lambda: names(broker) == ["one", "other"] or None, 10)
