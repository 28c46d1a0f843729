"""Who works when: the work of requests takes turns, so that no client keeps the others waiting.

Work that is done before its turn is over is done at once, as nearly all is. All other work waits
for its next turn, and others are served before that. Turns go round among principals and not among
connections or requests, and each principal's requests are worked on one after the other: whoever
sends many gets no more than whoever sends one. Only a few principals' requests are worked on at a
time, and of each principal's only a few begin before the rest, because each keeps memory until it
is answered. Work whose answers nobody reads does not go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from aclbroker.turns import pause_with

_TURN_SECONDS: Final = 0.005
"""How long a turn is; what is at work then goes on for some entries more."""

_PRINCIPALS_AT_ONCE: Final = 4
_IDLE_WORKERS: Final = 8

_BEGUN_AT_ONCE: Final = 8
"""How much work of a principal begins before its former work is done, since short work need not
wait for long. Each keeps memory.
"""


_PAUSED: Final = object()
"""What a worker says whose turn is over."""

_DONE: Final = object()
"""What a worker says whose work is done, well or not; `Worker.taken` has the outcome."""

T = TypeVar("T")


class Worker(greenlet):  # type: ignore[misc] # greenlet is not typed
    """Does one piece of work after the other, each in as many turns as it takes.

    ``switch(function, args)`` begins a piece of work. It returns what the worker says: `_DONE`,
    `_PAUSED`, or an awaitable whose result the work needs. After `_PAUSED`, ``switch()`` continues;
    after an awaitable, ``switch(result)``, or ``throw`` with what it raised.
    """

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self.turns = turns
        self.caller = getcurrent()
        self.changes = 0
        """In how many changes it is that must not be left half done, one within the other."""
        self._result: Any = None
        self._error: BaseException | None = None
        self.switch()

    def run(self) -> None:
        """Work on and on, until the work is given up; greenlet calls this."""
        while True:
            # Nothing of what is done is kept until there is other work, which may be never. So it
            # does not come as an argument, which greenlet would keep.
            function, args = self.caller.switch(_DONE)
            try:
                self._result = function(*args)
            except GreenletExit:
                return  # Nobody wants the work any more.
            except BaseException as error:  # noqa: BLE001 # raised again where the work is taken
                self._error = error
            del function, args

    def taken(self) -> Any:
        """Return the result of work that is done; raise what it raised."""
        if self._error is None:
            result, self._result = self._result, None
            return result
        try:
            # A variable would make the error refer to itself, by the frame of this function.
            raise self._error
        finally:
            self._error = None


def wait(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable, or raise what it raises; others work meanwhile.

    Raises RuntimeError outside of `Turns.run`, where nobody can await it.
    """
    worker = getcurrent()
    if not isinstance(worker, Worker):
        raise RuntimeError("only work that Turns.run has begun can wait")
    result: T = worker.caller.switch(awaitable)
    return result


@contextmanager
def whole() -> Iterator[None]:
    """Let a change that pauses come to its end, though its client goes away meanwhile.

    Others have their turns all the same; the work ends at its next pause after the change.
    """
    worker = getcurrent()
    if not isinstance(worker, Worker):
        yield  # Nothing pauses.
        return
    worker.changes += 1
    try:
        yield
    finally:
        worker.changes -= 1


