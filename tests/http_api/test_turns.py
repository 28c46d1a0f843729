"""The HTTP API reads and writes JSON in turns, so that a long body or list does not block."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from itertools import count
from typing import Any

import pytest

from aclbroker.broker.http_api.asking import authorize_request_of
from aclbroker.broker.http_api.messages import list_json
from aclbroker.broker.http_api.reading import parsed
from aclbroker.broker.http_api.registry import clusters_of
from aclbroker.broker.http_api.scheduling import next_turn
from aclbroker.broker.turns import Turns
from tests.http_api.test_registry import cluster

ACTION = {
    "scope": {"clusters": {"kafka-cluster": "k"}},
    "resourceName": "t",
    "resourceType": "Topic",
    "operation": "Read",
}


def short_turns() -> Turns:
    """Return turns that are over at the first check."""
    seconds = count()
    return Turns(clock=lambda: float(next(seconds)))


def listed() -> list[bytes]:
    return list(list_json(['"x"'] * 1_000))


@pytest.mark.parametrize(
    ("work", "given"),
    [
        (parsed, (json.dumps([{"a": 1}] * 1_000).encode(),)),
        (authorize_request_of, ({"userPrincipal": "User:a", "actions": [ACTION] * 1_000},)),
        (clusters_of, ([cluster(f"n{number}", f"k{number}") for number in range(100)],)),
        (listed, ()),
    ],
    ids=["body", "actions", "clusters", "list"],
)
async def test_long_work_goes_on_in_a_later_turn_with_the_same_result(
    work: Any, given: Any
) -> None:
    made = short_turns().run("User:a", work, *given)
    assert isinstance(made, Awaitable)
    assert await made == work(*given)


async def test_calls_that_come_when_a_turn_is_over_begin_in_later_ones() -> None:
    turns, log = short_turns(), []

    async def call(name: str) -> None:
        await next_turn(turns, "192.0.2.7")
        log.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name in "ab":
            tasks.create_task(call(name))
        asyncio.get_running_loop().call_soon(log.append, "another client")
    assert log == ["a", "another client", "b"]
