"""However long a request is, other clients have their turns: in each step, for each array."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import gc
import io
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter
from typing import Any

import pytest

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server import dispatch as dispatching
from aclbroker.broker.server.dispatch import answer_frame, dispatch
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.turns import Turns, Worker, poll, wait, whole
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import decode_request, decode_response, request_frame
from aclbroker.turns import in_turns, pause
from tests.acl.examples import PREFIXED, WRITE, allow, deny
from tests.gate.requests import filled
from tests.gate.rights import everything, nothing, services
from tests.stores.origins import ORIGIN
from tests.support.client import request_frame as client_frame
from tests.support.tables import check_each

ENTRIES = 5000
MOST_LINES = 4500
"""How many lines of Python may run between two pauses: fewer than there are entries.

Before the clock is looked at, 16 entries are gone through, and up to 200 lines work on each.
"""

RECORDED = 10_000
"""How many more run for changes of ACLs: a hundred at once are written to the audit log."""

SESSION = Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")


class Always(Turns):
    """Turns that are over whenever that is asked."""

    def is_over(self) -> bool:
        return True


def arrays(item: Any) -> Iterator[list[Any]]:
    """All arrays of a message, the inner ones of their first entries too."""
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        for entry in value[:1] if isinstance(value, list) else (value,):
            if dataclasses.is_dataclass(entry):
                yield from arrays(entry)
        if isinstance(value, list) and value:
            yield value


def multiply(array: list[Any]) -> None:
    """Give an array many entries, all with other names."""
    [first] = array
    for number in range(1, ENTRIES):
        entry = copy.copy(first)
        if isinstance(entry, str):
            entry = f"topic-{number}"
        elif dataclasses.is_dataclass(entry):
            for field in dataclasses.fields(entry):
                if isinstance(getattr(entry, field.name), str):
                    setattr(entry, field.name, f"topic-{number}")
        array.append(entry)


DAILY = (
    *(ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.OFFSET_COMMIT),
    *(ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
)
"""The requests whose arrays are all tried each day: those that clients send most, and ACLs."""


def long_requests(every_case: bool) -> Iterator[tuple[ApiKey, int]]:
    """Each request, and the position of one of its arrays."""
    for key in APIS if every_case else DAILY:
        for position in range(len(list(arrays(filled(key, ["topic"]))))):
            yield ApiKey(key), position


class Lines:
    """Counts the lines that workers run between two pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = 0
        self._count = 0
        switch = Worker.switch
        lines = self

        def switched(worker: Worker, *args: Any) -> Any:
            lines._count = 0
            said = switch(worker, *args)
            if isinstance(worker.turns, Always):
                lines.most = max(lines.most, lines._count)
            return said

        monkeypatch.setattr(Worker, "switch", switched)

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose lines are counted in the worker that calls it."""

        def trace(_frame: Any, event: str, _arg: Any) -> Any:
            if event == "line":
                self._count += 1
            return trace

        def called(*args: Any) -> Any:
            measuring = sys.gettrace()
            gc.disable()
            sys.settrace(trace)
            try:
                return function(*args)
            finally:
                # Whoever measures coverage goes on with the tests that come behind.
                sys.settrace(measuring)
                gc.enable()

        return called


@contextlib.asynccontextmanager
async def running(
    rights: Any, authorizer: StandardAuthorizer | None = None
) -> AsyncIterator[Services]:
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    made = services(rights, Catalog({"topic": 2}, ["topic"]), audit)
    decides = authorizer or made.authorizer
    assert decides is not None
    await decides.start()
    audit.start()
    yield dataclasses.replace(made, turns=Always(), authorizer=decides)
    audit.close()
    await decides.close()


def most_lines(key: ApiKey, position: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many lines run between two pauses of a request, one of whose arrays is long."""
    request = filled(key, ["topic"])
    multiply(list(arrays(request))[position])
    frame = request_frame(APIS[key], APIS[key].versions[-1], 1, "client", request)[4:]
    lines = Lines(monkeypatch)

    async def answered(rights: Any) -> None:
        async with running(rights) as parts:
            answering = dispatch(parts, SESSION, frame)
            with contextlib.suppress(ProtocolError):
                if isinstance(answering, Awaitable):
                    await answering

    for rights in (nothing, everything):
        # What is compiled at first use is compiled before the lines are counted.
        for function in (answer_frame, lines.traced(answer_frame)):
            monkeypatch.setattr(dispatching, "answer_frame", function)
            asyncio.run(answered(rights))
    return lines.most


