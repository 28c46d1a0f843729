"""Questions that no difference of two sets of rules concerns are decided alike by both."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.replay.deciding import Rules, decide
from aclbroker.pipeline.replay.flips.comparing import AFTER, BEFORE, Comparer
from aclbroker.pipeline.replay.flips.difference import Difference
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.random_acls import NAMES, PEERS, PRINCIPALS, few_hosts, random_acls

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("cluster", "listener", "principal", "other_principals")),
        *((name, pa.string()) for name in ("host", "operation", "resource_type", "resource_name")),
        *((name, pa.int64()) for name in ("events", "allowed_events")),
        ("example_host", pa.string()),
    ]
)
SETTINGS = [
    {},
    {"super_users": frozenset({"User:bob"})},
    {"broker_users": BrokerUsers(frozenset({"User:bob"}), "BROKERS")},
    {"cidr": True},
    {"allow_everyone_if_no_acl_found": True},
]


def question(**values: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"cluster": "eu", "listener": "BROKERS", "principal": "User:alice"}
    found |= {"other_principals": None, "host": "10.0.0.1", "operation": "READ"}
    found |= {"resource_type": "TOPIC", "resource_name": "a", "events": 3, "allowed_events": 1}
    found |= values
    return found | {"example_host": found["host"]}


def random_questions(random: Random, clusters: list[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            question(
                cluster=random.choice(clusters),
                listener=random.choice(["BROKERS", "CLIENTS", None]),
                principal=random.choice([*PRINCIPALS, "User:carol", "User:*", None]),
                other_principals=random.choice([None, None, json.dumps(["Group:staff"])]),
                host=random.choice([*PEERS, None]),
                operation=random.choice(["READ", "DESCRIBE", "ALTER_CONFIGS"]),
                resource_type=random.choice(["TOPIC", "TOPIC", "GROUP"]),
                resource_name=random.choice([*NAMES, "hardcode", "z", ANY_RESOURCE, None]),
            )
            for _ in range(60)
        ],
        schema=SCHEMA,
    )


def random_pair(random: Random) -> tuple[Ruleset, Ruleset]:
    """Rules, and the same with some ACLs removed and others added, and seldom another setting."""
    hosts = few_hosts(random)
    before = Ruleset(random_acls(random, 20, hosts), **random.choice(SETTINGS))  # type: ignore[arg-type]
    kept = random.sample(before.acls, max(len(before.acls) - random.randrange(4), 0))
    after = before.with_acls([*kept, *random_acls(random, random.randrange(3), hosts)])
    return before, replace(after, **random.choice([{}, {}, {}, *SETTINGS]))  # type: ignore[arg-type]


@given(st.randoms(use_true_random=False))
def test_comparing_finds_what_deciding_everything_twice_finds(random: Random) -> None:
    both, proposed = random_pair(random), random_pair(random)[1]
    questions = random_questions(random, ["eu", "us"])
    # Nobody knows which rules are in force in the cluster us.
    rules = {
        BEFORE: Rules({"eu": both[0]}),
        AFTER: Rules({"eu": both[1], "us": proposed}),
    }
    expected = decide(questions, rules).to_pylist()
    found = list(Comparer()(questions, rules))
    flips = [row for batch in found[1:] for row in batch.to_pylist()]
    assert [{name: row[name] for name in expected[0]} for row in flips] == [
        row
        for row in expected
        if row["before_allowed"] is None or row["before_allowed"] != row["after_allowed"]
    ]
    (counts,) = found[0].to_pylist()
    denied = sum(row["before_allowed"] is False for row in expected)
    assert counts["drift_denied"] == denied


(ALICES,) = acls("allow READ topic orders literal User:alice")
(BOBS,) = acls("allow READ topic news literal User:bob")
(EVERYONES,) = acls("allow READ topic app. prefixed User:*")
RULES = Ruleset(ordered([ALICES, BOBS, EVERYONES]))


def concerned(before: Ruleset, after: Ruleset, *questions: dict[str, Any]) -> list[bool]:
    batch = pa.RecordBatch.from_pylist([question(**each) for each in questions], schema=SCHEMA)
    found: list[bool] = Difference(before, after).concerned(batch).tolist()
    return found


def test_only_whoever_has_another_acl_is_concerned() -> None:
    before, after = RULES, RULES.with_acls([BOBS, EVERYONES])
    alice, bob, carol = ({"principal": f"User:{name}"} for name in ("alice", "bob", "carol"))
    of_group = bob | {"other_principals": '["User:alice"]'}
    assert concerned(before, after, alice, bob, carol, of_group) == [True, False, False, True]
    assert concerned(before, before, alice, bob, carol, of_group) == [False] * 4


def test_an_acl_of_everyone_concerns_all_on_its_resources() -> None:
    before, after = RULES, RULES.with_acls([ALICES, BOBS])
    names = ["app.a", "app", "orders", ANY_RESOURCE, None]
    asked = [{"resource_name": name} for name in names]
    assert concerned(before, after, *asked) == [True, False, False, True, True]
    groups = [each | {"resource_type": "GROUP"} for each in asked[:2]]
    assert concerned(before, after, *groups) == [False, False]


def test_an_acl_of_anybody_concerns_all_where_resources_without_acls_are_open() -> None:
    before = replace(RULES, allow_everyone_if_no_acl_found=True)
    asked = [{"principal": "User:carol", "resource_name": name} for name in ("orders", "news")]
    assert concerned(before, before.with_acls([BOBS, EVERYONES]), *asked) == [True, False]


@pytest.mark.parametrize("setting", SETTINGS[1:])
def test_another_setting_concerns_everything(setting: dict[str, Any]) -> None:
    after = replace(RULES, **setting)
    assert concerned(RULES, after, {}, {"resource_name": None}) == [True, True]


@given(st.randoms(use_true_random=False))
def test_what_is_not_concerned_is_decided_alike(random: Random) -> None:
    before, after = random_pair(random)
    questions = random_questions(random, ["eu"])
    is_concerned = Difference(before, after).concerned(questions)
    rest = questions.take(pa.array(np.flatnonzero(~is_concerned)))
    answered = decide(rest, {BEFORE: Rules({"eu": before}), AFTER: Rules({"eu": after})})
    for column in ("allowed", "rule"):
        assert answered.column(f"before_{column}") == answered.column(f"after_{column}")
