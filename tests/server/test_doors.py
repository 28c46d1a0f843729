"""Strangers in numbers: who knows a password gets in at once, whatever they hold open."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from aclbroker.broker.config import load
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.listening import ConnectionQuotas, ListeningSocket
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client

SILENT = 400


def limited(broker: Broker, soft: int, hard: int) -> Broker:
    """Return the broker with limits of descriptors of its own."""
    limits = f"ulimit -Sn {soft} && ulimit -Hn {hard} && exec"
    broker.command = ["/bin/sh", "-c", f'{limits} "$@"', "sh", *broker.command]
    return broker


@pytest.fixture
def limited_broker(tmp_path: Path) -> Iterator[Broker]:
    started = Broker(tmp_path)
    yield started
    if started.process is not None and started.process.poll() is None:
        assert started.terminate() == 0


def logs_in(client: Client) -> bool:
    return not client.login("admin", PASSWORDS["admin"]).error_code


def test_the_soft_limit_of_descriptors_is_raised_to_the_hard_one(limited_broker: Broker) -> None:
    limited(limited_broker, 128, 4096).start()
    limits = Path(f"/proc/{limited_broker.running.pid}/limits").read_text()
    assert re.search(r"^Max open files +4096 +4096 ", limits, re.MULTILINE)
    [raised] = [each for each in limited_broker.events() if "raised" in each["event"]]
    assert (raised["before"], raised["limit"]) == (128, 4096)
    with ExitStack() as opened:
        address = limited_broker.listeners["SASL_PLAINTEXT"]
        silent = [opened.enter_context(Client(address)) for _ in range(SILENT)]
        assert logs_in(opened.enter_context(Client(address)))
        assert logs_in(silent[0])


def test_silent_connections_without_end_take_no_descriptor_from_a_login_or_the_store(
    limited_broker: Broker,
) -> None:
    limit = 128
    limited(limited_broker, limit, limit).start()
    address = limited_broker.listeners["SASL_PLAINTEXT"]
    with ExitStack() as opened:
        friend = opened.enter_context(Client(address))
        assert logs_in(friend)
        for _ in range(SILENT):
            opened.enter_context(Client(address))
        late = opened.enter_context(Client(address))
        assert logs_in(late)
        assert friend.resource_names() == late.resource_names() == []
        held = os.listdir(f"/proc/{limited_broker.running.pid}/fd")
        assert len(held) <= limit - limit // 4
    events = [each["event"] for each in limited_broker.events()]
    assert "accept failed" not in events


@pytest.mark.parametrize("prefix", ["", "listener.name.sasl_plaintext."])
def test_a_login_finds_room_where_max_connections_are_open_and_silent(
    start_broker: StartBroker, prefix: str
) -> None:
    broker = start_broker({f"{prefix}max.connections": "20"})
    address = broker.listeners["SASL_PLAINTEXT"]
    with ExitStack() as opened:
        friends = [opened.enter_context(Client(address)) for _ in range(10)]
        assert all(map(logs_in, friends))
        silent = [opened.enter_context(Client(address)) for _ in range(60)]
        assert logs_in(silent[-1])
        assert all(each.is_closed() for each in silent[:-10])
        assert all(friend.resource_names() == [] for friend in friends)
    reasons = [each.get("reason", "") for each in broker.events()]
    assert any(reason.startswith("made room: 20 connections ") for reason in reasons)


def test_who_has_authenticated_is_never_closed_for_another(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connections": "3"})
    address = broker.listeners["SASL_PLAINTEXT"]
    with ExitStack() as opened:
        friends = [opened.enter_context(Client(address)) for _ in range(3)]
        assert all(map(logs_in, friends))
        waiting = opened.enter_context(Client(address))
        assert all(friend.resource_names() == [] for friend in friends)
        friends[1].close()
        assert logs_in(waiting)
        assert friends[0].resource_names() == friends[2].resource_names() == []


def test_a_login_by_a_large_token_passes_silent_ones_that_take_all_the_room(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    address = broker.listeners["SASL_PLAINTEXT"]
    largest = 512 * 1024
    with ExitStack() as opened:
        for _ in range(64):
            opened.enter_context(Client(address)).send(largest.to_bytes(4))
        # A connection answered after them: the broker has read what they announced.
        opened.enter_context(Client(address)).handshake("PLAIN")
        client = opened.enter_context(Client(address))
        assert client.login("nobody", "x" * 200_000).error_code == 58
        assert logs_in(opened.enter_context(Client(address)))
    reasons = [event.get("reason", "") for event in broker.events()]
    assert sum("others wait for the room" in reason for reason in reasons) == 1


class Stranger:
    """A connection that leaves when it is told to."""

    host = "192.0.2.1"

    def __init__(self) -> None:
        self.told: list[str] = []

    def stop(self) -> None:
        """Not used here."""

    def abort(self) -> None:
        """Not used here."""

    def give_way(self, why: str) -> None:
        self.told.append(why)

    def regroup(self) -> bool:
        return False


async def test_without_descriptors_the_oldest_stranger_goes_and_the_next_is_accepted() -> None:
    """The system's refusal is made up: elsewhere room is made before it comes to that."""
    listener = load(None, {"listeners": "PLAINTEXT://127.0.0.1:0"}).listeners[0]
    quotas = ConnectionQuotas(9, 9, {}, 9, Metrics())
    lines = LimitedLog(asyncio.get_running_loop().time)
    bound = ListeningSocket(listener, 9, quotas, lines, lambda *told: pytest.fail("accepted"))
    oldest, younger = Stranger(), Stranger()
    for each in (oldest, younger):
        assert await quotas.admit(listener, each.host)
        quotas.opened(each, listener)
    with Client(f"127.0.0.1:{bound.port}"):
        task = asyncio.create_task(
            bound._not_accepted(OSError(errno.EMFILE, "Too many open files"))
        )
        while not oldest.told:
            await asyncio.sleep(0)
        assert not task.done()
        quotas.closed(oldest, listener)
        await task
    bound.close()
    assert oldest.told == ["no more connections can be opened: Too many open files"]
    assert younger.told == []
