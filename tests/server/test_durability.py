"""What was acknowledged is there after a crash; what could not be stored is told."""

from __future__ import annotations

import random
import re
import sqlite3
import threading
from pathlib import Path

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.process import wait_for

pytestmark = pytest.mark.broker_process

CRASHES = 20
DAILY_CRASHES = 3
WRITERS = 4


class Writer(threading.Thread):
    """Creates ACLs of new names one after the other, and keeps those that were acknowledged."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(name=name)
        self.acknowledged: list[str] = []
        self.failures: list[int] = []
        self._client = Client(address)

    def run(self) -> None:
        number = 0
        with self._client as client:
            while True:
                name = f"{self.name}-{number}"
                try:
                    [code] = client.create(topic_read(name))
                except ConnectionError:
                    return
                if code:
                    self.failures.append(code)
                else:
                    self.acknowledged.append(name)
                number += 1


def crash_while_writing(broker: Broker, crash: int, acknowledgements: int) -> list[str]:
    """Kill the broker after some acknowledgements; returns the names that were acknowledged."""
    writers = [
        Writer(broker.listeners["PLAINTEXT"], f"crash-{crash}-{number}")
        for number in range(WRITERS)
    ]
    for writer in writers:
        writer.start()

    def enough() -> bool | None:
        return sum(len(writer.acknowledged) for writer in writers) >= acknowledgements or None

    wait_for("acknowledgements", enough, 20)
    broker.kill()
    for writer in writers:
        writer.join()
    assert [writer.failures for writer in writers] == [[]] * WRITERS
    return [name for writer in writers for name in writer.acknowledged]


def test_every_acknowledged_acl_survives_kill_9_each_time(
    start_broker: StartBroker, every_case: bool
) -> None:
    broker = start_broker()
    acknowledged: set[str] = set()
    chance = random.Random(140)
    crashes = CRASHES if every_case else DAILY_CRASHES
    for crash in range(crashes):
        acknowledged |= set(crash_while_writing(broker, crash, chance.randint(1, 150)))
        broker.start()
        with Client(broker.listeners["PLAINTEXT"]) as client:
            assert acknowledged <= set(client.resource_names())
    assert len(acknowledged) >= crashes


def test_a_deletion_survives_kill_9(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("kept"), topic_read("deleted"))
        request = DeleteAclsRequest([DeleteAclsFilter(2, "deleted", 3, None, None, 1, 1)])
        [result] = client.ask(ApiKey.DELETE_ACLS, 3, request).filter_results
        assert [acl.resource_name for acl in result.matching_acls] == ["deleted"]
    broker.kill()
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.resource_names() == ["kept"]


def test_a_store_that_cannot_be_written_is_an_error_and_then_works_again(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("before")) == [0]
        # Somebody else holds the write lock: the operator's own sqlite3 shell, say.
        with sqlite3.connect(broker.store, isolation_level=None) as shell:
            shell.execute("BEGIN IMMEDIATE")
            assert client.create(topic_read("during")) == [ErrorCode.REQUEST_TIMED_OUT]
            assert client.resource_names() == ["before"]
            shell.execute("ROLLBACK")
        shell.close()
        assert client.create(topic_read("after")) == [0]
        assert client.resource_names() == ["after", "before"]
    assert any(event["event"] == "ACLs not changed" for event in broker.events())


def test_a_file_that_is_no_database_stops_the_start_and_is_left_alone(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.store.write_bytes(b"precious notes, not a database" * 100)
    before = broker.store.read_bytes()
    with pytest.raises(RuntimeError, match=re.escape(str(broker.store))):
        broker.start()
    assert broker.store.read_bytes() == before
