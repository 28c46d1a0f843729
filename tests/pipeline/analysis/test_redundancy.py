"""Superfluous ACLs and contradictions: planted ones are found, random ones are what they are."""

from itertools import product
from random import Random

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import AclBinding, AclOperation, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.redundancy import redundancies, redundant
from tests.acl.examples import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.pipeline.random_acls import PEERS, PRINCIPALS, few_hosts, random_acls
from tests.pipeline.universe import Universe, companies, on_kafka
from tests.support.tables import check_each

SUBNETS = pytest.param(True, id="subnets", marks=pytest.mark.thorough)
OPEN = pytest.param(True, id="open", marks=pytest.mark.thorough)
CIDR = pytest.mark.parametrize("cidr", [pytest.param(False, id="addresses"), SUBNETS])


@CIDR
@pytest.mark.parametrize("default", [pytest.param(False, id="closed"), OPEN])
def test_without_the_redundant_acls_every_decision_is_the_same_here_and_on_kafka(
    cidr: bool, default: bool
) -> None:
    random = Random(f"{cidr} {default}")
    gone_in_all = 0
    for _ in range(20):
        rules = Ruleset(
            random_acls(random, random.choice((5, 20, 60)), few_hosts(random)),
            super_users=frozenset(["Group:staff"] if random.random() < 0.2 else []),
            allow_everyone_if_no_acl_found=default,
            cidr=cidr,
        )
        found = redundant(rules)
        gone = {each.acl for each in found}
        assert not gone & {acl for each in found for acl in each.by}
        smaller = rules.with_acls(set(rules.acls) - gone)
        universe = Universe(rules.acls, companies(rules.acls))
        assert universe.allowed(smaller) == universe.allowed(rules)
        if not cidr:
            assert universe.allowed(on_kafka(smaller)) == universe.allowed(on_kafka(rules))
        assert redundant(smaller) == []
        assert writers_anywhere(smaller) == writers_anywhere(rules)
        gone_in_all += len(gone)
    assert gone_in_all > 20


def writers_anywhere(rules: Ruleset) -> list[bool]:
    """Who may WRITE on any topic (KIP-679), which producers are asked for."""
    core = rules.authorizer()
    return [
        core.authorize_by_resource_type(Session((who,), peer, ""), WRITE, TOPIC).allowed
        for who, peer in product(PRINCIPALS, PEERS)
    ]


@CIDR
def test_a_contradictory_allow_says_what_denies_take_back_and_where(cidr: bool) -> None:
    random = Random(str(cidr))
    entire = partial = 0
    for _ in range(40):
        rules = Ruleset(random_acls(random, 20, few_hosts(random)), cidr=cidr)
        universe = Universe(rules.acls)
        for each in redundancies(rules).contradictions:
            alone = universe.allowed(rules.with_acls([each.allow]))
            left = universe.allowed(rules.with_acls([each.allow, *each.denies]))
            if each.entire:
                entire += 1
                assert alone
                assert not left
                continue
            partial += 1
            # Wherever the ALLOW holds, and not only for some names, hosts or principals.
            said = each.proof.removeprefix("DENYs take back ").partition(" wherever ")[0]
            taken = {AclOperation[name] for name in said.split(", ")}
            assert taken <= {universe.requests[at].operation for at in alone}
            assert taken.isdisjoint(universe.requests[at].operation for at in left)
    assert entire > 3
    assert partial > 3


WITHIN = [
    (allow(name="orders"), allow(name="*")),
    (allow(name="orders"), allow(name="ord", pattern_type=PREFIXED)),
    (allow(name="orders"), allow(name="orders", pattern_type=PREFIXED)),
    (allow(name="ord", pattern_type=PREFIXED), allow(name="o", pattern_type=PREFIXED)),
    (allow(name="ord", pattern_type=PREFIXED), allow(name="*")),
    (allow("User:alice"), allow("User:*")),
    (allow("Group:staff"), allow("User:*")),
    (allow(host="10.0.0.1"), allow()),
    (allow(operation=READ), allow(operation=ALL)),
    (allow(operation=DESCRIBE), allow(operation=READ)),
    (allow(operation=DESCRIBE_CONFIGS), allow(operation=ALTER_CONFIGS)),
    (
        allow("User:alice", DESCRIBE, "orders", host="10.0.0.1"),
        allow("User:*", WRITE, "o", pattern_type=PREFIXED),
    ),
]


