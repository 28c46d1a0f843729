"""Authorizers without a broker around them: this product's, and Kafka's in a JVM.

Both hold the same ACLs (`acl_sets`) and are asked the same questions by the same principal. The
figures are CPU time of the asking thread, in microseconds a question.
"""

from __future__ import annotations

import contextlib
import gc
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from benchmarks import acl_sets
from benchmarks.peers import authorizer_loop
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, Row, Work, one
from benchmarks.running import Options, play, tell
from tests.clients.drivers import LineProcess

RESOURCES: Final = (1_000, 10_000, 50_000)
"""The numbers of resources that are compared; ACLs are ten times as many (`acl_sets.count`)."""

QUICK_RESOURCES: Final = (1_000, 50_000)
NAMES: Final = 500
WARM_UP_SECONDS: Final = 1.0
QUICK_WARM_UP_SECONDS: Final = 0.5
WARM_UP_TURNS: Final = 6
SEED: Final = 5

_row = partial(Row, section="Authorizer in process", unit="us")
_UNSEEN = partial(_row, "authorize-unseen", title="authorize(), name not seen before", target=4)
_SEEN = partial(_row, "authorize-seen", title="authorize(), name seen before", target=0.5)
_TOGETHER = partial(_row, "authorize-together", title="authorize(), many names seen before at once")
_OPERATIONS = partial(
    _row,
    "operations",
    title="authorized operations of a topic, name not seen before",
    target=5,
    note="Kafka's authorizer is asked for each of the 8 operations, as its AuthHelper does.",
)
_CHANGED = partial(
    _row, "authorize-changed", title="authorize(), just after a change of the principal's ACLs"
)
_BY_TYPE = partial(_row, "by-type", title="authorizeByResourceType(), asked before", target=20)
_CHANGED_BY_TYPE = partial(
    _row,
    "by-type-changed",
    title="authorizeByResourceType(), just after a change of the principal's ACLs",
    target=20,
)

Names = Sequence[str]

_READ_TOPIC: Final = AclOperation.READ, ResourceType.TOPIC


class Question(Enum):
    """What an authorizer is asked; the values are the words of `java/AuthorizerLoop`."""

    AUTHORIZE = "authorize"
    """READ of each name, a call for each."""
    TOGETHER = "together"
    """READ of all names in one call."""
    OPERATIONS = "operations"
    """All operations of each name, a call for each."""
    CHANGED = "changed-authorize"
    """READ of a name, each time after a change of an ACL of the principal."""
    BY_TYPE = "by-type"
    """READ of any topic."""
    CHANGED_BY_TYPE = "changed-by-type"
    """READ of any topic, each time after a change of an ACL of the principal."""


class Authorizer(Protocol):
    """An authorizer that is asked."""

    def forget(self) -> None:
        """Bring about that nothing was asked before."""

    def ask(self, question: Question, names: Names, passes: int) -> float:
        """Ask so many times about all the names; return microseconds a name, or a time."""


class Ours:
    """Our rules and ACLs, in this process. What it forgets, it does by making its index anew."""

    def __init__(self, resources: int) -> None:
        self._resources = resources
        self._asks: Mapping[Question, Callable[[Names, int], int]] = {
            Question.AUTHORIZE: lambda names, passes: self._reads([[n] for n in names], passes),
            Question.TOGETHER: lambda names, passes: self._reads([names], passes),
            Question.OPERATIONS: self._operations,
            Question.CHANGED: lambda names, passes: self._changed(
                passes, lambda: self._read(names)
            ),
            Question.BY_TYPE: self._by_type,
            Question.CHANGED_BY_TYPE: lambda _, passes: self._changed(passes, self._any_topic),
        }
        self.forget()

    def forget(self) -> None:
        """Bring about that nothing was asked before, but by which ACLs the principal is named.

        That is found out by the first question of a principal; CHANGED measures it.
        """
        self._asked = StandardAuthorizerData(AclIndex(acl_sets.acls(self._resources)))
        gc.collect()
        self._asked.authorize(acl_sets.SESSION, *_READ_TOPIC, ["no such name"])
        self._asked.authorized_operations(acl_sets.SESSION, ResourceType.TOPIC, "no such name")

    def ask(self, question: Question, names: Names, passes: int) -> float:
        """Ask so many times about all the names; return microseconds a name, or a time."""
        nanoseconds = self._asks[question](names, passes)
        return nanoseconds / 1000 / passes / (len(names) or 1)

    def _reads(self, calls: Sequence[Names], passes: int) -> int:
        authorize, session, (read, topic) = self._asked.authorize, acl_sets.SESSION, _READ_TOPIC
        begin = time.thread_time_ns()
        for _ in range(passes):
            for names in calls:
                decisions = authorize(session, read, topic, names)
        taken = time.thread_time_ns() - begin
        _expect(all(decision.allowed for decision in decisions))
        return taken

    def _operations(self, names: Names, passes: int) -> int:
        operations, session, topic = (
            self._asked.authorized_operations,
            acl_sets.SESSION,
            ResourceType.TOPIC,
        )
        begin = time.thread_time_ns()
        for _ in range(passes):
            for name in names:
                found = operations(session, topic, name)
        taken = time.thread_time_ns() - begin
        _expect(found == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE)
        return taken

    def _by_type(self, _: Names, passes: int) -> int:
        ask, session, (read, topic) = (
            self._asked.authorize_by_resource_type,
            acl_sets.SESSION,
            _READ_TOPIC,
        )
        begin = time.thread_time_ns()
        for _pass in range(passes):
            decision = ask(session, read, topic)
        taken = time.thread_time_ns() - begin
        _expect(decision.allowed)
        return taken

    def _changed(self, passes: int, ask: Callable[[], bool]) -> int:
        taken, index = 0, self._asked.index
        for _ in range(passes):
            change = index.remove if acl_sets.CHANGING in index else index.add
            change(acl_sets.CHANGING)
            begin = time.thread_time_ns()
            allowed = ask()
            taken += time.thread_time_ns() - begin
            _expect(allowed)
        return taken

    def _read(self, names: Names) -> bool:
        return self._asked.authorize(acl_sets.SESSION, *_READ_TOPIC, names)[0].allowed

    def _any_topic(self) -> bool:
        return self._asked.authorize_by_resource_type(acl_sets.SESSION, *_READ_TOPIC).allowed


