"""Writes answers to a transport, large ones piece by piece, as the client reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

from aclbroker.broker.server.holdings import Holdings
from aclbroker.protocol.pieces import Encoded, Pieces

_PIECE: Final = 262_144
"""How much of an answer is written, and perhaps encrypted, before others have their turn."""


def _nobody() -> None:
    """Tell nobody."""


class AnswerWriter:
    """Writes the answers of a connection.

    A large one is among the connection's ``holdings`` until its last piece is written; then
    ``written`` is called. Until then `is_at_work`, and nothing else may be written.
    """

    def __init__(
        self, transport: asyncio.Transport, holdings: Holdings, written: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._holdings = holdings
        self._written = written
        self._loop = asyncio.get_running_loop()
        self._rest: Iterator[bytes | memoryview] | None = None
        self._next: bytes | memoryview = b""
        self.is_writable = True
        """Whether the client reads its answers."""

    @property
    def is_at_work(self) -> bool:
        """Whether there are pieces left of a large answer."""
        return self._rest is not None

    @property
    def is_ready(self) -> bool:
        """Whether the next answer may be written."""
        return self.is_writable and self._rest is None

    def write(self, answers: Sequence[Encoded]) -> None:
        """Write answers, in pieces if they are large."""
        if not answers or self._transport.is_closing():
            return
        size = sum(map(len, answers))
        if size <= _PIECE:
            data = answers[0] if len(answers) == 1 else b"".join(map(bytes, answers))
            self._transport.write(bytes(data))
            return
        self._holdings.answer_begins(size)
        self._rest = chain.from_iterable(map(_chunks, answers))
        self._next = next(self._rest)
        self._write_piece()

    def pass_on(self, data: bytes | bytearray) -> None:
        """Write answers that have come in one read, which are not large."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause(self) -> None:
        """Write nothing until the client has read the former answers."""
        self.is_writable = False

    def resume(self) -> None:
        """Write on, if there is something to write."""
        self.is_writable = True
        self._write_piece()

    def end(self) -> None:
        """Forget the unwritten answers, because the client is gone."""
        self._rest, self._next = None, b""
        self._written = _nobody

    def _write_piece(self) -> None:
        if self._rest is None or not self.is_writable or self._transport.is_closing():
            return
        self._transport.write(self._next)
        following = next(self._rest, None)
        if following is not None:
            self._next = following
            self._loop.call_soon(self._write_piece)
            return
        self._rest, self._next = None, b""
        self._holdings.answer_ends()
        self._written()


def _chunks(answer: Encoded) -> Iterator[bytes | memoryview]:
    pieces = Pieces([answer]) if isinstance(answer, bytes) else answer
    return pieces.chunks(_PIECE)
