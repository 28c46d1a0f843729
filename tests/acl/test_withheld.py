"""Patterns whose ACLs cannot be read: nobody but super users may use what they are about."""

import pytest

from aclbroker.acl.authorizer import Action
from aclbroker.acl.bindings import AclFilter, AclOperation, ResourcePattern
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from tests.acl.examples import (
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    allowed,
    authorizer,
    session,
)

ORDERS = ResourcePattern(TOPIC, LITERAL, "orders")
BEFORE_ORDERS = ResourcePattern(TOPIC, PREFIXED, "ord")
EVERY = ResourcePattern(TOPIC, LITERAL, "*")


@pytest.mark.parametrize("pattern", [ORDERS, BEFORE_ORDERS, EVERY])
@pytest.mark.parametrize("others", [0, 40])
def test_what_is_withheld_is_denied_until_it_is_released(pattern, others):
    prefixed = [allow(name=f"x{'y' * n}", pattern_type=PREFIXED) for n in range(others)]
    core = authorizer(allow(), allow(operation=WRITE, name="o", pattern_type=PREFIXED), *prefixed)
    assert allowed(core)
    core.index.withhold(pattern)
    core.index.withhold(pattern)
    assert core.index.withheld == {pattern}
    assert not allowed(core)
    assert not allowed(core, WRITE)
    assert core.authorized_operations(session(), TOPIC, "orders") == 0
    core.index.release(pattern)
    core.index.release(pattern)
    assert core.index.withheld == set()
    assert allowed(core)


def test_others_are_decided_as_before():
    core = authorizer(allow(), allow(name="ord"), allow(resource_type=GROUP), allow(name="other"))
    core.index.withhold(ORDERS)
    assert allowed(core, name="other")
    assert allowed(core, name="ord")
    assert allowed(core, resource_type=GROUP)


def test_nobody_is_allowed_by_default_and_super_users_still_are():
    core = authorizer(allow_everyone_if_no_acl_found=True, super_users=["User:root"])
    core.index.withhold(BEFORE_ORDERS)
    assert not allowed(core, name="orders")
    assert allowed(core, name="payments")
    assert allowed(core, who=session("User:root"))
    assert not allowed(core, who=session("Other:kind"))


def test_it_is_in_no_list_and_not_counted_and_the_reason_is_a_denial_of_all():
    index = AclIndex([allow()])
    index.withhold(ORDERS)
    assert len(index) == 1
    assert list(index) == [allow()]
    assert list(index.find(AclFilter(principal="User:*"))) == []
    decision = StandardAuthorizerData(index).decide(session(), Action(READ, TOPIC, "orders"))
    denying = decision.rule.binding
    assert denying is not None
    assert (denying.principal, denying.operation) == ("User:*", AclOperation.ALL)
    assert denying not in index
    assert not index.remove(denying)


def test_any_resource_of_a_type_is_not_one_that_is_withheld():
    core = authorizer(allow())
    assert core.authorize_by_resource_type(session(), READ, TOPIC).allowed
    core.index.withhold(ORDERS)
    assert not core.authorize_by_resource_type(session(), READ, TOPIC).allowed


def test_acls_can_come_and_go_beside_what_is_withheld():
    index = AclIndex()
    prefixed = allow(name="ord", pattern_type=PREFIXED)
    index.withhold(BEFORE_ORDERS)
    index.add(prefixed)
    index.remove(prefixed)
    core = StandardAuthorizerData(index)
    assert not allowed(core)
    index.release(BEFORE_ORDERS)
    index.add(prefixed)
    assert allowed(core)
