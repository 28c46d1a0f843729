"""What the reasoning says of regions is what the authorizer says of every request in them.

Sets of rules are random. The authorizer, and the independent model of tests/model.py, are asked
about the example of each region and about requests that are drawn to lie at the edges of regions.
"""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, operations_of
from tests.acl.reasoning.random_rules import (
    ASKED_NAMES,
    MORE,
    PEERS,
    SUBJECTS,
    decided,
    random_acl,
    random_request,
    random_rules,
    written_otherwise,
)

ROUNDS = [
    *range(5),
    *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(5, 20 * MORE)),
]
"""Each is a random number's seed; a round has a few dozen sets."""

SETS = 25
REQUESTS = 60


@pytest.mark.parametrize("seed", ROUNDS)
def test_a_request_is_in_one_region_of_what_a_principal_can_if_it_is_allowed_else_in_none(seed):
    random = Random(f"what can {seed}")
    for _ in range(SETS):
        rules = random_rules(random)
        authorizer, reasoner = rules.authorizer(), Reasoner(rules)
        regions = {each: list(reasoner.what_can(each)) for each in SUBJECTS}
        for region in (region for of_one in regions.values() for region in of_one):
            example = region.example()
            assert example is not None
            assert example in region
            assert decided(rules, authorizer, example)
            for host in region.cut.examples(region.mask):
                assert decided(rules, authorizer, example._replace(host=host))
        for _ in range(REQUESTS):
            request = random_request(random)
            found = sum(request in region for region in regions[request.principal])
            assert found == decided(rules, authorizer, request), (rules, request)


@pytest.mark.parametrize("seed", ROUNDS)
def test_a_request_is_in_one_difference_if_its_decision_differs_else_in_none(seed):
    random = Random(f"compare {seed}")
    for _ in range(SETS):
        old = random_rules(random)
        new = random_rules(random, like=old if random.random() < 0.7 else None)
        compared = compare(old, new)
        authorizers = old.authorizer(), new.authorizer()
        for is_gained, region in compared.differences:
            example = region.example(compared.named)
            assert example is not None
            assert example in region
            assert decided(old, authorizers[0], example) is not is_gained, (old, new, example)
            assert decided(new, authorizers[1], example) is is_gained, (old, new, example)
        for _ in range(REQUESTS):
            request = random_request(random)
            before = decided(old, authorizers[0], request)
            after = decided(new, authorizers[1], request)
            found = [each.is_gained for each in compared.differences if request in each.region]
            assert found == ([] if before == after else [after]), (old, new, request)


@pytest.mark.parametrize("seed", ROUNDS)
def test_who_can_names_everybody_who_may_on_a_name_and_nobody_else(seed):
    random = Random(f"who can {seed}")
    for _ in range(SETS):
        rules = random_rules(random)
        authorizer, reasoner = rules.authorizer(), Reasoner(rules)
        asked = random_request(random)
        key = ROOT if asked.resource_type is ResourceType.CLUSTER else (asked.name, LITERAL)
        host = random.choice((None, asked.host))
        holders = list(reasoner.who_can(asked.operation, asked.resource_type, key, host))
        for holder in holders:
            assert holder.on_all == holder.on_some
            assert decided(rules, authorizer, holder.example)
        for principal in SUBJECTS:
            for peer in PEERS if host is None else [host]:
                at = reasoner.cut.at(peer)
                found = sum(
                    principal in each.principals and bool(each.on_all & at) for each in holders
                )
                request = asked._replace(principal=principal, host=peer)
                assert found == decided(rules, authorizer, request), (rules, request)


@pytest.mark.parametrize("seed", ROUNDS)
def test_who_can_on_all_names_and_on_some_is_so_on_names_that_begin_so(seed):
    random = Random(f"who can on a prefix {seed}")
    for _ in range(SETS):
        rules = random_rules(random)
        authorizer, reasoner = rules.authorizer(), Reasoner(rules)
        kind = random.choice((ResourceType.TOPIC, ResourceType.GROUP))
        operation = random.choice(operations_of(kind))
        prefix = random.choice(("", "a", "ab", "abc", "abcd", "abcde", "b", "é"))
        holders = list(reasoner.who_can(operation, kind, (prefix, PREFIX)))
        names = edge_names(rules, prefix)
        for holder in holders:
            assert not holder.on_all & ~holder.on_some
            assert holder.example.name.startswith(prefix)
            assert decided(rules, authorizer, holder.example)
        for principal in SUBJECTS:
            mine = [each for each in holders if principal in each.principals]
            assert len(mine) <= 1
            for host in reasoner.cut.examples(reasoner.cut.everywhere):
                at = reasoner.cut.at(host)
                request = holders[0].example if holders else random_request(random)
                request = request._replace(
                    principal=principal, host=host, operation=operation, resource_type=kind
                )
                answers = {
                    decided(rules, authorizer, request._replace(name=name)) for name in names
                }
                assert (answers == {True}) == any(each.on_all & at for each in mine), rules
                assert (True in answers) == any(each.on_some & at for each in mine), rules