@pytest.mark.timeout(900)
def test_no_step_of_a_long_request_goes_through_it_in_one_turn(every_case: bool) -> None:
    def check(case: tuple[ApiKey, int]) -> None:
        key, position = case
        with pytest.MonkeyPatch.context() as monkeypatch:
            most = most_lines(key, position, monkeypatch)
        changes = key in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
        assert most < MOST_LINES + RECORDED * changes

    check_each(long_requests(every_case), check)


async def many_acls() -> StandardAuthorizer:
    """Alice may write to a great many topics, all of which a denied prefix takes from her again."""
    store = MemoryStore()
    names = (f"topic-{number}" for number in range(ENTRIES))
    acls = [allow("User:alice", WRITE, name=name) for name in names]
    await store.apply(
        [*acls, deny("User:alice", WRITE, name="to", pattern_type=PREFIXED)], [], ORIGIN
    )
    return StandardAuthorizer(store)


def ask_for_a_producer_id(parts: Services) -> Any:
    """Send the request of an idempotent producer, who needs to write to any topic."""
    request = InitProducerIdRequest(None, 1000)
    frame = client_frame(ApiKey.INIT_PRODUCER_ID, 4, request)[4:]
    decode_request(frame)  # The first one makes the decoder, which takes a turn of its own.
    return dispatch(parts, SESSION, frame)


def code_of(answer: bytes) -> int:
    """The error code in an answer to `ask_for_a_producer_id`."""
    message = decode_response(APIS[ApiKey.INIT_PRODUCER_ID], 4, answer[4:])[1]
    return int(message.error_code)


async def test_whether_a_principal_with_very_many_acls_may_write_anywhere_is_decided_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Lines(monkeypatch)
    monkeypatch.setattr(dispatching, "answer_frame", lines.traced(answer_frame))
    async with running(nothing, await many_acls()) as parts:
        answering = ask_for_a_producer_id(parts)
        assert isinstance(answering, Awaitable)
        assert code_of(await answering) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert lines.most < MOST_LINES


async def test_what_changes_while_that_is_decided_counts_from_the_next_question_on() -> None:
    async with running(nothing, await many_acls()) as parts:
        assert parts.authorizer is not None
        asked_before = asyncio.ensure_future(ask_for_a_producer_id(parts))
        await asyncio.sleep(0)
        assert not asked_before.done()
        context = RequestContext(SESSION, ApiKey.CREATE_ACLS, 3, "test", 1)
        await parts.authorizer.create_acls(context, [allow("User:alice", WRITE, name="other")])
        assert not asked_before.done()
        assert code_of(await asked_before) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert code_of(await ask_for_a_producer_id(parts)) == 0


async def test_principals_take_turns_and_each_ones_requests_come_one_after_the_other() -> None:
    turns, done = Always(), []

    def work(name: str, size: int) -> None:
        for number in in_turns(range(size)):
            if number % 100 == 0:
                done.append(name)

    works = [("a", "a1", 1000), ("a", "a2", 200), ("b", "b", 400)]
    begun = [turns.run(principal, work, name, size) for principal, name, size in works]
    await asyncio.gather(*begun)

    of_a = [name for name in done if name != "b"]
    assert of_a == ["a1"] * 10 + ["a2"] * 2
    # b, who asked last, is done when a has had as many turns, and not when all of a's work is done.
    assert done[-1] == "a2"
    assert done.index("a2") > 8 > done.index("b")
    assert "b" not in done[9:]


