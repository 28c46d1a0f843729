"""Cases drawn at random, always the same ones."""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.cases.scenario import Scenario, as_admin
from tests.conformance.requests import (
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    LITERAL,
    MATCH,
    PREFIXED,
    TOPIC,
    Request,
    acl,
    create,
    delete,
    describe,
    matching,
)

NAMES = ("a", "ab", "abc", "b", "*", "é")
PRINCIPALS = ("User:a", "User:b", "User:*", "Group:a", "user:a")
HOSTS = ("*", "10.0.0.1", "::1")


def drawn() -> list[Scenario]:
    """Return scenarios of several creations, deletions and descriptions each."""
    return [_scenario(f"drawn {seed}", random.Random(seed)) for seed in range(20)]


def _scenario(name: str, rng: random.Random) -> Scenario:
    requests = [create(*(_creation(rng) for _ in range(rng.randint(10, 25))))]
    requests += [Request(DESCRIBE_ACLS, _filter(rng)) for _ in range(6)]
    for _ in range(2):
        requests.append(delete(*(_filter(rng) for _ in range(rng.randint(1, 4)))))
        requests.append(describe())
        requests.append(create(*(_creation(rng) for _ in range(rng.randint(1, 5)))))
        requests.append(Request(DESCRIBE_ACLS, _filter(rng)))
    return Scenario(name, as_admin(*requests), (rng.randint(1, 3),))


def _creation(rng: random.Random) -> dict[str, Any]:
    kind = rng.randint(TOPIC, 7)
    named = CLUSTER_NAME if kind == CLUSTER else rng.choice(NAMES)
    pattern = rng.choice((LITERAL, PREFIXED))
    principal, host = rng.choice(PRINCIPALS), rng.choice(HOSTS)
    return acl(kind, named, pattern, principal, host, rng.randint(2, 15), rng.randint(2, 3))


def _filter(rng: random.Random) -> dict[str, Any]:
    """Draw a filter; each field is given in about one of three."""

    def maybe(*values: Any, otherwise: Any) -> Any:
        return rng.choice(values) if rng.random() < 0.35 else otherwise

    return matching(
        maybe(*range(2, 8), otherwise=ANY),
        maybe(*NAMES, CLUSTER_NAME, otherwise=None),
        maybe(MATCH, MATCH, LITERAL, PREFIXED, otherwise=ANY),
        maybe(*PRINCIPALS, otherwise=None),
        maybe(*HOSTS, otherwise=None),
        maybe(*range(2, 16), otherwise=ANY),
        maybe(2, 3, otherwise=ANY),
    )


def drawn_rights() -> list[Scenario]:
    """Return which operations on the cluster a user has by ACLs drawn for and against her."""
    return [_rights(f"drawn rights {seed}", random.Random(seed)) for seed in range(100, 125)]


def _rights(name: str, rng: random.Random) -> Scenario:
    acls = [
        acl(
            CLUSTER,
            CLUSTER_NAME,
            rng.choice((LITERAL, PREFIXED)),
            rng.choice(("User:admin", "User:alice", "User:alice", "User:*", "Group:alice")),
            rng.choice(("*", "127.0.0.1", "127.0.0.2")),
            rng.randint(2, 15),
            rng.choices((3, 2), (3, 1))[0],
        )
        for _ in range(rng.randint(1, 5))
    ]
    fields = {
        "include_cluster_authorized_operations": True,
        "endpoint_type": 1,
        "include_fenced_brokers": False,
    }
    asked = [(user, Request(DESCRIBE_CLUSTER, fields)) for user in ("alice", "bob", "admin")]
    steps = [*as_admin(create(*acls))]
    steps += [steps[0]._replace(user=user, request=request, version=1) for user, request in asked]
    return Scenario(name, tuple(steps), (3,))
