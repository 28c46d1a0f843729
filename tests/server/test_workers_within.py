"""A broker with workers, all in one process: what its parts say to each other, without forks."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from aclbroker.broker.config import load
from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.hangup import Hangup
from aclbroker.broker.server.start import Start
from aclbroker.broker.server.start_error import StartError
from aclbroker.broker.server.workers.owner import Owner
from aclbroker.broker.server.workers.worker import WorkerProcess
from tests.server.teams import DENIED, cluster_describe, delete_of, described
from tests.support.accounts import AUTHORIZER, PASSWORDS, SASL_PLAIN, properties_text
from tests.support.client import Client, topic_read

pytestmark = pytest.mark.broker_process

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "aclbroker.workers": "2",
    "aclbroker.store": "memory:",
    "aclbroker.metrics.address": "127.0.0.1:0",
    **AUTHORIZER,
    **SASL_PLAIN,
}


class NoHangup(Hangup):
    """It leaves the signals of these tests alone."""

    def __init__(self) -> None:
        self.has_come = False


class Nursery:
    """Its workers are tasks of this process."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.lock = LineLock()
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self, number: int, sockets: Any) -> None:
        messages, hands = sockets
        made = WorkerProcess(self.start, self.lock, number, hands)
        self.tasks.append(asyncio.create_task(made.serve(messages)))


class Within:
    """A running broker with workers within this process."""

    def __init__(self, owner: Owner, told: Any, file: Path, ready_file: Path) -> None:
        self.owner = owner
        self._told = told
        self.file = file
        self.listeners: dict[str, str] = json.loads(ready_file.read_text())["listeners"]

    def events(self) -> list[dict[str, Any]]:
        lines = self._told.readouterr().err.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def page(self, address: str, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
                return answer.status, str(answer.read(), "utf-8")
        except HTTPError as error:
            return error.code, str(error.read(), "utf-8")

    def logged_in(self, user: str, password: str = "") -> Client:
        client = Client(self.listeners["SASL_PLAINTEXT"])
        assert client.login(user, password or PASSWORDS[user]).error_code == 0
        return client


@asynccontextmanager
async def running(
    directory: Path, told: Any, settings: dict[str, str] | None = None
) -> AsyncIterator[Within]:
    file, ready_file = directory / "server.properties", directory / "ready.json"
    file.write_text(properties_text(SETTINGS | (settings or {})))
    read = partial(load, str(file))
    start = Start(read(), configure(form="json"), read, NoHangup(), ready_file)
    nursery = Nursery(start)
    owner = Owner(start, nursery)  # type: ignore[arg-type]
    async with AsyncExitStack() as stack:
        owner.show(stack)
        stack.push_async_callback(owner.end)
        await owner.begin()
        yield Within(owner, told, file, ready_file)
    await asyncio.gather(*nursery.tasks)


async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
    async with asyncio.timeout(60):
        return await asyncio.to_thread(work, *args)


async def test_changes_limits_and_figures_are_those_of_all_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(
        tmp_path, capsys, {"aclbroker.max.unauthenticated.connections": "3"}
    ) as broker:

        def use() -> None:
            [metrics] = [each for each in broker.events() if each["event"] == "metrics"]
            with ExitStack() as opened:
                admin = opened.enter_context(Client(broker.listeners["PLAINTEXT"]))
                alices = [opened.enter_context(broker.logged_in("alice")) for _ in range(4)]
                assert [described(each) for each in alices] == [DENIED] * 4
                assert admin.create(cluster_describe()) == [0]
                assert [described(each) for each in alices] == [0] * 4
                assert delete_of(admin, "User:alice").filter_results[0].error_code == 0
                assert [described(each) for each in alices] == [DENIED] * 4
                address = broker.listeners["SASL_PLAINTEXT"]
                strangers = [opened.enter_context(Client(address)) for _ in range(5)]
                assert [each.is_closed() for each in strangers[:2]] == [True, True]
                status, page = broker.page(metrics["address"], "/metrics")
                assert status == 200
                assert 'outcome="succeeded"} 4.0' in page
                assert 'aclbroker_connections{listener="SASL_PLAINTEXT"} 7.0' in page
                assert broker.page(metrics["address"], "/readyz") == (200, "ready\n")

        await in_thread(use)


async def test_a_new_configuration_is_taken_over_by_all_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tmp_path, capsys) as broker:
        text = broker.file.read_text()
        broker.file.write_text(text.replace(PASSWORDS["bob"], "other-secret"))
        broker.owner.renew()
        reloaded = 0
        async with asyncio.timeout(30):
            while reloaded < 2:
                events = [each["event"] for each in broker.events()]
                reloaded += events.count("configuration reloaded")
                await asyncio.sleep(0.05)
        for _ in range(2):
            client = await in_thread(broker.logged_in, "bob", "other-secret")
            client.close()


async def test_changes_that_wait_are_made_before_all_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = {"aclbroker.store": f"sqlite:///{tmp_path}/acl.db"}
    async with running(tmp_path, capsys, store) as broker:
        with Client(broker.listeners["PLAINTEXT"]) as client:
            assert await in_thread(client.create, topic_read("kept")) == [0]
    async with running(tmp_path, capsys, store) as broker:
        with Client(broker.listeners["PLAINTEXT"]) as client:
            assert await in_thread(client.resource_names) == ["kept"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"aclbroker.audit.file": "/nowhere/audit.log"}, "aclbroker.audit.file=/nowhere"),
        ({"aclbroker.store": "sqlite:////nowhere/acl.db"}, "/nowhere"),
        ({"listeners": "PLAINTEXT://192.0.2.1:1"}, "cannot listen"),
    ],
)
async def test_the_start_fails_with_the_reason_of_the_worker_or_owner(
    settings: dict[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StartError, match=told):
        async with running(tmp_path, capsys, settings):
            pass
