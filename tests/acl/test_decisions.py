"""The rules of the authorizer by example; test_properties.py holds them to the model."""

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from aclbroker.acl.authorizer import Action, RuleKind, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.operations import supported_operations
from tests.acl.examples import (
    ALICE,
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
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
    allowed,
    authorizer,
    deny,
    session,
)


def test_what_no_acl_allows_is_denied():
    assert not allowed(authorizer())
    assert not allowed(authorizer(allow("User:bob"), allow(operation=WRITE), allow(name="other")))


def test_an_acl_allows_its_principal_its_operation_on_its_resource():
    core = authorizer(allow())
    assert allowed(core)
    assert not allowed(core, WRITE)
    assert not allowed(core, name="order")
    assert not allowed(core, name="orders2")
    assert not allowed(core, who=session("User:bob"))
    assert not allowed(core, resource_type=GROUP)


def test_names_and_principals_are_case_sensitive():
    core = authorizer(allow())
    assert not allowed(core, name="Orders")
    assert not allowed(core, who=session("User:Alice"))
    assert not allowed(core, who=session("user:alice"))


@pytest.mark.parametrize(
    "denial",
    [deny(), deny(operation=ALL), deny("User:*"), deny(name="*"), deny(host="192.0.2.7"),
     deny(name="ord", pattern_type=PREFIXED)],
)  # fmt: skip
def test_a_denial_wins_over_any_allowance(denial):
    allowances = [
        allow(),
        allow(operation=ALL),
        allow("User:*"),
        allow(name="*"),
        allow(name="orders", pattern_type=PREFIXED),
    ]
    assert allowed(authorizer(*allowances))
    assert not allowed(authorizer(*allowances, denial))


@pytest.mark.parametrize("operation", [READ, WRITE, DELETE, ALTER])
def test_read_write_delete_and_alter_imply_describe(operation):
    core = authorizer(allow(operation=operation))
    assert allowed(core, DESCRIBE)
    assert not allowed(core, DESCRIBE_CONFIGS)


def test_alter_configs_implies_describe_configs_only():
    core = authorizer(allow(operation=ALTER_CONFIGS))
    assert allowed(core, DESCRIBE_CONFIGS)
    assert not allowed(core, DESCRIBE)
    assert not allowed(core, ALTER)


def test_create_and_describe_imply_nothing():
    assert not allowed(authorizer(allow(operation=CREATE)), DESCRIBE)
    assert not allowed(authorizer(allow(operation=DESCRIBE)), READ)


def test_a_denial_implies_nothing():
    core = authorizer(deny(operation=READ), allow(operation=DESCRIBE))
    assert allowed(core, DESCRIBE)


def test_all_allows_and_denies_every_operation():
    operations = [operation for operation in AclOperation if operation >= ALL]
    assert all(allowed(authorizer(allow(operation=ALL)), each) for each in operations)
    for each in operations:
        core = authorizer(deny(operation=ALL), allow(operation=each), allow(operation=ALL))
        assert not allowed(core, each)


def test_the_wildcard_principal_means_everyone():
    core = authorizer(allow("User:*"))
    assert allowed(core)
    assert allowed(core, who=session("Group:staff"))
    assert not allowed(authorizer(allow("Group:*")), who=session("Group:staff"))


def test_the_name_star_means_every_resource_only_if_literal():
    assert allowed(authorizer(allow(name="*")))
    prefixed = authorizer(allow(name="*", pattern_type=PREFIXED))
    assert not allowed(prefixed)
    assert allowed(prefixed, name="*x")


def test_a_prefix_matches_the_names_that_begin_with_it_and_the_length_plays_no_role():
    core = authorizer(
        allow(name="a", pattern_type=PREFIXED),
        deny(name="ab", pattern_type=PREFIXED),
        allow(name="abc", pattern_type=PREFIXED),
    )
    assert allowed(core, name="a")
    assert allowed(core, name="ac")
    assert not allowed(core, name="ab")
    assert not allowed(core, name="abc")
    assert not allowed(core, name="b")


def test_a_prefix_ends_between_code_points():
    core = authorizer(allow(name="𝄞", pattern_type=PREFIXED))
    assert allowed(core, name="𝄞clef")
    assert not allowed(core, name="𝄟clef")


def test_a_removed_prefix_leaves_others_of_its_length():
    core = authorizer(
        allow(name="or", pattern_type=PREFIXED), allow(name="pr", pattern_type=PREFIXED)
    )
    core.index.remove(allow(name="pr", pattern_type=PREFIXED))
    assert allowed(core)


def test_a_removed_prefix_matches_no_more():
    core = authorizer(
        allow(name="or", pattern_type=PREFIXED), allow(name="o", pattern_type=PREFIXED)
    )
    core.index.remove(allow(name="o", pattern_type=PREFIXED))
    assert allowed(core)
    core.index.remove(allow(name="or", pattern_type=PREFIXED))
    assert not allowed(core)


