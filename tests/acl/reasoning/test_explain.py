"""Why a request is decided as it is, and what would turn the decision."""

from random import Random

import pytest

from aclbroker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.reasoning.compound import (
    ACTIVITIES,
    CONSUME,
    IDEMPOTENT,
    IN_GROUP,
    PRODUCE,
    TRANSACTIONAL,
    needs_of,
    parts,
)
from aclbroker.acl.reasoning.explain import Change, explain
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, operations_of
from aclbroker.acl.why_denied import why_denied
from aclbroker.broker.gate.need import Broader, Profile
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import ApiKey
from tests.acl.examples import (
    ALL,
    ALTER,
    CLUSTER,
    CREATE,
    DESCRIBE,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.acl.reasoning.random_rules import MORE, by_model, random_request, random_rules

TXN_ID = ResourceType.TRANSACTIONAL_ID
ORDERS = Request("User:alice", "10.0.0.7", READ, TOPIC, "orders")


def explained(*acls, request=ORDERS, **settings):
    return explain(Rules(acls, **settings), request)


@pytest.mark.parametrize("seed", range(10 * MORE))
def test_the_change_that_is_told_turns_the_decision(seed):
    random = Random(f"explain {seed}")
    turned = 0
    for _ in range(150):
        rules, request = random_rules(random), random_request(random)
        found = explain(rules, request)
        assert found.is_allowed is by_model(rules, request)
        for near in found.near_misses:
            assert near.acl in rules.acls
            assert found.kind is RuleKind.DEFAULT_DENY
        if found.change is not None:
            turned += 1
            assert by_model(found.change.applied(rules), request) is not found.is_allowed
    assert turned > 140


@pytest.mark.parametrize("seed", range(10 * MORE))
def test_the_audit_log_says_of_a_denial_what_is_explained_of_it(seed):
    random = Random(f"words {seed}")
    told = with_near = 0
    for _ in range(300):
        rules, request = random_rules(random), random_request(random)
        found = explain(rules, request)
        if found.is_allowed:
            continue
        session = rules.session(request.principal, request.host)
        resource = request.resource_type, request.name
        why = why_denied(rules.authorizer(), session, found.kind, request.operation, resource)
        if why.change is not None:
            told += 1
            assert str(why.change) == str(found.change)
        near = [each for each in why.nearest or () if " and " not in each.why]
        with_near += bool(near)
        assert set(near) <= set(found.near_misses) or len(found.near_misses) == 5
    assert told > 50
    assert with_near > 5


def test_what_would_do_on_any_topic_is_told_to_an_idempotent_producer():
    any_topic = ORDERS._replace(operation=WRITE, name=ANY_RESOURCE)
    near = allow(operation=WRITE, host="10.0.0.8")
    found = explained(near, request=any_topic)
    assert (found.is_allowed, found.kind, found.change) == (False, RuleKind.DEFAULT_DENY, None)
    assert found.near_misses == ((near, "it is for host 10.0.0.8"),)
    assert found.would_do == "WRITE on any one topic, or IDEMPOTENT_WRITE on the cluster"


def test_an_idempotent_producer_is_told_which_acl_lets_it_write_some_topic_or_none():
    any_topic = ORDERS._replace(operation=WRITE, name=ANY_RESOURCE)
    some = allow(operation=WRITE)
    found = explained(some, request=any_topic)
    assert (found.is_allowed, found.acl, found.matching) == (True, some, (some,))
    assert (found.near_misses, found.would_do) == ((), None)
    none = deny(operation=WRITE, name="*")
    denied = explained(some, none, request=any_topic)
    assert (denied.is_allowed, denied.acl, denied.near_misses) == (False, none, ())


def test_a_group_named_star_is_not_every_group():
    found = explained(request=ORDERS._replace(resource_type=GROUP, name="*"))
    own = allow(name="*", resource_type=GROUP, pattern_type=PREFIXED, host="10.0.0.7")
    assert found.change == Change(add=(own,))


def test_a_request_that_no_acl_is_about_is_denied_and_needs_an_acl():
    found = explained()
    assert (found.is_allowed, found.kind, found.acl) == (False, RuleKind.DEFAULT_DENY, None)
    assert found.change == Change(add=(allow(host="10.0.0.7"),))


def test_an_acl_that_allows_is_told_with_its_removal():
    found = explained(allow(), allow("User:bob"))
    assert (found.is_allowed, found.acl) == (True, allow())
    assert found.change == Change(remove=(allow(),))


def test_of_two_acls_that_allow_none_is_removed_but_a_denial_added():
    found = explained(allow(), allow(operation=ALL))
    assert found.matching == (allow(operation=ALL), allow())
    assert found.change == Change(add=(deny(host="10.0.0.7"),))


def test_a_denial_is_removed_where_something_allows():
    found = explained(allow(), deny("User:*"))
    assert (found.is_allowed, found.acl) == (False, deny("User:*"))
    assert found.change == Change(remove=(deny("User:*"),))


def test_a_denial_is_replaced_where_nothing_allows():
    found = explained(deny("User:*"))
    assert found.change == Change(add=(allow(host="10.0.0.7"),), remove=(deny("User:*"),))


def test_a_super_user_is_denied_once_it_is_none():
    found = explained(super_users=frozenset({"User:alice"}))
    assert found.kind is RuleKind.SUPER_USER
    assert found.change == Change(super_user="User:alice")


def test_a_super_user_who_has_acls_is_denied_only_if_these_deny_as_well():
    found = explained(allow(), allow(operation=ALL), super_users=frozenset({"User:alice"}))
    assert found.change == Change(add=(deny(host="10.0.0.7"),), super_user="User:alice")


def test_two_super_users_in_one_session_are_turned_by_no_single_change():
    groups = {"User:alice": ("Group:staff",)}
    both = frozenset({"User:alice", "Group:staff"})
    assert explained(super_users=both, groups=groups).change is None


def test_what_is_open_for_lack_of_acls_is_closed_by_any_acl():
    found = explained(allow_everyone_if_no_acl_found=True)
    assert found.kind is RuleKind.DEFAULT_ALLOW
    assert found.change == Change(add=(deny(host="10.0.0.7"),))


@pytest.mark.parametrize(
    ("acl", "why"),
    [
        (allow(host="10.0.0.8"), "it is for host 10.0.0.8"),
        (allow(host="10.0.0.0/8"), "it is for host 10.0.0.0/8"),
        (allow(operation=WRITE), "it allows WRITE"),
        (allow("user:alice"), "it is for user:alice"),
        (allow(name="Orders"), "it is for Orders, in other letters"),
        (allow(name="orders "), "its name has blanks around it: 'orders '"),
        (allow(name="order"), "it is LITERAL order; PREFIXED order would match"),
        (allow(name="ord*"), "it is LITERAL ord*, which is no prefix; PREFIXED ord would match"),
        (allow(name="orderz"), "it is for LITERAL orderz"),
        (allow(name="ordrs", pattern_type=PREFIXED), "it is for PREFIXED ordrs"),
        (allow(resource_type=GROUP), "it is for the GROUP of this name"),
    ],
)
def test_an_acl_that_nearly_allows_is_told_with_what_it_lacks(acl, why):
    assert explained(acl).near_misses == ((acl, why),)


@pytest.mark.parametrize(
    "acl",
    [
        allow(name="payments"),
        allow("User:bob"),
        deny(operation=WRITE),
        allow(operation=WRITE, host="10.0.0.8"),
        allow(name="payments", resource_type=GROUP),
    ],
)
def test_an_acl_that_differs_in_more_is_no_near_miss(acl):
    assert explained(acl).near_misses == ()


def test_a_host_that_is_no_address_is_no_peers():
    with pytest.raises(ValueError, match="'localhost' is no address"):
        explained(request=ORDERS._replace(host="localhost"))


def activities():
    yield from ACTIVITIES.values()
    yield from (PRODUCE, IDEMPOTENT, TRANSACTIONAL, CONSUME, IN_GROUP)


def test_what_activities_need_is_what_the_gate_asks_for():
    for need in (need for needs in activities() for need in needs):
        row = GATE[ApiKey[need.api]]
        asked = {(each.operation, kind) for each in row.needs for kind in each.types}
        assert (need.operation, need.resource_type) in asked, need


def test_what_does_in_place_of_a_need_is_what_the_gate_takes_for_it():
    found = set()
    for need in (need for needs in activities() for need in needs):
        taken = {
            each.unless
            for each in GATE[ApiKey[need.api]].needs
            if each.operation == need.operation
            and need.resource_type in each.types
            and each.profile is not Profile.DOCUMENTED
        }
        instead = Broader(WRITE, TOPIC) if need.unless_write_anywhere else None
        if need.unless_on_cluster is not None:
            instead = Broader(need.unless_on_cluster)
        assert taken == {instead}, need
        found |= taken
    assert len(found) == 4


def test_whatever_the_gate_asks_for_is_an_operation_that_is_reasoned_about():
    for row in GATE.values():
        for need in row.needs:
            for kind in need.types:
                assert need.operation in operations_of(kind), row


def can(*acls, activity="produce", principal="User:alice", **options):
    given = {"group": False, "transactional": False, "idempotent": False, **options}
    names = {TOPIC: "orders", GROUP: "g", TXN_ID: "t"}
    needs = needs_of(activity, **given)
    found = list(parts(Rules(acls), principal, "10.0.0.7", needs, names))
    return all(part.is_allowed for part in found), found


def test_a_transactional_producer_needs_its_transactional_id():
    assert can(allow(operation=WRITE))[0]
    assert not can(allow(operation=WRITE), transactional=True)[0]
    own = allow(operation=WRITE, name="t", resource_type=TXN_ID)
    assert can(allow(operation=WRITE), own, transactional=True)[0]


def test_an_idempotent_producer_needs_to_write_anywhere_or_the_right_on_the_cluster():
    possible, found = can(allow(operation=WRITE), idempotent=True)
    assert possible
    assert found[-1].instead == "WRITE on some TOPIC"
    assert not can(allow(operation=DESCRIBE), idempotent=True)[1][-1].is_allowed


def test_who_may_write_but_not_describe_cannot_produce():
    possible, found = can(allow(operation=WRITE), deny(operation=DESCRIBE))
    assert not possible
    assert [part.request.operation for part in found if not part.is_allowed] == [DESCRIBE]


def test_a_consumer_in_a_group_needs_the_group():
    assert can(allow(), activity="consume")[0]
    assert not can(allow(), activity="consume", group=True)[0]
    assert can(allow(), allow(name="g", resource_type=GROUP), activity="consume", group=True)[0]


def test_who_may_create_on_the_cluster_may_create_any_topic():
    on_cluster = allow(operation=CREATE, name="kafka-cluster", resource_type=CLUSTER)
    possible, found = can(on_cluster, activity="create-topic")
    assert possible
    assert found[0].instead == "CREATE on CLUSTER"
    other = on_cluster._replace(operation=ALTER)
    assert not can(other, activity="create-topic")[0]


@pytest.mark.parametrize(
    ("activity", "options", "problem"),
    [
        ("prodce", {}, "'prodce' is not one of produce, consume, create-topic"),
        ("consume", {"transactional": True}, "consume is neither transactional nor idempotent"),
        ("produce", {"group": True}, "produce has no group"),
    ],
)
def test_an_activity_without_such_options_says_what_there_is(activity, options, problem):
    with pytest.raises(ValueError, match=problem):
        can(activity=activity, **options)