async def test_of_much_work_of_a_principal_some_begins_and_the_rest_when_that_is_done() -> None:
    turns, begun, done = Always(), [], []

    def work(number: int) -> None:
        begun.append(number)
        for _ in in_turns(range(100)):
            pass
        done.append(number)

    works = [turns.run("a", work, number) for number in range(50)]
    assert begun == list(range(8))
    others = turns.run("b", work, 50)
    assert begun[-1] == 50
    await asyncio.gather(others, *works)
    assert [number for number in done if number != 50] == list(range(50))
    assert done.index(50) < 8
    # All of it is done: as much begins at once again.
    del begun[:]
    works = [turns.run("a", work, number) for number in range(50)]
    assert begun == list(range(8))
    await asyncio.gather(*works)


async def test_work_that_did_not_begin_raises_what_it_raises_and_can_be_given_up() -> None:
    turns = Always()

    def work(fails: bool) -> None:
        for _ in in_turns(range(100)):
            pass
        if fails:
            raise ZeroDivisionError

    works = [asyncio.ensure_future(turns.run("a", work, False)) for _ in range(8)]
    failing = asyncio.ensure_future(turns.run("a", work, True))
    given_up = asyncio.ensure_future(turns.run("a", work, False))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(ZeroDivisionError):
        await failing
    await asyncio.gather(*works)
    assert given_up.cancelled()
    assert await turns.run("a", lambda: wait(asyncio.sleep(0, "done"))) == "done"


async def test_work_goes_on_after_its_first_turn_when_there_is_room_for_what_it_leaves() -> None:
    rooms: dict[str, asyncio.Event] = {"a": asyncio.Event()}

    def room(principal: str) -> Awaitable[Any] | None:
        event = rooms.get(principal)
        return None if event is None or event.is_set() else event.wait()

    turns, done = Always(room=room), []

    def work(name: str) -> None:
        for _ in in_turns(range(100)):
            pass
        done.append(name)

    works = [asyncio.ensure_future(turns.run(name, work, name)) for name in "aaaaaaaaaaaab"]
    await works[-1]
    assert done == ["b"]
    works[0].cancel()
    rooms["a"].set()
    await asyncio.gather(*works[1:])
    assert done == ["b", *"a" * 11]


def test_without_an_event_loop_there_is_nobody_to_take_turns_with() -> None:
    assert Turns().run("a", lambda: sum(in_turns(range(1000)))) == 499_500


