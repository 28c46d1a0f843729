"""Decisions that are remembered, among ACLs that change, are those of the model of tests/model.py.

An authorizer goes through many changes and is asked between them, so that it would show if it went
on with what it remembers: the model remembers nothing. In all there are 120,000 pairs of an ACL set
and a request.
"""

from functools import lru_cache
from random import Random

import pytest

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import AclBinding, AclPermission, PatternType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import supported_operations
from tests import model
from tests.acl.strategies import HOSTS, OPERATIONS, PEERS, PRINCIPALS, RESOURCE_TYPES

NAMES = ["a", "ab", "abc", "abcd", "b", "*", "hardcode", "é"]
HISTORIES = 100
CHANGES = 60
QUESTIONS = 5


def history(random, core, rules):
    """Change and ask, in turns."""
    plain: set[AclBinding] = set()
    size = random.choice((4, 12, 40))
    # Few of everything, so that the same is asked again and again.
    requests = [
        (
            Session(tuple(random.sample(PRINCIPALS, random.choice((1, 1, 2)))), peer, "PLAINTEXT"),
            random.choice(OPERATIONS),
            random.choice(RESOURCE_TYPES),
            name,
        )
        for peer in random.sample(PEERS, 3)
        for name in random.sample(NAMES, 4)
    ]
    for _ in range(CHANGES):
        change(random, core.index, plain, size)
        for request in random.sample(requests, QUESTIONS):
            compare(random, core, plain, request, rules)


def change(random, index, plain, size):
    """Add an ACL or, the more often the closer their number is to ``size``, remove one."""
    if plain and random.random() < len(plain) / size:
        binding = random.choice(sorted(plain))
        assert index.remove(binding)
        plain.remove(binding)
    else:
        binding = AclBinding(
            random.choice(RESOURCE_TYPES),
            random.choice(NAMES),
            random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            random.choice(PRINCIPALS),
            random.choice(HOSTS),
            random.choice(OPERATIONS),
            random.choice((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
        )
        assert index.add(binding) == (binding not in plain)
        plain.add(binding)


def compare(random, core, plain, request, rules):
    """Ask whether an operation is allowed, and now and then the two other questions."""
    session, operation, resource_type, name = request
    who = (session.principals, session.host)
    decision = core.decide(session, Action(operation, resource_type, name))
    assert decision.allowed == model.authorize(plain, *who, operation, resource_type, name, **rules)
    if decision.rule.binding is not None:
        assert decision.rule.binding in plain
    kind = random.random()
    if kind < 0.2:
        anywhere = core.authorize_by_resource_type(session, operation, resource_type)
        about = (*who, operation, resource_type)
        assert anywhere.allowed == model.authorize_by_type(plain, *about, **rules)
    elif kind < 0.3:
        assert core.authorized_operations(session, resource_type, name) == sum(
            1 << each
            for each in supported_operations(resource_type)
            if model.authorize(plain, *who, each, resource_type, name, **rules)
        )


@pytest.fixture(autouse=True)
def quick_model(monkeypatch):
    """The model parses addresses anew each time, which is most of its time."""
    monkeypatch.setattr(model, "address", lru_cache(model.address))


@pytest.mark.parametrize("default", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("cidr", [False, True], ids=["addresses", "subnets"])
def test_no_answer_is_older_than_the_acls(default, cidr):
    random = Random(f"{default} {cidr}")
    for number in range(HISTORIES):
        supers = ("Group:staff",) if number % 4 == 0 else ()
        core = StandardAuthorizerData(AclIndex(cidr=cidr), supers, default)
        rules = {"super_users": supers, "allow_if_no_acl": default, "cidr": cidr}
        history(random, core, rules)
