"""Rules reach workers as they are, and ACLs have one order."""

import pickle
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.bindings import AclOperation, AclPermission, PatternType, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.ruleset import Ruleset, changes, ordered
from tests.pipeline.random_acls import random_acls

BROKER_USERS = BrokerUsers(frozenset({"User:broker"}), "BROKERS")


@given(st.randoms(use_true_random=False), st.booleans(), st.booleans())
def test_rules_are_the_same_in_a_worker(random: Random, is_open: bool, cidr: bool) -> None:
    acls = random_acls(random, random.randrange(20))
    rules = Ruleset(acls, frozenset({"User:admin"}), BROKER_USERS, is_open, cidr)
    for each in (rules, replace(rules, cidr=not cidr), Ruleset()):
        found = pickle.loads(pickle.dumps(each))
        assert found == each
        for acl in found.acls:
            assert isinstance(acl.resource_type, ResourceType)
            assert isinstance(acl.pattern_type, PatternType)
            assert isinstance(acl.operation, AclOperation)
            assert isinstance(acl.permission, AclPermission)


def test_rules_of_many_acls_travel_as_columns() -> None:
    """A hundred thousand ACLs go to each worker: what they say, and not how an ACL is made."""
    acls = random_acls(Random(1), 1_000)
    assert len(pickle.dumps(Ruleset(acls))) < len(pickle.dumps(acls)) / 2


@given(st.randoms(use_true_random=False))
def test_acls_have_one_order_and_each_is_there_once(random: Random) -> None:
    acls = random_acls(random, 20)
    others = [*acls, *random.sample(acls, len(acls) // 2)]
    random.shuffle(others)
    assert ordered(others) == acls == tuple(sorted(set(others)))


@given(st.randoms(use_true_random=False))
def test_every_acl_of_two_sets_is_kept_added_or_removed(random: Random) -> None:
    acls = random_acls(random, random.randrange(12))
    before, after = (ordered(acl for acl in acls if random.random() < 0.6) for _ in range(2))
    found = list(changes(before, after))
    assert [acl for acl, _ in found] == list(ordered([*before, *after]))
    for acl, change in found:
        assert (
            change
            == {
                (True, True): "kept",
                (False, True): "added",
                (True, False): "removed",
            }[acl in before, acl in after]
        )
