"""The requests of one client on their way to a broker upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aclbroker.broker.backends.backend import Answers
from aclbroker.broker.backends.upstream.access import UpstreamUnavailable
from aclbroker.broker.backends.upstream.connection import UpstreamConnection
from aclbroker.broker.backends.upstream.kept_session import KeptSession
from aclbroker.protocol.primitives import Frame


def _nothing() -> None:
    """Do nothing."""


def _ignore(_connection: UpstreamConnection) -> None:
    """Do nothing."""


class Pipeline:
    """Sends a client's requests in order, on a connection of its own.

    The function ``open_connection`` opens it for the first request. When the broker has closed it,
    `Answers.lost` is called. The client's connection must then end, too, as if the client had
    connected directly.
    """

    def __init__(
        self,
        open_connection: Callable[[], Awaitable[UpstreamConnection]],
        answers: Answers,
    ) -> None:
        self._open_connection = open_connection
        self._lost = answers.lost
        self._arrived = answers.arrived
        self.has_arrived = False
        """Whether `Answers.arrived` is still to be called for answers that are there."""

        self.opened: Callable[[UpstreamConnection], None] = _ignore
        """Is called with the connection when it is open."""

        self._connection: UpstreamConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Frame, int | None, asyncio.Future[Frame]]] = []
        self.fetch_sessions: dict[int, KeptSession] = {}
        """The client's fetch sessions by their ids."""

        self.share_sessions: dict[tuple[str | None, str | None], KeptSession] = {}
        """The client's share sessions by their groups and members."""

    def send(self, frame: Frame, correlation_id: int | None) -> asyncio.Future[Frame]:
        """Send a request; the future is its answer.

        Without a correlation id the broker sends no answer, and the future is an empty frame. The
        future fails with `UpstreamUnavailable` if there is no connection.
        """
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        if self._connection is not None:
            self._connection.send(frame, correlation_id, answer)
            return answer
        self._waiting.append((frame, correlation_id, answer))
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return answer

    def answer_left(self) -> None:
        """Note that the earliest answer has left for the client."""
        if self._connection is not None:
            self._connection.answer_left()

    def close(self) -> None:
        """Close the connection; requests without an answer are given up."""
        # These refer to the client's connection, which would be garbage in a circle.
        self._lost = self._arrived = _nothing
        self.opened = _ignore
        if self._opening is not None:
            self._opening.cancel()
        for _, _, answer in self._waiting:
            answer.cancel()
        self._waiting.clear()
        if self._connection is not None:
            self._connection.close()

    async def _open(self) -> None:
        try:
            self._connection = await self._open_connection()
        except UpstreamUnavailable as error:
            for _, _, answer in self._waiting:
                if not answer.done():
                    answer.set_exception(error)
        else:
            self._connection.was_read = self._was_read
            self._connection.resumed = self._arrived
            self.opened(self._connection)
            self._connection.closed.add_done_callback(lambda _closed: self._lost())
            for frame, correlation_id, answer in self._waiting:
                if not answer.cancelled():
                    self._connection.send(frame, correlation_id, answer)
        self._waiting.clear()
        self._opening = None

    def _was_read(self) -> None:
        if self.has_arrived:
            self.has_arrived = False
            self._arrived()
