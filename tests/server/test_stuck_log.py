"""A log that nobody reads: clients are answered all the same, and the broker ends when told to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclbroker.broker.observability.log_writer import MOST_WAITING
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client

TOPICS = 500
UNREAD = MOST_WAITING + 4_000_000
"""More than wait to be written, what a pipe holds, and what is on its way to it."""
EACH_DENIAL = {"aclbroker.audit.rollup.seconds": "0", "aclbroker.audit.max.bytes.per.second": "0"}


class Unread(Broker):
    """A broker whose log goes into a pipe, of which only the lines until `ready` are read."""

    def spawn(self) -> None:
        """Start the process."""
        self.process = subprocess.Popen(
            self.command, cwd=self.directory, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def line(self) -> dict[str, Any]:
        """Read a line of the log."""
        assert self.running.stderr is not None
        event: dict[str, Any] = json.loads(self.running.stderr.readline())
        return event

    def _ready_event(self) -> dict[str, Any] | None:
        event = self.line()
        return event if event["event"] == "ready" else None


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[Unread]:
    broker = Unread(tmp_path, EACH_DENIAL)
    broker.start()
    yield broker
    broker.kill()
    assert broker.running.stderr is not None
    broker.running.stderr.close()


def denied(broker: Broker, least_bytes: int) -> int:
    """Have topics denied until the log has as many bytes more; return how many decisions it has."""
    count = 0
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("alice", PASSWORDS["alice"]).error_code == 0
        while count * 200 < least_bytes:
            names = ["x" * 200 + str(count + number) for number in range(TOPICS)]
            request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
            answer = client.ask(ApiKey.METADATA, 9, request)
            assert {topic.error_code for topic in answer.topics} == {29}
            count += TOPICS
    return count


def test_clients_are_answered_and_sigterm_ends_it_while_nobody_reads_the_log(
    unread: Unread,
) -> None:
    denied(unread, UNREAD)
    with Client(unread.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("admin", PASSWORDS["admin"]).error_code == 0
        assert client.resource_names() == []
    assert unread.terminate() == 0


@pytest.mark.thorough
def test_a_reader_who_comes_back_finds_all_lines_or_their_number(unread: Unread) -> None:
    count = denied(unread, UNREAD)
    lost = 0
    while not lost:
        event = unread.line()
        if event["event"] == "log lines lost":
            lost = event["count"]
        else:
            count -= event["event"] == "authorization"
    # A line of the log that is no record, such as of a slow turn, may be among them.
    assert count <= lost < count + 20
    assert denied(unread, 1) == TOPICS
    unread.running.terminate()
    events = []
    while "stopped" not in events:
        events.append(unread.line()["event"])
    assert events.count("authorization") == TOPICS
    assert unread.running.wait(20) == 0
