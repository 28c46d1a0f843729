"""The answers of a connection, which leave in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from aclbroker.broker.handlers.answering import LaterAnswer
from aclbroker.broker.server.answer_writer import AnswerWriter
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.protocol.pieces import Encoded

MOST_AT_WORK: Final = 32
"""The most requests of a connection that are at work at a time."""


def _nothing(*_values: object) -> None:
    """Do nothing."""


class _Slot:
    """The place of one answer; ``held`` bytes of its request are on the principal's account."""

    __slots__ = ("answer", "error", "held", "is_alone", "left", "task")

    def __init__(self, held: int) -> None:
        self.held = held
        self.answer: Encoded | None = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[Encoded | LaterAnswer] | None = None
        self.is_alone = True
        self.left: Callable[[], None] = _nothing


def _no_answer(_refusal: RequestRefused) -> bytes:
    return b""


class AnswerQueue:
    """Keeps the answers that are not written yet, in the order of their requests.

    An answer that a backend makes later lets the next requests begin meanwhile; any other request
    is at work alone. ``refused`` returns the answer to a request that was refused unread, and
    ``failed`` takes the error of a request that has no answer: then the later answers are dropped.
    ``ready`` is called when the next request may begin, or the last answer is written.
    """

    def __init__(
        self,
        writer: AnswerWriter,
        request_ended: Callable[[int], None],
        refused: Callable[[RequestRefused], bytes],
        failed: Callable[[BaseException], None],
        ready: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._request_ended = request_ended
        self._refused = refused
        self._failed = failed
        self._ready = ready
        self._slots: deque[_Slot] = deque()

    @property
    def is_ready(self) -> bool:
        """Whether the next request may begin."""
        slots = self._slots
        return not slots or (len(slots) < MOST_AT_WORK and not slots[-1].is_alone)

    @property
    def is_at_work(self) -> bool:
        """Whether answers are missing or unwritten."""
        return bool(self._slots) or self._writer.is_at_work

    @property
    def is_waiting(self) -> bool:
        """Whether a request is still at work."""
        return any(slot.task is not None for slot in self._slots)

    def write(self, answers: Sequence[Encoded]) -> None:
        """Write answers, or keep them until the answers to earlier requests are written."""
        if not self._slots:
            self._writer.write(answers)
            return
        for answer in answers:
            slot = _Slot(0)
            slot.answer, slot.is_alone = answer, False
            self._slots.append(slot)

    def wait_for(self, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer, held: int) -> None:
        """Write an answer when it and the earlier ones are there."""
        slot = _Slot(held)
        self._slots.append(slot)
        self._begin(slot, answer)

    def end(self, ended: Callable[[], None]) -> None:
        """Cancel the requests at work, and call a function when all of them have ended.

        A change that has begun is still carried out. The connection is told of nothing any more.
        """
        # These refer to the connection, which would be garbage in a circle.
        self._refused, self._failed, self._ready = _no_answer, _nothing, _nothing
        self._request_ended = _nothing
        self._cancel(ended)

    def _cancel(self, cancelled: Callable[[], None]) -> None:
        tasks = [slot.task for slot in self._slots if slot.task is not None]
        self._slots.clear()
        if not tasks:
            cancelled()
            return
        unfinished = set(tasks)

        def ended(task: asyncio.Task[Encoded | LaterAnswer]) -> None:
            unfinished.discard(task)
            if not unfinished:
                cancelled()

        for task in tasks:
            task.add_done_callback(ended)
            # Later, so that what it waits for has begun, and is carried out.
            asyncio.get_running_loop().call_soon(task.cancel)

    def flush(self) -> None:
        """Write the answers whose turn has come.

        The first one is written even if the client does not read, so that it counts as unread.
        """
        answers: list[Encoded] = []
        while self._slots and not self._writer.is_at_work:
            slot = self._slots[0]
            if slot.error is not None:
                self._writer.write(answers)
                self._cancel(_nothing)
                self._failed(slot.error)
                return
            if slot.answer is None:
                break
            answers.append(slot.answer)
            self._slots.popleft()
            slot.left()
        self._writer.write(answers)

    def _begin(self, slot: _Slot, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer) -> None:
        if isinstance(answer, LaterAnswer):
            slot.is_alone = False
            slot.left = answer.left
            answer = answer.encoded()
        slot.task = asyncio.ensure_future(answer)
        slot.task.add_done_callback(partial(self._ended, slot))

    def _ended(self, slot: _Slot, task: asyncio.Task[Encoded | LaterAnswer]) -> None:
        slot.task = None
        if task.cancelled():
            slot.error = asyncio.CancelledError()
        elif isinstance(error := task.exception(), RequestRefused):
            slot.answer = self._refused(error)
        elif error is not None:
            slot.error = error
        elif isinstance(result := task.result(), LaterAnswer):
            self._begin(slot, result)
            self._ready()
            return
        else:
            slot.answer = result
        # The next requests need not wait until the earlier answers are written, too.
        slot.is_alone = False
        self._request_ended(slot.held)
        self.flush()
        self._ready()