def test_an_acl_of_a_host_holds_only_there():
    core = authorizer(allow(host="192.0.2.7"))
    assert allowed(core)
    assert not allowed(core, who=session(host="192.0.2.8"))


@pytest.mark.parametrize(
    ("written", "peer"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_d4_addresses_are_compared_as_addresses(written, peer):
    core = authorizer(allow(host=written))
    assert allowed(core, who=session(host=peer))
    assert not allowed(core, who=session(host="::2"))
    assert list(core.index) == [allow(host=written)]


def test_d4_a_denial_holds_however_the_address_is_written():
    denials = [deny(host=host) for host in ("::1", "0:0::1", "0::0001")]
    core = authorizer(allow(), *denials)
    for denial in denials:
        assert not allowed(core, who=session(host="::1"))
        core.index.remove(denial)
    assert allowed(core, who=session(host="::1"))


def test_d5_a_subnet_matches_its_addresses_if_enabled():
    acls = [allow(host="10.1.0.0/16"), deny(host="10.1.2.0/24"), allow(host="2001:db8::/32")]
    core = authorizer(*acls, cidr=True)
    assert allowed(core, who=session(host="10.1.3.4"))
    assert allowed(core, who=session(host="::ffff:10.1.3.4"))
    assert allowed(core, who=session(host="2001:db8::9"))
    assert not allowed(core, who=session(host="10.1.2.4"))
    assert not allowed(core, who=session(host="10.2.0.1"))
    core.index.remove(deny(host="10.1.2.0/24"))
    assert allowed(core, who=session(host="10.1.2.4"))
    assert set(core.index) == {acls[0], acls[2]}


def test_d5_a_subnet_that_is_removed_leaves_others_of_its_size():
    core = authorizer(allow(host="10.1.0.0/16"), allow(host="10.2.0.0/16"), cidr=True)
    core.index.remove(allow(host="10.1.0.0/16"))
    assert not allowed(core, who=session(host="10.1.2.3"))
    assert allowed(core, who=session(host="10.2.2.3"))
    core.index.remove(allow(host="10.2.0.0/16"))
    assert not allowed(core, who=session(host="10.2.2.3"))


def test_d5_a_subnet_matches_nobody_if_not_enabled():
    core = authorizer(allow(host="10.1.0.0/16"), allow(host="0.0.0.0/0"))
    assert not allowed(core, who=session(host="10.1.3.4"))
    assert not allowed(core, who=session(host="10.1.0.0/16"), name="other")


def test_a_super_user_is_allowed_whatever_is_denied():
    core = authorizer(deny("User:*", ALL, "*"), super_users=["User:admin"])
    assert allowed(core, who=session("User:admin"))
    assert allowed(core, who=session("User:alice", "User:admin"))
    assert not allowed(core, who=session("User:Admin"))


def test_a_super_user_of_the_wildcard_name_makes_nobody_else_one():
    assert not allowed(authorizer(super_users=["User:*"]))


def test_a_brokers_user_is_allowed_everything_on_one_listener():
    core = authorizer(
        deny("User:*", ALL, "*"), broker_users=BrokerUsers(frozenset(["User:kafka"]), "BROKERS")
    )
    on_it = Session(("User:kafka",), "127.0.0.1", "BROKERS")
    elsewhere = Session(("User:kafka",), "127.0.0.1", "CLIENTS")
    other = Session(("User:alice",), "127.0.0.1", "BROKERS")
    for who, expected in [(on_it, True), (elsewhere, False), (other, False), (on_it, True)]:
        assert core.decide(who, Action(READ, TOPIC, "orders")).allowed is expected
        assert core.authorize_by_resource_type(who, READ, TOPIC).allowed is expected
        assert bool(core.authorized_operations(who, TOPIC, "orders")) is expected
    assert not core.decide(on_it, Action(READ, TOPIC, None)).allowed
    assert core.decide(on_it, Action(READ, TOPIC, "orders")).rule.kind is RuleKind.SUPER_USER


def test_if_no_acl_has_a_matching_pattern_everyone_may_be_allowed():
    core = authorizer(
        allow("User:bob", name="orders"),
        allow("User:bob", name="pre", pattern_type=PREFIXED),
        allow_everyone_if_no_acl_found=True,
    )
    assert allowed(core, name="other")
    assert allowed(core, resource_type=GROUP)
    assert not allowed(core, name="orders")
    assert not allowed(core, name="prefix")


def test_an_acl_of_the_wildcard_name_is_an_acl_of_every_resource():
    core = authorizer(allow("User:bob", name="*"), allow_everyone_if_no_acl_found=True)
    assert not allowed(core, name="other")


def test_several_principals_are_denied_if_any_is_and_allowed_if_any_is():
    both = session("User:alice", "Group:staff")
    assert allowed(authorizer(allow("Group:staff")), who=both)
    assert not allowed(authorizer(allow("Group:staff"), deny("User:alice")), who=both)
    assert not allowed(authorizer(allow("User:alice"), deny("Group:staff")), who=both)


def test_a_session_without_principals_cannot_be_made():
    wrong: tuple[Any, ...] = ((), "User:alice")
    for principals in wrong:
        with pytest.raises(ValueError, match="principal"):
            Session(principals, "10.0.0.1", "PLAINTEXT")


def test_a_null_name_is_allowed_to_nobody():
    core = authorizer(
        allow("User:*", ALL, "*"),
        super_users=["User:alice"],
        allow_everyone_if_no_acl_found=True,
    )
    assert not core.decide(ALICE, Action(READ, TOPIC, None)).allowed


@pytest.mark.parametrize(
    ("operation", "resource_type"),
    [
        (AclOperation.UNKNOWN, TOPIC),
        (AclOperation.ANY, TOPIC),
        (READ, ResourceType.UNKNOWN),
        (READ, ResourceType.ANY),
    ],
)
def test_what_is_no_action_is_denied(operation, resource_type):
    for core in (
        authorizer(allow(operation=ALL)),
        authorizer(allow_everyone_if_no_acl_found=True),
    ):
        assert not core.decide(ALICE, Action(operation, resource_type, "orders")).allowed


def test_a_decision_is_true_if_it_allows():
    core = authorizer(allow())
    assert core.decide(ALICE, Action(READ, TOPIC, "orders"))
    assert not core.decide(ALICE, Action(WRITE, TOPIC, "orders"))


def rule(core, operation=READ, who=ALICE):
    decision = core.decide(who, Action(operation, TOPIC, "orders"))
    return decision.allowed, *decision.rule


def test_a_decision_names_the_super_user_or_the_default_as_its_rule():
    assert rule(authorizer(super_users=["User:alice"])) == (True, RuleKind.SUPER_USER, None)
    assert rule(authorizer()) == (False, RuleKind.DEFAULT_DENY, None)
    open_core = authorizer(allow_everyone_if_no_acl_found=True)
    assert rule(open_core) == (True, RuleKind.DEFAULT_ALLOW, None)


def test_a_decision_names_the_most_specific_acl_as_its_rule():
    acls = [
        allow(operation=WRITE),
        allow("User:*", DESCRIBE, "*"),
        allow(operation=DESCRIBE, name="ord", pattern_type=PREFIXED),
        allow(operation=DESCRIBE, name="o", pattern_type=PREFIXED),
        allow(operation=DELETE, name="*"),
    ]
    core = authorizer(*acls)
    for expected in (acls[2], acls[3], acls[1], acls[0], acls[4]):
        assert rule(core, DESCRIBE) == (True, RuleKind.MATCHING_ACL, expected)
        core.index.remove(expected)


def test_a_denied_decision_names_the_denying_acl():
    core = authorizer(allow(operation=ALL), deny("User:*", ALL, "*"), deny("User:bob"))
    assert rule(core) == (False, RuleKind.MATCHING_ACL, deny("User:*", ALL, "*"))


def test_a_denial_of_what_would_imply_the_operation_is_not_named_as_the_rule():
    general = deny(operation=ALL, name="o", pattern_type=PREFIXED)
    core = authorizer(deny(operation=READ), general)
    assert rule(core, DESCRIBE) == (False, RuleKind.MATCHING_ACL, general)


def test_a_rule_asked_for_after_its_acl_is_gone_names_none():
    core = authorizer(allow())
    decision = core.decide(ALICE, Action(READ, TOPIC, "orders"))
    core.index.remove(allow())
    assert decision.rule == (RuleKind.MATCHING_ACL, None)
    assert decision.allowed


def names(field: int) -> set[str]:
    return {operation.name for operation in AclOperation if field >> operation & 1}


def test_authorized_operations_are_those_of_the_resource_type():
    core = authorizer(super_users=["User:alice"])
    assert names(core.authorized_operations(ALICE, GROUP, "g")) == {
        "READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    }  # fmt: skip
    assert names(core.authorized_operations(ALICE, CLUSTER, "kafka-cluster")) == {
        "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    }  # fmt: skip
    assert names(core.authorized_operations(ALICE, TOPIC, "t")) == {
        "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    }  # fmt: skip


def test_authorized_operations_follow_allowances_implications_and_denials():
    core = authorizer(
        allow(operation=WRITE), allow(operation=ALTER_CONFIGS), deny(operation=ALTER_CONFIGS)
    )
    field = core.authorized_operations(ALICE, TOPIC, "orders")
    assert names(field) == {"WRITE", "DESCRIBE", "DESCRIBE_CONFIGS"}
    assert field == 1 << 4 | 1 << 8 | 1 << 10


def test_authorized_operations_are_asked_of_a_type_of_resource():
    for resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        with pytest.raises(ValueError, match=resource_type.name):
            authorizer().authorized_operations(ALICE, resource_type, "x")
        with pytest.raises(ValueError, match=resource_type.name):
            supported_operations(resource_type)


@pytest.mark.parametrize("written", ["fe80::1", "FE80:0:0:0:0:0:0:1", "fe80::1%eth0", "fe80::/10"])
def test_a_denial_for_a_link_local_address_holds_for_a_peer_with_its_zone(written):
    core = authorizer(allow(), deny(host=written), cidr=True)
    assert not allowed(core, who=session(host="fe80:0:0:0:0:0:0:1%eth0"))


def test_a_denial_for_a_zone_does_not_hold_for_another():
    core = authorizer(allow(), deny(host="fe80::1%eth0"))
    assert allowed(core, who=session(host="fe80::1%eth1"))
    assert allowed(core, who=session(host="fe80::1"))


def test_a_name_that_is_null_is_denied_to_super_users_too():
    core = authorizer(allow(name="*"), super_users=["User:root"])
    [decision] = core.authorize(ALICE, READ, TOPIC, [None])
    assert (decision.allowed, decision.kind) == (False, RuleKind.DEFAULT_DENY)
    [decision] = core.authorize(session("User:root"), READ, TOPIC, [None])
    assert (decision.allowed, decision.kind) == (False, RuleKind.DEFAULT_DENY)


def test_a_decision_shows_what_decided_it():
    decision = authorizer(allow()).decide(ALICE, Action(READ, TOPIC, "orders"))
    assert decision.kind is RuleKind.MATCHING_ACL
    assert decision.rule.binding == allow()
    assert repr(decision) == f"Decision(allowed=True, rule={decision.rule})"


def test_a_name_of_any_length_is_decided():
    core = authorizer(allow(name="a", pattern_type=PREFIXED), deny(name="ab" * 500))
    assert allowed(core, name="a" * 1000)
    assert not allowed(core, name="ab" * 500)
    assert not allowed(core, name="b" * 1000)


def test_more_peers_and_names_than_are_remembered_are_decided_alike():
    core = authorizer(allow(name="a", pattern_type=PREFIXED), deny(host="192.0.2.7"))
    for number in range(10_001):
        host = f"10.0.{number >> 8}.{number & 255}"
        assert allowed(core, who=session("User:alice", host=host), name="ab")
    names = ["orders", *(f"a{number}" for number in range(100_001))]
    decisions = core.authorize(ALICE, READ, TOPIC, names)
    assert [decision.allowed for decision in decisions] == [False] + [True] * 100_001
    assert not allowed(core)


@contextmanager
def kept() -> Iterator[list[int]]:
    """Append to the list how many bytes are allocated inside the block and not freed by its end."""
    found: list[int] = []
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()


def test_of_long_names_fewer_are_remembered():
    core = authorizer(allow())
    with kept() as found:
        core.authorize(ALICE, READ, TOPIC, [f"{'😀' * 240}{number}" for number in range(99_000)])
    assert found[0] < 40 << 20


@pytest.mark.thorough
def test_of_peers_with_many_principals_fewer_are_remembered():
    core = authorizer(allow("Group:0"))
    groups = tuple(f"Group:{number}" for number in range(1_000))
    with kept() as found:
        for number in range(2_000):
            who = Session((f"User:{number}", *groups), "192.0.2.1", "SASL_SSL")
            assert allowed(core, who=who)
    assert found[0] < 20 << 20


def test_nothing_is_kept_of_decisions_that_are_forgotten():
    core = authorizer(allow(name="name", pattern_type=PREFIXED))
    names = [f"name-{number}" for number in range(10_000)]
    core.authorize(ALICE, READ, TOPIC, names)
    core.index.add(allow(name="other"))
    with kept() as found:
        core.authorize(ALICE, READ, TOPIC, names)
        core.index.remove(allow(name="other"))
    assert found[0] < 500_000


def test_among_many_prefixes_those_that_a_name_begins_with_decide():
    acls = [
        allow(name=("b" if length % 2 == 0 else "a") * length, pattern_type=PREFIXED)
        for length in range(5, 40)
    ]
    core = authorizer(*acls, deny(name="a" * 30, pattern_type=PREFIXED))
    assert [allowed(core, name="a" * length) for length in (4, 5, 29, 30, 50)] == [
        False,
        True,
        True,
        False,
        False,
    ]
