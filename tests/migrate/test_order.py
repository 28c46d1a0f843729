"""No step of a move allows a request that neither the source nor the target allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.cli.migrate.moving import make
from aclbroker.cli.migrate.places import Contents, Place
from aclbroker.cli.migrate.plan import move
from tests.acl.examples import (
    ALL,
    DESCRIBE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allowed,
    authorizer,
    session,
)

NAMES = ("a", "ab", "abc", "*")
PRINCIPALS = ("User:alice", "User:bob", "User:*")
REQUESTS = [
    (operation, name, session(principal))
    for operation, name, principal in product((READ, WRITE), NAMES[:3], PRINCIPALS[:2])
]


class Remembering(Place):
    """A place that remembers what it had after each step."""

    def __init__(self, acls: Collection[AclBinding], at_once: int | None) -> None:
        super().__init__("memory:")
        self.at_once = at_once
        self.history = [set(acls)]

    def read(self, *, may_be_new: bool = False) -> Contents:
        return Contents(list(self.history[-1]))

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        self.history.append((self.history[-1] | set(added)) - set(removed))
        return {}


def drawn(random: Random) -> list[AclBinding]:
    return list(
        {
            AclBinding(
                TOPIC,
                random.choice(NAMES),
                random.choice((LITERAL, PREFIXED)),
                random.choice(PRINCIPALS),
                "*",
                random.choice((READ, WRITE, DESCRIBE, ALL)),
                random.choice((AclPermission.ALLOW, AclPermission.DENY)),
            ): None
            for _ in range(random.randrange(12))
        }
    )


def decisions(acls: Collection[AclBinding]) -> list[bool]:
    core = authorizer(*acls)
    return [allowed(core, *request) for request in REQUESTS]


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("at_once", [1, 3, None])
def test_no_step_allows_what_neither_side_allows(at_once: int | None, prune: bool) -> None:
    random = Random(5)
    steps = 0
    for _ in range(150):
        source, target = drawn(random), Remembering(drawn(random), at_once)
        before, wanted = decisions(target.history[0]), decisions(source)
        planned = move(source, list(target.history[0]), target.refusal, prune=prune)
        assert make(planned.changes, target, may_lose_denies=False) == {}
        for state in target.history:
            for now, old, new in zip(decisions(state), before, wanted, strict=True):
                assert not now or old or new
        assert target.history[-1] == set(source) | (set() if prune else target.history[0])
        steps += len(target.history) - 1
    assert steps > 100


def test_a_step_has_no_more_acls_than_the_place_takes() -> None:
    acls = drawn(Random(1)) + drawn(Random(2))
    target = Remembering([], 2)
    make(move(acls, [], target.refusal, prune=False).changes, target, may_lose_denies=False)
    sizes = [
        len(after) - len(before)
        for before, after in zip(target.history, target.history[1:], strict=False)
    ]
    assert sum(sizes) == len(set(acls))
    assert max(sizes) == 2