def poll(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable as `wait` does, for somebody who may go away meanwhile.

    Then the work ends where it waits, by GreenletExit, also within `whole`: what it waits for must
    be no change that it would have to report. Meanwhile the work counts neither as begun nor as
    unfinished, since that can take as long as a client wants.
    """
    worker = getcurrent()
    if not isinstance(worker, Worker):
        raise RuntimeError("only work that Turns.run has begun can wait")
    result: T = worker.caller.switch(_Poll(awaitable))
    return result


class _Poll:
    """What a worker says that waits for what may come or not."""

    __slots__ = ("awaited",)

    def __init__(self, awaited: Awaitable[Any]) -> None:
        self.awaited = awaited


def _pause() -> None:
    worker = getcurrent()
    if isinstance(worker, Worker) and worker.turns.is_over():
        worker.caller.switch(_PAUSED)


pause_with(_pause)

Worked = Callable[[float, tuple[Any, ...]], None]
"""Takes when a turn began, by `perf_counter`, and the arguments of the function that works."""


def _unmeasured(_began: float, _args: tuple[Any, ...]) -> None:
    """Take no notice of a turn."""


def _always(_principal: str) -> Awaitable[None] | None:
    return None


class Turns:
    """Runs work of principals in turns, on the event loop that is running when it first pauses.

    ``clock`` returns seconds. ``worked`` is called at the end of each turn but the first of a piece
    of work, which whoever calls `run` can measure. ``room`` returns None if a principal's work may
    go on after its first turn, or else what waits until it may: what work leaves behind can take
    memory. ``unfinished`` is how many pieces of work were not done in their first turn and are not
    done yet.
    """

    def __init__(
        self,
        clock: Callable[[], float] = perf_counter,
        worked: Worked = _unmeasured,
        room: Callable[[str], Awaitable[None] | None] = _always,
    ) -> None:
        self.unfinished = 0
        self._clock = clock
        self._worked = worked
        self._room = room
        self._over_at: float | None = None
        self._idle: list[Worker] = []
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._at_work: deque[str] = deque()
        self._outside: deque[str] = deque()
        self._gives_turns = False
        self._begun: dict[str, int] = {}

    @property
    def principals_at_work(self) -> int:
        """How many principals have work that gets turns."""
        return len(self._at_work)

    @property
    def principals_waiting(self) -> int:
        """How many principals have work that gets none yet, since others are at work."""
        return len(self._outside)

    def is_over(self) -> bool:
        """Return whether the turn is over.

        It begins when this is first asked, and is shared by all that works before the event loop
        gets to its other tasks.
        """
        if self._over_at is None:
            try:
                asyncio.get_running_loop().call_soon(self._begin_anew)
            except RuntimeError:
                return False  # Without a loop there are no others.
            self._over_at = self._clock() + _TURN_SECONDS
            return False
        return self._clock() >= self._over_at

    def run(self, principal: str, function: Callable[..., Any], *args: Any) -> Any | Awaitable[Any]:
        """Return what a function returns, or an awaitable of that if it does not return at once.

        In the function `pause` and `wait` may be called. Raises what it raises.
        """
        if self._begun.get(principal, 0) >= _BEGUN_AT_ONCE:
            return self._later(principal, function, args)
        worker = self._idle.pop() if self._idle else Worker(self)
        said = worker.switch(function, args)
        if said is _DONE:
            return self._outcome(worker)
        self._begun[principal] = self._begun.get(principal, 0) + 1
        return self._continued(principal, worker, said, args)

    async def _later(
        self, principal: str, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> Any:
        """Do work that does not even begin before the principal's former work is done."""
        await self._first_turn(principal)
        worker = self._idle.pop() if self._idle else Worker(self)
        said = self._measured(args, worker.switch, function, args)
        self._begun[principal] = self._begun.get(principal, 0) + 1
        return await self._continued(principal, worker, said, args, is_new=False)

    async def _continued(
        self,
        principal: str,
        worker: Worker,
        said: Any,
        args: tuple[Any, ...],
        *,
        is_new: bool = True,
    ) -> Any:
        """Work on until all is done, and count the work as begun no longer."""
        self.unfinished += 1
        try:
            return await self._done(principal, worker, said, args, is_new)
        finally:
            self.unfinished -= 1
            self._less_begun(principal)

    def _less_begun(self, principal: str) -> None:
        self._begun[principal] -= 1
        if not self._begun[principal]:
            del self._begun[principal]

    async def _done(
        self, principal: str, worker: Worker, said: Any, args: tuple[Any, ...], is_new: bool
    ) -> Any:
        """Work on until all is done; cancelling ends work that has waited for nothing yet.

        What work waits for can be a change. It is carried out, and reported, whoever has gone away;
        and so is a change that is to be `whole`.
        """
        is_wanted = may_end = True
        while said is not _DONE:
            if said is _PAUSED:
                is_wanted &= await _came(self._turn(principal, is_new=is_new))
                if not is_wanted and may_end and not worker.changes:
                    raise _given_up(worker)
                is_new = False
                said = self._measured(args, worker.switch)
            elif type(said) is _Poll:
                # Nobody would tell a second time that the client is gone.
                if not is_wanted:
                    raise _given_up(worker)
                said = await self._polled(principal, said.awaited, worker, args)
            else:
                may_end = False
                task = asyncio.ensure_future(said)
                while not task.done():
                    is_wanted &= await _came(asyncio.wait([task]))
                said = self._given(task, worker, args)
        return self._outcome(worker)

    async def _turn(self, principal: str, *, is_new: bool) -> None:
        if is_new:
            await self._first_turn(principal)
        else:
            await self._next_turn(principal, is_new=False)

    async def _first_turn(self, principal: str) -> None:
        """Wait for a turn in which there is room for what the work leaves behind."""
        await self._next_turn(principal, is_new=True)
        while (room := self._room(principal)) is not None:
            await room
            await self._next_turn(principal, is_new=True)

    def _given(self, task: asyncio.Future[Any], worker: Worker, args: tuple[Any, ...]) -> Any:
        """Give a worker the result of what it has waited for; return what it says then."""
        try:
            result = task.result()
        except BaseException as error:  # noqa: BLE001 # it is for the work to handle
            return self._measured(args, worker.throw, error)
        return self._measured(args, worker.switch, result)

    async def _polled(
        self, principal: str, awaitable: Awaitable[Any], worker: Worker, args: tuple[Any, ...]
    ) -> Any:
        """Give a worker what it waits for; end its work if nobody wants it any more."""
        self.unfinished -= 1
        self._less_begun(principal)
        try:
            result = await awaitable
        except asyncio.CancelledError:
            raise _given_up(worker) from None
        finally:
            self.unfinished += 1
            self._begun[principal] = self._begun.get(principal, 0) + 1
        return self._measured(args, worker.switch, result)

    def _measured(self, args: tuple[Any, ...], go_on: Callable[..., Any], *values: Any) -> Any:
        """Have a worker go on; return what it says at the end of its turn."""
        began = perf_counter()
        said = go_on(*values)
        self._worked(began, args)
        return said

    async def _next_turn(self, principal: str, *, is_new: bool) -> None:
        """Wait for a turn. Work that has begun comes before what its principal asked for later."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        if principal not in self._waiting:
            self._waiting[principal] = deque()
            self._outside.append(principal)
        if is_new:
            self._waiting[principal].append(turn)
        else:
            self._waiting[principal].appendleft(turn)
        if not self._gives_turns:
            self._gives_turns = True
            loop.call_soon(self._give_turn)
        await turn

    def _give_turn(self) -> None:
        """Give a turn to the next of the principals at work, as long as anybody waits for one."""
        while len(self._at_work) < _PRINCIPALS_AT_ONCE and self._outside:
            self._at_work.append(self._outside.popleft())
        self._gives_turns = bool(self._at_work)
        if not self._gives_turns:
            return
        # What is given a turn has it before this is called again.
        principal = self._at_work.popleft()
        waiting = self._waiting[principal]
        while waiting and waiting[0].done():
            waiting.popleft()  # whoever asked is gone
        if waiting:
            self._at_work.append(principal)
            waiting.popleft().set_result(None)
        else:
            del self._waiting[principal]
        asyncio.get_running_loop().call_soon(self._give_turn)

    def _begin_anew(self) -> None:
        self._over_at = None

    def _outcome(self, worker: Worker) -> Any:
        if len(self._idle) < _IDLE_WORKERS:
            self._idle.append(worker)
        return worker.taken()


async def _came(awaitable: Awaitable[Any]) -> bool:
    """Wait for something; tell whether it came before the task that waits was cancelled."""
    try:
        await awaitable
    except asyncio.CancelledError:
        return False
    return True


def _given_up(worker: Worker) -> asyncio.CancelledError:
    """End the work of a worker where it is; return what its task is to raise."""
    worker.throw(GreenletExit())
    return asyncio.CancelledError()
