"""Which difference of two sets of rules a request is of, found without a look at each of them."""

from random import Random

import pytest

from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.places import Places
from aclbroker.acl.reasoning.rules import Rules
from tests.acl.examples import PREFIXED, READ, TOPIC, allow
from tests.acl.reasoning.random_rules import MORE, by_model, random_request, random_rules
from tests.acl.reasoning.test_explain import ORDERS


@pytest.mark.parametrize("seed", range(20 * MORE))
def test_a_request_is_found_where_it_is_and_nowhere_else(seed):
    random = Random(f"places {seed}")
    differing = 0
    for _ in range(20):
        old = random_rules(random)
        new = random_rules(random, like=old)
        differences = compare(old, new).differences
        places = Places(differences)
        for _ in range(100):
            request = random_request(random)
            found = places.find(request)
            there = [number for number, each in enumerate(differences) if request in each.region]
            assert there == ([] if found is None else [found])
            is_other = by_model(old, request) is not by_model(new, request)
            assert (found is not None) is is_other
            differing += is_other
    assert differing > 50


def test_the_names_of_exceptions_are_of_others():
    old = Rules([allow("User:*", name="a", pattern_type=PREFIXED), allow(name="ab")])
    new = Rules([allow("User:*", name="abc", pattern_type=PREFIXED), allow(name="ab")])
    places = Places(compare(old, new).differences)
    for name, is_lost in (
        ("ab", False),
        ("ax", True),
        ("abd", True),
        ("abcd", False),
        ("b", False),
    ):
        found = places.find(ORDERS._replace(operation=READ, resource_type=TOPIC, name=name))
        assert (found is not None) is is_lost, name
