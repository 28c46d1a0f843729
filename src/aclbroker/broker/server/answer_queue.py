"""The answers of a connection, which leave in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from aclbroker.broker.backends.backend import AnswerSlot, Relayed
from aclbroker.broker.handlers.answering import LaterAnswer
from aclbroker.broker.server.answer_writer import AnswerWriter
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.protocol.pieces import Encoded

MOST_AT_WORK: Final = 32
"""The most requests of a connection that are at work at a time."""


def _nothing(*_values: object) -> None:
    """Do nothing."""


def _no_answer(_refusal: RequestRefused) -> bytes:
    return b""


class AnswerQueue:
    """Keeps the answers that are not written yet, in the order of their requests.

    An answer that a backend makes later lets the next requests begin meanwhile. Any other request
    is at work alone. The function ``refused`` returns the answer to a request that was refused
    unread. The function ``failed`` takes the error of a request that has no answer. The later
    answers are then dropped. The function ``ready`` is called when the next request may begin, or
    the last answer is written.
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
        self._slots: deque[AnswerSlot] = deque()
        self._unsent: Relayed | None = None

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
        return any(slot.answer is None and slot.error is None for slot in self._slots)

    def write(self, answers: Sequence[Encoded]) -> None:
        """Write answers, or keep them until the answers to earlier requests are written."""
        if not self._slots:
            if answers:
                self._writer.write(answers)
            return
        for answer in answers:
            slot = AnswerSlot(is_alone=False)
            slot.answer = answer
            self._slots.append(slot)

    def wait_for(
        self, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer | Relayed, held: int
    ) -> None:
        """Write an answer when it and the earlier ones are there."""
        if isinstance(answer, Relayed):
            answer.held = held
            self._slots.append(answer)
            self._unsent = answer
            return
        slot = AnswerSlot(held)
        self._slots.append(slot)
        self._begin(slot, answer)

    def send_relayed(self) -> None:
        """Send the relayed requests for whose answers `wait_for` was called."""
        if self._unsent is not None:
            self._unsent.send()
            self._unsent = None

    def end(self, ended: Callable[[], None]) -> None:
        """Cancel the requests at work, and call a function when all of them have ended.

        A change that has begun is still carried out. The connection gets no further calls.
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

        The first one is written even if the client does not read, so that it counts as unread. The
        answer to a relayed request that must be decoded is decoded when its turn has come.
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
                if isinstance(slot, Relayed) and slot.unread is not None and slot.task is None:
                    self._begin(slot, _decoded(slot))
                break
            answers.append(slot.answer)
            self._slots.popleft()
            slot.left()
            self._give_back(slot)
        self._writer.write(answers)

    def _begin(
        self, slot: AnswerSlot, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer
    ) -> None:
        if isinstance(answer, LaterAnswer):
            slot.is_alone = False
            slot.left = answer.left
            answer = answer.encoded()
        slot.task = asyncio.ensure_future(answer)
        slot.task.add_done_callback(partial(self._ended, slot))

    def _ended(self, slot: AnswerSlot, task: asyncio.Task[Encoded | LaterAnswer]) -> None:
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
        self._give_back(slot)
        self.flush()
        self._ready()

    def _give_back(self, slot: AnswerSlot) -> None:
        if slot.held:
            self._request_ended(slot.held)
            slot.held = 0


async def _decoded(relayed: Relayed) -> Encoded:
    answer = relayed.decode(relayed)
    return await answer if isinstance(answer, Awaitable) else answer