class Kafkas:
    """Kafka's StandardAuthorizer in a JVM of its own (`java/AuthorizerLoop`)."""

    def __init__(self, loop: LineProcess, acls: Path) -> None:
        self._loop = loop
        loop.ask(f"load {acls} {acl_sets.HOST} {acl_sets.PRINCIPAL}")

    def warm_up(self, names: Names, seconds: float) -> None:
        """Ask each question for so long, in turn, until the JVM answers all at their best.

        What it learns from one question can undo what it had compiled for another, and then it
        takes seconds to compile that again.
        """
        best: dict[Question, float] = {}
        for _ in range(WARM_UP_TURNS):
            settled = len(best) == len(Question)
            for question in Question:
                asked, latest = names[: _LENGTHS.get(question)], float("inf")
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    latest = self.ask(question, asked, 1)
                before = best.get(question, latest)
                settled = settled and latest < 1.25 * before
                best[question] = min(before, latest)
            if settled:
                return

    def forget(self) -> None:
        """It remembers nothing."""

    def ask(self, question: Question, names: Names, passes: int) -> float:
        """Ask so many times about all the names; return microseconds a name, or a time."""
        answer = self._loop.ask(" ".join([question.value, str(passes), *names]))
        questions = passes * (len(names) or 1)
        # READ allows DESCRIBE too.
        _expect(answer["allowed"] == questions * (2 if question is Question.OPERATIONS else 1))
        return float(answer["nanoseconds"]) / 1000 / questions


_LENGTHS: Final = {Question.CHANGED: 1, Question.BY_TYPE: 0, Question.CHANGED_BY_TYPE: 0}


def _expect(allowed: bool) -> None:
    if not allowed:
        raise RuntimeError("ACLs allow what was denied, or the reverse")


def works(resources: int) -> list[Work[Authorizer]]:
    """Return what is asked in each round over the ACLs of so many resources."""
    drawn = random.Random(SEED).sample(range(resources), min(2 * NAMES, resources))
    names = [acl_sets.name(number) for number in drawn]
    first, second = names[::2], names[1::2]
    acls = acl_sets.count(resources)

    def work(
        row: Callable[..., Row], question: Question, names: Names, ours: int, kafkas: int
    ) -> Work[Authorizer]:
        """Return the work of a row, with the passes of ours and of Kafka's."""

        def run(side: Authorizer) -> float:
            if ours > 1:
                side.ask(question, names, 1)
            return side.ask(question, names, ours if isinstance(side, Ours) else kafkas)

        return one(row(acls=acls), run)

    return [
        work(_UNSEEN, Question.AUTHORIZE, first, 1, 1),
        work(_SEEN, Question.AUTHORIZE, first, 40, 2),
        work(_TOGETHER, Question.TOGETHER, first, 100, 2),
        work(_OPERATIONS, Question.OPERATIONS, second[:200], 1, 1),
        work(_CHANGED, Question.CHANGED, first[:1], 100, 50),
        work(_BY_TYPE, Question.BY_TYPE, (), 1_000, 2),
        work(_CHANGED_BY_TYPE, Question.CHANGED_BY_TYPE, (), 100, 2),
    ]


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for resources in RESOURCES for work in works(resources) for row in work.rows]


def measure(results: Results, options: Options) -> None:
    """Measure all sizes that are wanted."""
    for resources in QUICK_RESOURCES if options.quick else RESOURCES:
        wanted = [work for work in works(resources) if options.wants(*work.rows)]
        if not wanted:
            continue
        with _sides(resources, options) as sides:
            for _ in range(options.rounds):
                for side in sides.values():
                    side.forget()
                play(wanted, sides, results)
        tell(wanted, results)


@contextlib.contextmanager
def _sides(resources: int, options: Options) -> Iterator[dict[str, Authorizer]]:
    """Yield the authorizers of both sides, Kafka's warmed up."""
    sides: dict[str, Authorizer] = {OURS: Ours(resources)}
    if KAFKA not in options.peers:
        yield sides
        return
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "acls"
        acl_sets.write(resources, file)
        loop = LineProcess(authorizer_loop(), Path(directory) / "jvm.log")
        try:
            kafka = Kafkas(loop, file)
            step = max(1, resources // NAMES)
            kafka.warm_up(
                [acl_sets.name(number) for number in range(0, resources, step)][:100],
                QUICK_WARM_UP_SECONDS if options.quick else WARM_UP_SECONDS,
            )
            sides[KAFKA] = kafka
            yield sides
        finally:
            loop.close()