AB = ["".join(letters) for size in range(9) for letters in product("ab", repeat=size)]
MANY_NAMES = [*AB, *(name + "x" for name in AB)]
"""1,022 names. Of patterns of up to eight a and b, each region has one of these or no name."""


def rules_of_many_names(random: Random) -> Rules:
    """Rules with prefixes in prefixes in prefixes, and literals all over them."""
    acls = []
    for _ in range(200):
        name = "".join(random.choices("ab", k=random.choice((1, 2, 3, 4, 5, 6, 8))))
        acl = random_acl(random)._replace(
            resource_type=ResourceType.TOPIC,
            operation=random.choice((AclOperation.READ, AclOperation.ALL)),
            resource_name=name,
        )
        if random.random() < 0.02:
            acl = acl._replace(resource_name=WILDCARD, pattern_type=PatternType.LITERAL)
        acls.append(acl._replace(host=WILDCARD) if random.random() < 0.8 else acl)
    return replace(random_rules(random), acls=sorted(set(acls)))


@pytest.mark.parametrize("seed", range(4 * MORE))
def test_answers_about_all_names_are_so_on_a_thousand_names_at_edges(seed):
    random = Random(f"a thousand names {seed}")
    rules = rules_of_many_names(random)
    authorizer, reasoner = rules.authorizer(), Reasoner(rules)
    read = AclOperation.READ, ResourceType.TOPIC
    regions = {each: list(reasoner.what_can(each)) for each in SUBJECTS}
    questions = {
        prefix: list(reasoner.who_can(*read, (prefix, PREFIX))) for prefix in ("", "a", "ab", "bab")
    }
    for principal, host in product(SUBJECTS, ("10.0.0.1", "10.1.0.0")):
        at = reasoner.cut.at(host)
        request = Request(principal, host, *read, "")
        allowed = set()
        for name in MANY_NAMES:
            asked = request._replace(name=name)
            if asked.is_allowed(rules, authorizer):
                allowed.add(name)
            found = sum(asked in region for region in regions[principal])
            assert found == (name in allowed), (rules, asked)
        for prefix, holders in questions.items():
            mine = [each for each in holders if principal in each.principals]
            of_prefix = {name for name in MANY_NAMES if name.startswith(prefix)}
            assert any(each.on_all & at for each in mine) == (of_prefix <= allowed)
            assert any(each.on_some & at for each in mine) == bool(of_prefix & allowed)


@pytest.mark.parametrize("seed", range(4 * MORE))
def test_sets_that_differ_in_nothing_decide_alike_on_ten_thousand_requests(seed):
    random = Random(f"written otherwise {seed}")
    rewritten = 0
    for _ in range(SETS):
        old = random_rules(random)
        new = written_otherwise(old)
        rewritten += old.acls != new.acls
        assert compare(old, new).differences == []
        authorizers = old.authorizer(), new.authorizer()
        for _ in range(10_000 // SETS):
            request = random_request(random)
            before, after = (
                request.is_allowed(rules, authorizer)
                for rules, authorizer in zip((old, new), authorizers, strict=True)
            )
            assert before is after, (old, request)
    assert rewritten


def edge_names(rules, prefix):
    """A name of each region below a prefix, whatever the ACLs, and those at the edges."""
    named = {
        name
        for acl in rules.acls
        for name in (acl.resource_name, acl.resource_name + "q", acl.resource_name + "a")
    }
    found = {name for name in (*named, *ASKED_NAMES) if name.startswith(prefix)}
    return {*found, prefix, prefix + "q", prefix + "qq"}


def test_rights_on_the_cluster_are_on_its_only_name():
    random = Random("cluster")
    for _ in range(100):
        rules = random_rules(random)
        for region in Reasoner(rules).what_can("User:alice"):
            if region.names.resource_type is ResourceType.CLUSTER:
                assert region.names.pattern == (PatternType.LITERAL, CLUSTER_NAME)
                assert region.names.exceptions == ()