async def test_short_work_is_done_at_once_and_raises_what_it_raises() -> None:
    turns = Turns()
    assert turns.run("a", lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        turns.run("a", lambda: 1 / 0)
    assert turns.run("a", lambda: "done") == "done"


class Held:
    """What a request holds."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("kind", [Turns, Always])
@pytest.mark.parametrize("fails", [False, True])
async def test_work_that_is_over_holds_nothing_that_the_garbage_collector_would_have_to_find(
    kind: type[Turns], fails: bool, no_collector: None
) -> None:
    """A request may be large, and be sent and refused over and over."""

    def work(_held: Held) -> None:
        for _ in in_turns(range(100)):
            pass
        if fails:
            raise ZeroDivisionError

    async def worked(turns: Turns) -> weakref.ref[Held]:
        held = Held()
        with contextlib.suppress(ZeroDivisionError):
            answering = turns.run("a", work, held)
            if isinstance(answering, Awaitable):
                await answering
        return weakref.ref(held)

    turns = kind()
    assert (await worked(turns))() is None


async def test_work_can_wait_and_gets_what_it_waited_for_or_its_error() -> None:
    turns = Turns()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise OSError("disk full")

    def waits() -> str:
        try:
            wait(fail())
        except OSError as error:
            return wait(asyncio.sleep(0, f"saw {error}"))
        return "saw nothing"

    assert await turns.run("a", waits) == "saw disk full"


def test_only_work_in_turns_can_wait() -> None:
    coroutine = asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="only work"):
        wait(coroutine)
    coroutine.close()


async def test_work_that_nobody_wants_any_more_ends_where_it_pauses() -> None:
    turns, steps = Always(), []

    def work() -> None:
        for number in in_turns(range(1000)):
            steps.append(number)

    task = asyncio.ensure_future(turns.run("a", work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(steps) < 100
    assert await asyncio.wait_for(turns.run("a", lambda: wait(asyncio.sleep(0, 1))), 10) == 1


async def test_nothing_is_kept_of_work_that_is_done_or_failed() -> None:
    turns = Turns()
    for work in (len, lambda many: many / 0):
        many = {*range(10)}
        kept = weakref.ref(many)
        with contextlib.suppress(TypeError):
            turns.run("a", work, many)
        del many
        assert kept() is None


async def test_a_change_that_has_begun_is_carried_out_though_nobody_waits_for_it() -> None:
    turns, begun, changed = Always(), asyncio.Event(), []
    may_end = asyncio.Event()

    async def change() -> None:
        begun.set()
        await may_end.wait()

    def work() -> None:
        wait(change())
        for _ in in_turns(range(100)):
            pass
        changed.append("told")

    task = asyncio.ensure_future(turns.run("a", work))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    may_end.set()
    await task
    assert changed == ["told"]


async def test_a_change_that_is_to_be_whole_comes_to_its_end_and_no_more_is_done() -> None:
    turns = Always()
    changed: list[int] = []
    read: list[int] = []
    others: list[int] = []

    def work() -> None:
        with whole():
            changed.extend(in_turns(range(100)))
        read.extend(in_turns(range(100)))

    task = asyncio.ensure_future(turns.run("a", work))
    await asyncio.sleep(0)
    task.cancel()
    other = asyncio.ensure_future(turns.run("b", lambda: others.extend(in_turns(range(20)))))
    await other
    assert others == list(range(20))
    assert len(changed) < 100
    with pytest.raises(asyncio.CancelledError):
        await task
    assert changed == list(range(100))
    assert len(read) < 100


async def test_nobody_waits_for_what_may_never_come_whose_client_went_in_a_change() -> None:
    turns, ended = Always(), []
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def work(change: Callable[[], object]) -> None:
        change()
        try:
            poll(never)
        finally:
            ended.append(change)

    def long() -> None:
        with whole():
            list(in_turns(range(100)))

    changes = (long, lambda: wait(asyncio.sleep(0.01)))
    for change in changes:
        task = asyncio.ensure_future(turns.run("a", work, change))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), 10)
    assert ended == list(changes)
    assert turns.unfinished == 0
    assert await asyncio.wait_for(turns.run("a", lambda: wait(asyncio.sleep(0, 1))), 10) == 1


async def test_each_turn_but_the_first_is_told_with_what_is_worked_for_and_what_is_not_done() -> (
    None
):
    told: list[tuple[Any, ...]] = []
    unfinished: list[int] = []

    def worked(began: float, args: tuple[Any, ...]) -> None:
        assert 0 < began <= perf_counter()
        told.append(args)
        unfinished.append(turns.unfinished)

    turns = Always(worked=worked)

    def work(name: str, size: int) -> str:
        for _ in in_turns(range(size)):
            pass
        return f"{wait(asyncio.sleep(0, name))} is done"

    assert turns.run("a", lambda: "short") == "short"
    assert told == []
    both = asyncio.gather(turns.run("a", work, "a1", 100), turns.run("b", work, "b1", 40))
    assert list(await both) == ["a1 is done", "b1 is done"]
    # There is a pause before each 16 entries, and a last turn when it has what it waits for.
    assert (told.count(("a1", 100)), told.count(("b1", 40))) == (7 + 1, 3 + 1)
    assert (max(unfinished), turns.unfinished) == (2, 0)
    assert (turns.principals_at_work, turns.principals_waiting) == (0, 0)


async def test_no_more_than_a_few_principals_are_at_work_and_the_others_wait() -> None:
    turns, seen = Always(), set()

    def work() -> None:
        for _ in in_turns(range(100)):
            seen.add((turns.principals_at_work, turns.principals_waiting))

    await asyncio.gather(*(turns.run(f"principal {number}", work) for number in range(7)))
    assert (4, 3) in seen
    assert max(at_work for at_work, _ in seen) == 4


def test_a_list_is_gone_through_from_beginning_to_end_however_long_it_is() -> None:
    for size in (0, 1, 16, 17, 1000):
        assert list(in_turns(range(size))) == list(range(size))
        assert list(in_turns(dict.fromkeys(range(size)))) == list(range(size))
    pause()
