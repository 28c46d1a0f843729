"""The body of a call: which error a client gets when the server cannot read it in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aclbroker.broker.http_api import bodies
from aclbroker.broker.http_api.errors import ApiError

HEADERS = b"Host: x\r\nContent-Type: application/json\r\nContent-Length: 70000\r\n"
HALF_A_CALL = b"POST / HTTP/1.1\r\n" + HEADERS + b"\r\n{"


@asynccontextmanager
async def room(_size: int) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def no_room(_size: int) -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


@pytest.mark.parametrize(("available", "status"), [(room, b"408"), (no_room, b"503")])
async def test_a_slow_client_gets_408_and_a_client_without_room_on_the_server_503(
    available: bodies.Room, status: bytes, monkeypatch: pytest.MonkeyPatch
):
    async def answer(request: web.Request) -> web.Response:
        try:
            return web.Response(body=await bodies.body_of(request, available))
        except ApiError as error:
            return bodies.refusal_of(error)

    monkeypatch.setattr(bodies, "_BODY_SECONDS", 0.05)
    application = web.Application()
    application.router.add_post("/", answer)
    async with TestServer(application) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(HALF_A_CALL)
        assert status in await reader.readline()
        writer.close()
        await writer.wait_closed()
