"""What a broker with workers is made of, each part by itself."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.server.workers.handing import Handing
from aclbroker.broker.server.workers.team import Team
from aclbroker.broker.stores.waking import Wakeup

DOOR: Any = SimpleNamespace(opened=lambda _: None, closed=lambda _: None)


def test_a_forked_process_that_fails_says_why():
    program = "from aclbroker.broker.server.workers import nursery; nursery._end_with(int, 'one')"
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"Traceback" in ended.stderr
    assert b"ValueError: invalid literal for int() with base 10: 'one'" in ended.stderr


async def test_connections_wait_for_a_worker_that_has_room_and_have_it_in_their_order():
    team: Any = SimpleNamespace(ready=[], changed=Wakeup())
    handing = Handing(team, 2)
    taking = [asyncio.create_task(handing.take(DOOR, str(number))) for number in range(4)]
    taken = []
    for each in taking:
        each.add_done_callback(lambda done: taken.append(done.result().host))

    def begins(name: Any) -> None:
        handing.handlers(name)
        team.ready.append(name)
        team.changed.wake()

    await _turns()
    begins("one")
    await _turns()
    assert taken == ["0", "1"]
    handing.closed(taking[0].result())
    await _turns()
    assert taken == ["0", "1", "2"]
    team.ready.remove("one")
    handing.leave("one")  # type: ignore[arg-type]
    begins("other")
    await _turns()
    assert taken == ["0", "1", "2", "3"]


async def _turns() -> None:
    """Let all go on that can without waiting for time to pass."""
    for _ in range(20):
        await asyncio.sleep(0)


class Forked:
    """A team of one, whose processes are this one: it has their ends of all sockets."""

    def __init__(self) -> None:
        self.team = Team(1, self.begin, self.welcome, self.nothing, self.nothing)
        self.messages: list[socket.socket] = []
        self.hands: list[socket.socket] = []

    def begin(self, _number: int, sockets: Any) -> None:
        for kept, each in zip((self.messages, self.hands), sockets, strict=True):
            kept.append(each.dup())
            each.close()

    async def welcome(self) -> None:
        pass

    def nothing(self, _worker: Any) -> None:
        pass

    def tell(self, name: str, value: Any) -> None:
        data = json.dumps([4, 1, name, value]).encode()
        self.messages[-1].sendall(len(data).to_bytes(4, "big") + data)

    async def serves(self) -> None:
        """Let the latest process say that it serves."""
        self.tell("hello", None)
        self.tell("ready", {})
        await self.team.until(lambda: bool(self.team.ready))

    async def until_replaced(self) -> None:
        async with asyncio.timeout(10):
            while len(self.messages) < 2:
                await asyncio.sleep(0)


@pytest.fixture
async def forked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Forked]:
    monkeypatch.setattr("aclbroker.broker.server.workers.team._LONG_S", 0)
    made = Forked()
    loading = asyncio.create_task(made.team.load(first_alone=False))
    while not made.messages:
        await asyncio.sleep(0)
    await made.serves()
    await made.team.serve()
    yield made
    loading.cancel()
    for each in made.messages:
        each.close()
    await made.team.stop(10)
    for each in made.hands:
        each.close()


async def test_a_worker_whose_message_cannot_be_taken_is_replaced(forked: Forked):
    with capture_logs() as logs:
        forked.tell("nonsense", 1)
        await forked.until_replaced()
    assert [each["event"] for each in logs] == [
        "worker failed",
        "worker ended; another takes its place",
    ]
    assert not forked.team.ready
    await forked.serves()


async def test_who_hands_a_connection_on_to_a_worker_that_dies_is_told_so(forked: Forked):
    worker = forked.team.workers[0]
    peer, other = socket.socketpair()
    with peer, other:
        # More than the socket takes, so that some wait for room in it.
        handing = [asyncio.create_task(worker.hand(peer, b"x")) for _ in range(1000)]
        while not all(each.done() for each in handing[:1]):
            await asyncio.sleep(0)
        await _turns()
        forked.messages[0].close()
        ended = await asyncio.gather(*handing, return_exceptions=True)
    assert {type(each) for each in ended} == {type(None), ConnectionResetError}
    await forked.until_replaced()
    await forked.serves()
