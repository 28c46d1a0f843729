"""The answers of a connection, which leave in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from aclbroker.broker.backends.backend import AnswerSlot, Relayed
from aclbroker.broker.handlers.answering import LaterAnswer
from aclbroker.broker.server.answer_writer import AnswerWriter
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.protocol.pieces import Encoded
from aclbroker.protocol.primitives import Frame

MOST_AT_WORK: Final = 32
"""The most requests of a connection that are at work at a time."""


def _nothing(*_values: object) -> None:
    """Do nothing."""


def _no_answer(_refused: object) -> bytes:
    return b""


async def _no_decoded_answer(_relayed: Relayed) -> Encoded:
    return b""


class AnswerEvents(NamedTuple):
    """The functions of the connection that the queue calls."""

    request_ended: Callable[[int], None]
    """Takes the number of bytes that a request held which now has an answer."""

    refused: Callable[[RequestRefused], bytes]
    """Returns the answer to a request that was refused unread."""

    failed: Callable[[BaseException], None]
    """Takes the error of a request that has no answer; the later answers are dropped."""

    ready: Callable[[], None]
    """The next request may begin, or the last answer is written."""

    passed: Callable[[], None]
    """Answers of relayed requests have left, or wait for earlier ones."""

    decode: Callable[[Relayed], Awaitable[Encoded]]
    """Makes the answer to a relayed request whose answer must be decoded."""

    lost: Callable[[], None]
    """The backend can answer no further request."""


_NO_EVENTS: Final = AnswerEvents(
    _nothing, _no_answer, _nothing, _nothing, _nothing, _no_decoded_answer, _nothing
)


class AnswerQueue:
    """Keeps the answers that are not written yet, in the order of their requests.

    An answer that a backend makes later lets the next requests begin meanwhile. Any other request
    is at work alone. It is `Answers`, by which a backend passes answers on.
    """

    def __init__(self, writer: AnswerWriter, events: AnswerEvents) -> None:
        self._writer = writer
        self._events = events
        self.slots: deque[AnswerSlot] = deque()
        """The places of the answers that have not left yet."""

    @property
    def is_ready(self) -> bool:
        """Whether the next request may begin."""
        slots = self.slots
        return not slots or (len(slots) < MOST_AT_WORK and not slots[-1].is_alone)

    @property
    def is_writable(self) -> bool:
        """Whether the client reads its answers, and no large one is being written."""
        return self._writer.is_ready

    @property
    def is_at_work(self) -> bool:
        """Whether answers are missing or unwritten."""
        return bool(self.slots) or self._writer.is_at_work

    @property
    def is_waiting(self) -> bool:
        """Whether a request is still at work."""
        return any(
            slot.answer is None and slot.error is None and not slot.is_leaving
            for slot in self.slots
        )

    def write(self, answers: Sequence[Encoded]) -> None:
        """Write answers, or keep them until the answers to earlier requests are written."""
        if not self.slots:
            if answers:
                self._writer.write(answers)
            return
        for answer in answers:
            slot = AnswerSlot()
            slot.answer = answer
            self.slots.append(slot)

    def wait_for(self, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer, held: int) -> None:
        """Write an answer when it and the earlier ones are there."""
        slot = AnswerSlot()
        slot.held, slot.is_alone = held, True
        self.slots.append(slot)
        self._begin(slot, answer)

    def pass_on(self, data: Frame) -> None:
        """Write answers whose slots were taken from the front of `slots`."""
        self._writer.pass_on(data)
        if self.slots:
            self.flush()  # Answers that were there already may leave now.
        self._events.passed()

    def arrived(self) -> None:
        """Write the answers that are there, and go on with the requests that wait."""
        self.flush()
        self._events.passed()

    def lost(self) -> None:
        """Close the connection, because no further request of it can be answered."""
        self._events.lost()

    def end(self, ended: Callable[[], None]) -> None:
        """Cancel the requests at work, and call a function when all of them have ended.

        A change that has begun is still carried out. The connection gets no further calls.
        """
        # These refer to the connection, which would be garbage in a circle.
        self._events = _NO_EVENTS
        self._cancel(ended)

    def _cancel(self, cancelled: Callable[[], None]) -> None:
        tasks = [slot.task for slot in self.slots if slot.task is not None]
        self.slots.clear()
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
        while self.slots and not self._writer.is_at_work:
            slot = self.slots[0]
            if slot.error is not None:
                self._writer.write(answers)
                self._cancel(_nothing)
                self._events.failed(slot.error)
                return
            if slot.answer is None:
                if isinstance(slot, Relayed) and slot.unread is not None and slot.task is None:
                    self._begin(slot, self._events.decode(slot))
                break
            answers.append(slot.answer)
            self.slots.popleft()
            slot.leave()
            self._give_back(slot)
        self._writer.write(answers)

    def _begin(
        self, slot: AnswerSlot, answer: Awaitable[Encoded | LaterAnswer] | LaterAnswer
    ) -> None:
        if isinstance(answer, LaterAnswer):
            slot.is_alone = False
            slot.leave = answer.left  # type: ignore[method-assign] # it is a function
            answer = answer.encoded()
        slot.task = asyncio.ensure_future(answer)
        slot.task.add_done_callback(partial(self._ended, slot))

    def _ended(self, slot: AnswerSlot, task: asyncio.Task[Encoded | LaterAnswer]) -> None:
        slot.task = None
        if task.cancelled():
            slot.error = asyncio.CancelledError()
        elif isinstance(error := task.exception(), RequestRefused):
            slot.answer = self._events.refused(error)
        elif error is not None:
            slot.error = error
        elif isinstance(result := task.result(), LaterAnswer):
            self._begin(slot, result)
            self._events.ready()
            return
        else:
            slot.answer = result
        # The next requests need not wait until the earlier answers are written, too.
        slot.is_alone = False
        self._give_back(slot)
        self.flush()
        self._events.ready()

    def _give_back(self, slot: AnswerSlot) -> None:
        if slot.held:
            self._events.request_ended(slot.held)
            slot.held = 0
