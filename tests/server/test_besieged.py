"""All at once: a full disk, a log that nobody reads, no descriptors left, half-sent requests.

A limit on the size of files stands for the full disk: writes fail the same way, and only here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.protocol.errors import ErrorCode
from tests.server.test_doors import SILENT, limited, logs_in
from tests.server.test_stuck_log import EACH_DENIAL, UNREAD, Unread, denied
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.kafka import free_ports
from tests.support.process import wait_for

pytestmark = pytest.mark.thorough

DESCRIPTORS = 128
HALF_SENT = 100
CHANGES = 60
RECOVERS_WITHIN = 30.0

BEFORE = [f"before-{number}" for number in range(3)]


class Friend(threading.Thread):
    """Who has been logged in from the beginning, and lists the ACLs over and over."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.answers = 0
        self.error: Exception | None = None
        self._leaves = threading.Event()
        self._client = Client(address)
        assert logs_in(self._client)

    def run(self) -> None:
        try:
            while not self._leaves.is_set():
                assert set(BEFORE) <= set(self._client.resource_names())
                self.answers += 1
        except Exception as error:  # noqa: BLE001 # told where the test looks
            self.error = error

    def __enter__(self) -> Friend:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaves.set()
        self.join()
        self._client.close()


class Flood(threading.Thread):
    """Opens connections on which the same few bytes come, and one for each that it closes."""

    def __init__(self, address: str, count: int, data: bytes) -> None:
        super().__init__()
        host, _, port = address.rpartition(":")
        self._place = host, int(port)
        self._data = data
        self._ebbs = threading.Event()
        self._open = deque(self._opened() for _ in range(count))

    def run(self) -> None:
        # Refused is who comes when the broker has ended.
        with contextlib.suppress(ConnectionRefusedError):
            while not self._ebbs.wait(0.01):
                self._open.popleft().close()
                self._open.append(self._opened())

    def __enter__(self) -> Flood:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ebbs.set()
        self.join()
        for each in self._open:
            each.close()

    def _opened(self) -> socket.socket:
        opened = socket.create_connection(self._place)
        with contextlib.suppress(ConnectionError):
            opened.sendall(self._data)
        return opened


class Besieged(Unread):
    """A broker with few descriptors and the port of the figures, whose log nobody reads."""

    def __init__(self, directory: Path) -> None:
        [port] = free_ports(1)
        self.figures = f"127.0.0.1:{port}"
        super().__init__(directory, {**EACH_DENIAL, "aclbroker.metrics.address": self.figures})
        limited(self, DESCRIPTORS, DESCRIPTORS)

    @property
    def address(self) -> str:
        return self.listeners["SASL_PLAINTEXT"]

    def page(self, path: str) -> tuple[int, str]:
        """Return a page's status and text."""
        try:
            with urllib.request.urlopen(f"http://{self.figures}{path}", timeout=20) as answer:
                return answer.status, str(answer.read(), "utf-8")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, str(error.read(), "utf-8")

    def limit_files(self, size: int) -> None:
        """Let no file grow beyond a size."""
        limits = (size, resource.RLIM_INFINITY)
        resource.prlimit(self.running.pid, resource.RLIMIT_FSIZE, limits)

    def read_log(self) -> None:
        """Read all of the log from now on."""
        output = self.running.stderr
        assert output is not None
        threading.Thread(target=output.read, daemon=True).start()


@contextlib.contextmanager
def besieged(broker: Besieged) -> Iterator[None]:
    """All at once, with room on the disk for a few changes; strangers leave at the end."""
    denied(broker, UNREAD)
    silent = Flood(broker.address, SILENT, b"")
    half_sent = Flood(broker.figures, HALF_SENT, b"GET /metrics HTTP/1.1\r\nHost: ")
    with silent, half_sent:
        broker.limit_files(max(file.stat().st_size for file in broker.directory.glob("acl.db*")))
        yield


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Besieged]:
    broker = Besieged(tmp_path)
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        assert admin.create(*map(topic_read, BEFORE)) == [0] * len(BEFORE)
    yield broker
    broker.kill()
    assert broker.running.stderr is not None
    broker.running.stderr.close()


def changed(broker: Besieged, client: Client) -> set[str]:
    """Create ACLs until the disk is full to the last byte, and more; return what was stored."""
    stored: set[str] = set()
    refused: set[str] = set()
    for number in range(CHANGES):
        if number == CHANGES // 2:
            broker.limit_files(1)
        name = f"during-{number}"
        [code] = client.create(topic_read(name))
        assert code in (0, ErrorCode.UNKNOWN_SERVER_ERROR)
        (refused if code else stored).add(name)
        assert set(client.resource_names()) == {*BEFORE, *stored}
    assert stored
    assert len(refused) >= CHANGES // 2
    return stored


def kept(directory: Path) -> set[str]:
    """Return the names of the ACLs that a broker finds in the store."""
    broker = Broker(directory)
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        names = set(client.resource_names())
    assert broker.terminate() == 0
    return names


def test_who_is_logged_in_loses_nothing_others_get_in_and_all_recovers(broker: Besieged) -> None:
    with Friend(broker.address) as friend:
        with besieged(broker):
            with Client(broker.address) as late:
                assert logs_in(late)
                stored = changed(broker, late)
            status, figures = broker.page("/metrics")
            assert (status, "aclbroker_lost_log_lines_total" in figures) == (200, True)
            status, problems = broker.page("/readyz")
            assert status == 503
            assert str(broker.store) in problems
            assert "nobody reads it" in problems
            assert len(os.listdir(f"/proc/{broker.running.pid}/fd")) < DESCRIPTORS
            answered = friend.answers
        broker.limit_files(resource.RLIM_INFINITY)
        broker.read_log()
        with Client(broker.address) as client:
            assert logs_in(client)
            assert client.create(topic_read("after")) == [0]
        wait_for("readiness", lambda: broker.page("/readyz")[0] == 200 or None, RECOVERS_WITHIN)
    assert friend.error is None
    assert friend.answers > answered > 0
    assert broker.terminate() == 0
    assert kept(broker.directory) == {*BEFORE, *stored, "after"}


def test_sigterm_ends_it_in_good_order_in_the_midst_of_all(broker: Besieged) -> None:
    with besieged(broker), Client(broker.address) as client:
        assert logs_in(client)
        stored = changed(broker, client)
        assert broker.terminate() == 0
    assert kept(broker.directory) == {*BEFORE, *stored}
