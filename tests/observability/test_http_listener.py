"""The HTTP listener: one answer a connection, and little for those who send nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from aclbroker.broker.observability import http_listener
from aclbroker.broker.observability.http_listener import CONNECTIONS, HttpListener, Page

HOST = "127.0.0.1"


async def figures() -> Page:
    return Page("figure 1\n", content_type="text/plain; version=1.0.0")


async def broken() -> Page:
    raise ZeroDivisionError


@pytest.fixture
async def listener() -> AsyncIterator[HttpListener]:
    listening = HttpListener(HOST, 0, {"/figures": figures, "/broken": broken})
    yield listening
    listening.close()


async def sent(listener: HttpListener, request: bytes, *, half_closed: bool = False) -> bytes:
    """Send bytes; return all that comes until the server closes its side."""
    reader, writer = await asyncio.open_connection(HOST, listener.port)
    writer.write(request)
    if half_closed:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


FIGURES = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=1.0.0\r\n"
    b"Content-Length: 9\r\nConnection: close\r\n\r\n"
)


@pytest.mark.parametrize(
    "request_line",
    ["GET /figures HTTP/1.1", "GET /figures?name=x HTTP/1.0", "GET /figures HTTP/1.1\r\nHost: x"],
)
@pytest.mark.parametrize("half_closed", [False, True])
async def test_a_page_is_answered_whole(listener, request_line: str, half_closed: bool):
    request = f"{request_line}\r\n\r\n".encode()
    assert await sent(listener, request, half_closed=half_closed) == FIGURES + b"figure 1\n"


async def test_head_has_the_header_alone(listener):
    assert await sent(listener, b"HEAD /figures HTTP/1.1\r\n\r\n") == FIGURES


async def test_a_request_may_come_byte_by_byte_and_its_body_is_not_read(listener):
    reader, writer = await asyncio.open_connection(HOST, listener.port)
    for byte in b"GET /figures HTTP/1.1\r\nAccept: */*\r\n\r\nGET /broken HTTP/1.1\r\n\r\n":
        writer.write(bytes([byte]))
        await writer.drain()
    assert await reader.read() == FIGURES + b"figure 1\n"
    writer.close()


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", 404),
        (b"GET /figures/ HTTP/1.1", 404),
        (b"POST /nothing HTTP/1.1", 404),
        (b"GET /\xff\xfe HTTP/1.1", 404),
        (b"POST /figures HTTP/1.1", 405),
        (b"get /figures HTTP/1.1", 405),
        (b"GET /figures", 400),
        (b"GET /figures HTTP/2.0", 400),
        (b"GET  /figures HTTP/1.1", 400),
        (b"\x16\x03\x01", 400),
        (b"", 400),
        (b"GET /figures HTTP/1.1\r\nX: " + b"x" * 9_000, 431),
        (b"GET /broken HTTP/1.1", 500),
    ],
)
async def test_anything_else_is_refused(listener, request_line: bytes, status: int, caplog):
    answer = await sent(listener, request_line + b"\r\n\r\n")
    assert answer.startswith(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode())
    assert (b"\r\nAllow: GET, HEAD\r\n" in answer) is (status == 405)


async def test_a_header_without_end_is_refused_before_it_is_large(listener):
    assert (await sent(listener, b"GET /figures HTTP/1.1\r\nX: " + b"x" * 9_000)).startswith(
        b"HTTP/1.1 431 "
    )


async def test_a_request_that_does_not_come_in_time_is_refused(monkeypatch):
    monkeypatch.setattr(http_listener, "_REQUEST_SECONDS", 0.01)
    listening = HttpListener(HOST, 0, {})
    assert (await sent(listening, b"GET /figures HTTP/1.1\r\n")).startswith(b"HTTP/1.1 408 ")
    listening.close()


async def test_who_does_not_take_an_answer_is_closed(monkeypatch):
    monkeypatch.setattr(http_listener, "_ANSWER_SECONDS", 0.01)

    async def endless() -> Page:
        return Page("x" * 20_000_000)

    listening = HttpListener(HOST, 0, {"/": endless})
    reader, writer = await asyncio.open_connection(HOST, listening.port, limit=1)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    while not listening._open:
        await asyncio.sleep(0)
    while listening._open:
        await asyncio.sleep(0.01)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(20_000_000)
    writer.close()
    listening.close()


async def test_of_too_many_that_send_nothing_the_oldest_go_and_one_who_asks_is_answered(listener):
    half = b"GET /figures HTTP/1.1\r\nHost: "
    others = []
    for _ in range(3 * CONNECTIONS):
        others.append(await asyncio.open_connection(HOST, listener.port))
        others[-1][1].write(half)
    answer = await sent(listener, b"GET /figures HTTP/1.1\r\n\r\n")
    assert answer.endswith(b"figure 1\n")
    assert len(listener._open) <= CONNECTIONS
    for reader, writer in others[: 2 * CONNECTIONS]:
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
    for _, writer in others[2 * CONNECTIONS :]:
        writer.close()


async def test_who_is_being_answered_stays_while_others_send_nothing():
    asked, may_end = asyncio.Event(), asyncio.Event()

    async def slow() -> Page:
        asked.set()
        await may_end.wait()
        return Page("figure 1\n")

    listening = HttpListener(HOST, 0, {"/figures": slow})
    answer = asyncio.create_task(sent(listening, b"GET /figures HTTP/1.1\r\n\r\n"))
    await asked.wait()
    others = [
        await asyncio.open_connection(HOST, listening.port) for _ in range(2 * CONNECTIONS + 1)
    ]
    # The first of them is gone when all that came behind it are there.
    assert await others[CONNECTIONS][0].read() == b""
    may_end.set()
    assert (await answer).endswith(b"figure 1\n")
    for _, writer in others:
        writer.close()
    listening.close()


async def test_of_too_many_that_are_being_answered_the_oldest_goes():
    may_end = asyncio.Event()

    async def slow() -> Page:
        await may_end.wait()
        return Page("figure 1\n")

    listening = HttpListener(HOST, 0, {"/figures": slow})
    request = b"GET /figures HTTP/1.1\r\n\r\n"
    opened = []
    for _ in range(CONNECTIONS):
        opened.append(await asyncio.open_connection(HOST, listening.port))
        opened[-1][1].write(request)
    while sum(each.is_at_work for each in listening._open) < CONNECTIONS:
        await asyncio.sleep(0)
    latest = asyncio.create_task(sent(listening, request))
    assert await opened[0][0].read() == b""
    may_end.set()
    assert (await latest).endswith(b"figure 1\n")
    assert (await opened[1][0].read()).endswith(b"figure 1\n")
    for _, writer in opened:
        writer.close()
    listening.close()


async def test_without_descriptors_it_waits_and_goes_on(listener, monkeypatch):
    class Full:
        """The listening socket, which once has no descriptor for a connection."""

        def __init__(self, socket) -> None:
            self.socket = socket
            self.refused = 0

        def fileno(self) -> int:
            return int(self.socket.fileno())

        def accept(self):
            if not self.refused:
                self.refused += 1
                raise OSError(24, "Too many open files")
            return self.socket.accept()

        def close(self) -> None:
            self.socket.close()

    listener._socket = full = Full(listener._socket)
    assert (await sent(listener, b"GET /figures HTTP/1.1\r\n\r\n")).endswith(b"figure 1\n")
    assert full.refused == 1
