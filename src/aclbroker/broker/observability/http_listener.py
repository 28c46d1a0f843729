"""A small HTTP server for a few pages that programs read: figures, and whether the broker is well.

It answers one request a connection, reads no body, and bounds what a stranger can take:
connections, bytes, time. It is ours since none of the libraries at hand
bounds all three: prometheus_client has a thread for each connection, and aiohttp waits for as long
as it takes for the header of a request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, cast

CONNECTIONS: Final = 32
"""How many connections there may be; for one more one is closed that waits for its client."""

_BACKLOG: Final = 1_024
"""How many may wait in the system's queue; who finds it full tries again only after a second."""

_HEADER_BYTES: Final = 8_192
_REQUEST_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.1

_END_OF_HEADER: Final = b"\r\n\r\n"
_METHODS: Final = (b"GET", b"HEAD")


class Page(NamedTuple):
    """What is answered."""

    text: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    more: tuple[str, ...] = ()
    """More lines of the answer's header."""


class Asked(NamedTuple):
    """What a command is asked with: the query of its target, and the header's fields.

    The names of fields are in small letters; a field that came several times has all its values,
    separated by commas.
    """

    query: str
    header: Mapping[str, str]


Pages = Mapping[str, Callable[[], Awaitable[Page]]]
"""What makes the page of each path, for GET and HEAD."""

Commands = Mapping[str, Mapping[str, Callable[[Asked], Page]]]
"""What is done at once at a path that is no page, by method."""


class HttpListener:
    """Serves pages at an address, from when it is made. Raises `OSError` if it cannot be bound."""

    def __init__(
        self, host: str, port: int, pages: Pages, commands: Commands = MappingProxyType({})
    ) -> None:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self._socket = socket.create_server(address, family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._pages = pages
        self._commands = commands
        self._open: dict[_Exchange, None] = {}  # in the order in which they came
        self._opening: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for exchange in list(self._open):
            exchange.abort()

    def _listen(self) -> None:
        self._timer = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        """Accept one connection. If more wait, the loop calls this again in its next turn."""
        if len(self._open) >= CONNECTIONS:
            # It leaves in a later turn, and until then nobody comes in.
            self._leaving().abort()
            return
        try:
            peer, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError:
            # No descriptor is left, which the listeners of clients log and mend.
            self._loop.remove_reader(self._socket)
            self._timer = self._loop.call_later(_RETRY_SECONDS, self._listen)
            return
        peer.setblocking(False)
        exchange = _Exchange(self._pages, self._commands, self._leave)
        self._open[exchange] = None
        task = asyncio.create_task(self._begin(exchange, peer))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _begin(self, exchange: _Exchange, peer: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: exchange, peer)
        except OSError:
            peer.close()
            self._leave(exchange)

    def _leaving(self) -> _Exchange:
        """Return the oldest that waits for its client; if all are being answered, the oldest."""
        oldest = next(iter(self._open))
        return next((each for each in self._open if not each.is_at_work), oldest)

    def _leave(self, exchange: _Exchange) -> None:
        self._open.pop(exchange, None)


class _Exchange(asyncio.Protocol):
    """One connection, which has one request and its answer; ``ended`` is told when it is gone."""

    def __init__(
        self, pages: Pages, commands: Commands, ended: Callable[[_Exchange], None]
    ) -> None:
        self._pages = pages
        self._commands = commands
        self._ended = ended
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._page: asyncio.Task[None] | None = None
        self._is_read = False
        self._is_answered = False
        self._has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request."""
        self._transport = cast(asyncio.Transport, transport)
        self._wait(_REQUEST_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Take in a part of the request, and answer it when it is complete."""
        if self._is_read:
            return
        self._received += data
        header, end, _ = self._received.partition(_END_OF_HEADER)
        if len(header) > _HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif end:
            line, _, fields = header.partition(b"\r\n")
            self._answer(line.split(b" "), fields)

    def eof_received(self) -> bool:
        """Note that no more comes; true keeps the connection while the page is made."""
        self._has_ended = True
        return self.is_at_work

    @property
    def is_at_work(self) -> bool:
        """Whether the request has come and its answer is being made."""
        return self._page is not None and not self._is_answered

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone."""
        self._transport = None
        for work in (self._timer, self._page):
            if work is not None:
                work.cancel()
        self._ended(self)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _answer(self, request: list[bytes], fields: bytes) -> None:
        if len(request) != 3 or not request[2].startswith(b"HTTP/1."):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        method, target, _ = request
        path, _, query = target.decode("latin-1").partition("?")
        if path in self._commands:
            self._obey(self._commands[path], method, Asked(query, _fields(fields)))
        elif path not in self._pages:
            self._refuse(HTTPStatus.NOT_FOUND)
        elif method not in _METHODS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, ("Allow: GET, HEAD",))
        else:
            self._is_read = True
            self._wait(_ANSWER_SECONDS, self.abort)
            self._page = asyncio.create_task(self._send_page(path, method == b"GET"))

    def _obey(
        self, commands: Mapping[str, Callable[[Asked], Page]], method: bytes, asked: Asked
    ) -> None:
        command = commands.get(method.decode("latin-1"))
        if command is None:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, (f"Allow: {', '.join(commands)}",))
        elif asked.header.get("content-length", "0") != "0" or "transfer-encoding" in asked.header:
            # What it says would be left out without a word.
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._wait(_ANSWER_SECONDS, self.abort)
            self._send(command(asked))

    async def _send_page(self, path: str, has_body: bool) -> None:
        try:
            page = await self._pages[path]()
        except Exception:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR)
            raise
        self._send(page, has_body)

    def _too_slow(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus, more: tuple[str, ...] = ()) -> None:
        self._wait(_ANSWER_SECONDS, self.abort)
        self._send(Page(f"{status.value} {status.phrase}\n", status, more=more))

    def _send(self, page: Page, has_body: bool = True) -> None:
        """Send an answer, and wait for the client to close: it may not have read all of it yet."""
        self._is_read = self._is_answered = True
        self._received = b""
        if self._transport is None or self._transport.is_closing():
            return
        body = page.text.encode()
        header = [
            f"HTTP/1.1 {page.status.value} {page.status.phrase}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *page.more,
        ]
        self._transport.write("\r\n".join((*header, "", "")).encode() + (body if has_body else b""))
        if self._has_ended:
            self._transport.close()
        else:
            self._transport.write_eof()

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)


def _fields(text: bytes) -> dict[str, str]:
    """Return the fields of a header by their names in small letters."""
    found: dict[str, str] = {}
    for line in text.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
