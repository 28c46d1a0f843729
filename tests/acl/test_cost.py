"""d6: what a question costs does not grow with the number of ACLs.

Counted are the functions that are called, Python's and C's, and the memory that is left behind:
both are the same in every run, unlike times. The ACLs have the shape of Kafka's own
AuthorizerBenchmark: names with a common prefix, every fifth pattern PREFIXED, ten principals each,
and many hosts on ``*``.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from aclbroker.acl.bindings import AclBinding, AclFilter, PatternType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from tests.acl.examples import ALICE, LITERAL, PREFIXED, READ, TOPIC, WRITE, allow, deny, session

FEW, MANY = 1_000, 50_000
"""Numbers of resources: ten times as many ACLs and more."""

USER = session("User:u3")


def acls(resources: int) -> Iterator[AclBinding]:
    for number in range(resources):
        pattern_type = LITERAL if number % 5 else PREFIXED
        for user in range(10):
            yield allow(f"User:u{user}", name=topic(number), pattern_type=pattern_type)
    for number in range(resources // 10):
        yield allow(
            "User:u0", name="*", host=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        )


def topic(number: int) -> str:
    return f"resource-topic-{number:06}"


@cache
def core(resources: int) -> StandardAuthorizerData:
    return StandardAuthorizerData(AclIndex(acls(resources)))


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, Python's and C's."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    # Hypothesis is told of each garbage collection, by a call.
    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


QUESTIONS: dict[str, Callable[[StandardAuthorizerData], object]] = {
    "a decision": lambda core: core.authorize(USER, READ, TOPIC, [topic(7)]),
    "a denial": lambda core: core.authorize(USER, WRITE, TOPIC, [topic(7)]),
    "authorized operations": lambda core: core.authorized_operations(USER, TOPIC, topic(7)),
    "authorize by type": lambda core: core.authorize_by_resource_type(USER, READ, TOPIC),
    "a denial by type": lambda core: core.authorize_by_resource_type(USER, WRITE, TOPIC),
    "a list by name": lambda core: found(core, AclFilter(TOPIC, topic(7))),
    "a list by principal and match": lambda core: found(
        core, AclFilter(TOPIC, topic(7), PatternType.MATCH, "User:u3")
    ),
    "a list by principal": lambda core: found(core, AclFilter(principal="User:rare")),
}


def found(core: StandardAuthorizerData, acl_filter: AclFilter) -> list[AclBinding]:
    return list(core.index.find(acl_filter))


def fresh(resources: int) -> StandardAuthorizerData:
    """An authorizer that remembers nothing of the peer, as after any change of its ACLs."""
    of_many = core(resources)
    of_many.index.add(allow("User:u3", name="passing"))
    of_many.index.remove(allow("User:u3", name="passing"))
    of_many.index.add(allow("User:rare", name=topic(7)))
    return of_many


@pytest.mark.parametrize("question", QUESTIONS)
def test_d6_a_question_does_the_same_work_among_many_acls_as_among_few(question: str) -> None:
    ask = QUESTIONS[question]
    ask(fresh(FEW))

    def first_and_again(resources: int) -> tuple[int, int]:
        asked = fresh(resources)
        return calls(lambda: ask(asked)), calls(lambda: ask(asked))

    assert first_and_again(MANY) == first_and_again(FEW)


def test_d6_a_change_does_the_same_work_among_many_acls_as_among_few() -> None:
    new = [deny("User:u3", name=topic(7)), allow("User:new", name="new", pattern_type=PREFIXED)]

    def change(index: AclIndex) -> None:
        for acl in new:
            index.add(acl)
        for acl in new:
            index.remove(acl)

    change(fresh(FEW).index)
    assert calls(lambda: change(fresh(MANY).index)) == calls(lambda: change(fresh(FEW).index))


def memory(work: Callable[[], object]) -> int:
    """How many bytes are left when the work is done, its result included."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
        del kept
        return left
    finally:
        tracemalloc.stop()


def test_what_was_decided_before_is_decided_again_without_a_new_object() -> None:
    asked = core(FEW)
    names = [topic(number) for number in range(500)]
    asked.authorize(USER, READ, TOPIC, names)
    # The list of the decisions itself.
    assert memory(lambda: asked.authorize(USER, READ, TOPIC, names)) < 500 * 16


@pytest.mark.parametrize("share", ["nothing", "principal"])
def test_an_acl_takes_less_than_a_kilobyte(share: str) -> None:
    count = 5_000
    users = range(count) if share == "nothing" else [0] * count

    def index() -> AclIndex:
        return AclIndex(allow(f"User:u{user}", name=topic(n)) for n, user in enumerate(users))

    assert memory(index) / count < (800 if share == "nothing" else 400)


def test_d6_a_decision_does_no_work_for_prefixes_that_are_gone() -> None:
    acls = [allow(name="top"[:length], pattern_type=PREFIXED) for length in (1, 2, 3)]
    asked = StandardAuthorizerData(AclIndex(acls[:1]))

    def work() -> int:
        return calls(lambda: asked.index.masks(ALICE.peer, TOPIC, "topic-7"))

    work()
    before = work()
    for acl in acls[1:]:
        asked.index.add(acl)
    work()
    assert work() > before
    for acl in acls[1:]:
        asked.index.remove(acl)
    work()
    assert work() == before
