"""Reads the requests of a connection, and stops reading while too much of it is unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aclbroker.broker.server.holdings import Holdings
from aclbroker.protocol.wire import FrameReader

_READ_AHEAD: Final = 65_536


class RequestReader:
    """Reads from a transport, as fast as the connection answers.

    ``frames`` cuts the bytes into requests. A large request that arrives is among the ``holdings``.
    """

    def __init__(self, transport: asyncio.Transport, holdings: Holdings, limit: int) -> None:
        self.frames = FrameReader(limit)
        self._transport = transport
        self._holdings = holdings
        self._is_reading = True
        self._has_ended = False

    def end(self) -> None:
        """Note that the client sends no more."""
        self._has_ended = True

    def read_on(self, is_ready: Callable[[], bool], *, is_stopping: bool) -> None:
        """Read on or stop reading; ``is_ready`` returns whether the next request may begin.

        A connection that ``is_stopping`` holds nothing more, which nothing would give back.
        """
        frames = self.frames
        if not frames.buffered and self._is_reading:
            return
        if not is_stopping:
            self._holdings.reserve(frames.announced)
        is_reading = not self._holdings.awaits_room and (
            frames.buffered <= _READ_AHEAD or is_ready()
        )
        if is_reading is self._is_reading or self._has_ended or self._transport.is_closing():
            return
        self._is_reading = is_reading
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
