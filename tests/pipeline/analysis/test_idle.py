"""Which ACLs never decide: some names at a time give what all of them together do."""

from random import Random

import pytest

from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.idle import without_idle
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.random_acls import few_hosts, random_acls

ALL_AT_ONCE = 1_000_000


@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(4, 20))]
)
def test_names_by_themselves_give_what_all_together_give(seed: int):
    random = Random(seed)
    removed = 0
    for number in range(30):
        rules = Ruleset(
            random_acls(random, 30, few_hosts(random)),
            super_users=frozenset(["User:bob"] if number % 5 == 0 else ()),
            allow_everyone_if_no_acl_found=number % 3 == 0,
            cidr=number % 2 == 0,
        )
        sessions = [("User:alice", "User:bob")] if number % 4 == 0 else []
        expected = without_idle(rules, sessions, ALL_AT_ONCE)
        assert without_idle(rules, sessions, 1) == expected
        removed += len(rules.acls) - len(expected.acls)
    assert removed > 0


def test_a_wide_deny_stays_that_holds_for_one_name_of_the_last_part_alone():
    kept = [
        *(f"allow READ topic a{number} literal User:bob" for number in range(50)),
        "allow ALL topic z literal User:alice",
        "deny READ topic * literal User:alice",
    ]
    # Nobody allows alice anything that begins so.
    idle = "deny WRITE topic a prefixed User:alice"
    rules = Ruleset(ordered(acls(*kept, idle)))
    assert set(without_idle(rules, (), 1).acls) == set(acls(*kept))