def test_an_acl_within_another_is_covered() -> None:
    def check(case: tuple[AclBinding, AclBinding]) -> None:
        acl, by = case
        found = redundant(Ruleset(ordered([acl, by])))
        assert [(each.acl, each.by, each.same) for each in found] == [(acl, (by,), False)]
        assert found[0].proof == "Without it nothing changes: others hold for all that it allows."

    check_each(WITHIN, check)


def test_a_deny_within_another_is_covered() -> None:
    one, other = deny(), deny(operation=ALL, name="o", pattern_type=PREFIXED)
    (found,) = redundant(Ruleset(ordered([one, other, allow("User:*", ALL, "*")])))
    assert (found.acl, found.by) == (one, (other,))


def test_several_acls_cover_one_together() -> None:
    half = [allow("User:*", READ), allow("User:*", WRITE)]
    rest = [allow("User:*", operation) for operation in (CREATE, DELETE, ALTER, ALTER_CONFIGS)]
    (found,) = redundant(Ruleset(ordered([allow(operation=ALL), *half, *rest])))
    assert found.acl == allow(operation=ALL)
    assert set(found.by) == {*half, *rest}


DIFFERENT = [
    (allow(operation=CREATE), allow(operation=WRITE)),
    (allow(), allow(resource_type=GROUP, name="*")),
    (allow(name="orders"), allow(name="order")),
    (allow(name="orders"), allow(name="order*")),
    (allow(name="orders"), allow(name="*", pattern_type=PREFIXED)),
    (allow(host="10.0.0.1"), allow(host="10.0.0.0/24")),
    (allow("Group:staff"), allow("Group:*")),
    (deny(operation=DESCRIBE), deny(operation=READ)),
    (allow(resource_type=ResourceType.USER, name="*"), allow(name="*")),
]


def test_acls_that_differ_in_what_they_hold_for_cover_nothing() -> None:
    def check(case: tuple[AclBinding, AclBinding]) -> None:
        one, other = case
        assert redundant(Ruleset(ordered([one, other]))) == []

    check_each(DIFFERENT, check)


@pytest.mark.parametrize(
    ("kept", "duplicate", "cidr"),
    [
        ("10.0.0.1", "10.0.0.1/32", True),
        ("10.0.0.0/24", "10.0.0.77/24", True),
        ("0:0:0:0:0:0:0:1", "::1", False),
        ("10.0.0.1", "::ffff:10.0.0.1", False),
    ],
)
def test_of_two_that_mean_the_same_the_one_that_kafka_matches_is_kept(
    kept: str, duplicate: str, cidr: bool
) -> None:
    (found,) = redundant(Ruleset(ordered([allow(host=kept), allow(host=duplicate)]), cidr=cidr))
    assert (found.acl, found.by, found.same) == (allow(host=duplicate), (allow(host=kept),), True)


def test_an_address_that_kafka_matches_is_not_covered_by_one_that_it_overlooks() -> None:
    matched, overlooked = "0:0:0:0:0:0:0:1", "::1"
    rules = Ruleset(ordered([allow(host=matched), allow(operation=ALL, host=overlooked)]))
    assert redundant(rules) == []
    rules = Ruleset(ordered([allow(operation=ALL, host=matched), allow(host=overlooked)]))
    assert [each.acl.host for each in redundant(rules)] == [overlooked]


def test_an_allow_that_never_decides_is_a_contradiction_and_not_superfluous() -> None:
    taken, denial = allow(), deny(operation=ALL)
    found = redundancies(Ruleset(ordered([taken, denial, allow("User:*")])))
    assert found.covered == []
    (each,) = found.contradictions
    assert (each.allow, each.denies, each.entire) == (taken, (denial,), True)


def test_what_is_denied_for_some_alone_is_an_exception_and_no_contradiction() -> None:
    exceptions = [deny("User:bob", ALL), deny("User:*", ALL, "news", host="10.0.0.1")]
    rules = Ruleset(ordered([allow("User:*"), allow("User:*", name="news"), *exceptions]))
    assert redundancies(rules).contradictions == []
    (each,) = redundancies(Ruleset(ordered([allow(operation=ALL), deny(operation=WRITE)])))[1]
    assert (each.entire, each.proof) == (False, "DENYs take back WRITE wherever it holds.")


def test_contradictions_come_in_the_order_of_acls() -> None:
    acls = [*(allow(name=name) for name in ("b", "c", "a")), deny("User:*", ALL, "*")]
    found = redundancies(Ruleset(ordered(acls))).contradictions
    assert [each.allow.resource_name for each in found] == ["a", "b", "c"]
