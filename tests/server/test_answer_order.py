"""Requests of one connection that a backend answers later: they overlap, and answers keep order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.server.answer_queue import MOST_AT_WORK
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.server.test_connection import connect, small, turns
from tests.support.client import request_frame

__all__ = ["connect"]


class Upstream:
    """Answers Metadata when the test says so: ``asked`` has the futures, in order."""

    def __init__(self, parts: Services) -> None:
        self.asked: list[asyncio.Future[Any]] = []
        parts.answers[ApiKey.METADATA] = self._answer

    def _answer(self, _rights: Any, _request: Any) -> Later:
        self.asked.append(asyncio.get_running_loop().create_future())
        return Later(self.asked[-1])

    def answer(self, *numbers: int) -> None:
        for number in numbers:
            self.asked[number].set_result(MetadataResponse())


def metadata(number: int, topics: int = 1) -> bytes:
    asked = [MetadataRequestTopic(name=f"topic-{n}") for n in range(topics)]
    return request_frame(ApiKey.METADATA, 12, MetadataRequest(asked), number)


@pytest.mark.parametrize("topics", [1, 500], ids=["short", "long"])
async def test_requests_overlap_and_their_answers_leave_in_order(connect, topics: int):
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(b"".join(metadata(number, topics) for number in range(3)))
    assert await turns(wire) == []
    assert len(upstream.asked) == 3
    upstream.answer(2, 1)
    assert await turns(wire) == []
    upstream.answer(0)
    assert await turns(wire) == [0, 1, 2]


async def test_an_answer_of_the_broker_itself_waits_for_the_earlier_ones(connect):
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(metadata(0) + small(1) + metadata(2))
    assert await turns(wire) == []
    upstream.answer(1, 0)
    assert await turns(wire) == [0, 1, 2]


async def test_a_request_that_the_broker_itself_is_working_on_is_waited_for(connect):
    upstream = Upstream(connect.parts)
    change: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def changing() -> Any:
        return await change

    connect.parts.answers[ApiKey.DESCRIBE_ACLS] = lambda *_: changing()
    connection, wire = connect()
    connection.data_received(metadata(0) + small(1) + metadata(2))
    assert await turns(wire) == []
    assert len(upstream.asked) == 1, "the request behind the change has not begun"
    upstream.answer(0)
    assert await turns(wire) == [0]
    change.set_result(b"")
    assert await turns(wire) == [1]
    upstream.answer(1)
    assert await turns(wire) == [2]


async def test_a_request_behind_finished_work_of_the_broker_need_not_wait_for_earlier_answers(
    connect,
):
    upstream = Upstream(connect.parts)

    async def changing() -> bytes:
        return b""

    connect.parts.answers[ApiKey.DESCRIBE_ACLS] = lambda *_: changing()
    connection, wire = connect()
    connection.data_received(metadata(0) + small(1) + metadata(2))
    assert await turns(wire) == []
    assert len(upstream.asked) == 2
    upstream.answer(0, 1)
    assert await turns(wire) == [0, 1, 2]


async def test_a_failure_closes_the_connection_after_the_earlier_answers(connect):
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(b"".join(map(metadata, range(3))))
    upstream.asked[1].set_exception(RuntimeError("upstream is gone"))
    assert await turns(wire) == []
    assert not wire.closed
    upstream.answer(2, 0)
    assert await turns(wire) == [0]
    assert wire.closed


async def test_no_more_requests_are_at_work_than_the_limit(connect):
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(b"".join(map(metadata, range(MOST_AT_WORK + 5))))
    assert await turns(wire) == []
    assert len(upstream.asked) == MOST_AT_WORK
    upstream.answer(0, 1)
    assert await turns(wire) == [0, 1]
    assert len(upstream.asked) == MOST_AT_WORK + 2


async def test_the_end_of_the_client_is_noted_once_when_all_its_requests_have_ended(
    connect, monkeypatch: pytest.MonkeyPatch
):
    told: list[object] = []
    monkeypatch.setattr(Services, "disconnected", lambda _, session: told.append(session))
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(b"".join(map(metadata, range(3))))
    connection.connection_lost(None)
    assert told == []
    assert await turns(wire) == []
    assert len(told) == 1
    assert all(asked.cancelled() for asked in upstream.asked)


async def test_a_connection_that_stops_answers_the_requests_at_work_first(connect):
    upstream = Upstream(connect.parts)
    connection, wire = connect()
    connection.data_received(metadata(0) + metadata(1))
    connection.stop()
    assert not wire.closed
    upstream.answer(1, 0)
    assert await turns(wire) == [0, 1]
    assert wire.closed
