"""Authorize by resource type: is there any resource on which the principal may do it (KIP-679)."""

import pytest

from aclbroker.acl import by_type
from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import AclOperation, ResourceType
from tests.acl.examples import (
    ALICE,
    ALL,
    DESCRIBE,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    authorizer,
    deny,
    session,
)


def anywhere(core, operation=WRITE, who=ALICE, resource_type=TOPIC):
    return core.authorize_by_resource_type(who, operation, resource_type).allowed


def prefixed(make, name, **kwargs):
    return make(operation=WRITE, name=name, pattern_type=PREFIXED, **kwargs)


def test_a_right_to_one_resource_is_enough():
    assert anywhere(authorizer(allow(operation=WRITE)))
    assert anywhere(authorizer(prefixed(allow, "o")))
    assert anywhere(authorizer(allow("User:*", ALL, "*")))
    assert not anywhere(authorizer(allow(operation=READ)))
    assert not anywhere(authorizer(allow("User:bob", WRITE)))
    assert not anywhere(authorizer(allow(operation=WRITE, host="10.0.0.1")))
    assert not anywhere(authorizer(allow(operation=WRITE)), resource_type=GROUP)


def test_implied_operations_do_not_count():
    assert not anywhere(authorizer(allow(operation=WRITE)), DESCRIBE)
    assert anywhere(authorizer(allow(operation=ALL)), DESCRIBE)


def test_implied_operations_count_on_what_kafka_asks_for_first():
    assert anywhere(authorizer(allow(operation=WRITE, name="*")), DESCRIBE)
    assert anywhere(authorizer(allow(operation=WRITE, name="hardcode")), DESCRIBE)


def test_a_denial_of_every_resource_wins():
    denial = deny(operation=WRITE, name="*")
    assert not anywhere(authorizer(allow(operation=WRITE), prefixed(allow, "p"), denial))
    assert not anywhere(authorizer(allow(operation=WRITE, name="*"), denial))


def test_a_right_to_every_resource_wins_over_denials_of_some():
    denials = [prefixed(deny, "h"), prefixed(deny, "*"), deny(operation=WRITE, name="x")]
    assert anywhere(authorizer(allow(operation=WRITE, name="*"), *denials))


def test_a_denial_of_the_same_name_dominates_a_literal_right():
    assert not anywhere(authorizer(allow(operation=WRITE), deny(operation=WRITE)))
    assert not anywhere(authorizer(allow(operation=WRITE), deny("User:*", ALL)))
    assert anywhere(authorizer(allow(operation=WRITE), deny(operation=WRITE, name="order")))
    assert anywhere(authorizer(allow(operation=WRITE), deny(operation=READ)))


def test_a_denial_of_the_same_literal_name_does_not_dominate_a_prefix():
    assert anywhere(authorizer(prefixed(allow, "orders"), deny(operation=WRITE)))


@pytest.mark.parametrize("right", [allow(operation=WRITE), prefixed(allow, "orders")])
def test_a_denial_of_a_prefix_dominates(right):
    assert not anywhere(authorizer(right, prefixed(deny, "o")))
    assert not anywhere(authorizer(right, prefixed(deny, "orders")))
    assert anywhere(authorizer(right, prefixed(deny, "orders2")))
    assert anywhere(authorizer(right, prefixed(allow, "p"), prefixed(deny, "o")))


def test_a_super_user_may_and_so_may_everyone_by_default_if_no_acl_is_found():
    denial = deny("User:*", ALL, "*")
    assert anywhere(authorizer(denial, super_users=["User:alice"]))
    assert anywhere(authorizer(allow_everyone_if_no_acl_found=True))
    assert not anywhere(authorizer(denial, allow_everyone_if_no_acl_found=True))


def test_all_principals_of_a_session_count_together():
    who = session("User:alice", "Group:staff")
    assert anywhere(authorizer(allow("Group:staff", WRITE)), who=who)
    assert not anywhere(authorizer(allow("Group:staff", WRITE), deny("User:alice", WRITE)), who=who)


def test_the_rule_names_the_acl_that_decided():
    def rule(core):
        return core.authorize_by_resource_type(ALICE, WRITE, TOPIC).rule

    right, denial = allow(operation=WRITE), deny("User:*", ALL, "*")
    assert rule(authorizer(right)) == (RuleKind.MATCHING_ACL, right)
    assert rule(authorizer(right, denial)) == (RuleKind.MATCHING_ACL, denial)
    assert rule(authorizer(right, prefixed(deny, "o"))) == (RuleKind.DEFAULT_DENY, None)


@pytest.mark.parametrize(
    ("operation", "resource_type"),
    [
        (AclOperation.ANY, TOPIC),
        (AclOperation.UNKNOWN, TOPIC),
        (READ, ResourceType.ANY),
        (READ, ResourceType.UNKNOWN),
    ],
)
def test_it_is_asked_of_an_operation_and_a_type_only(operation, resource_type):
    with pytest.raises(ValueError, match="no action"):
        authorizer().authorize_by_resource_type(ALICE, operation, resource_type)


def many_rights(last):
    """Return rights to hundreds of topics, all of them denied by another ACL, and last another."""
    literal = [allow(operation=WRITE, name=f"denied-{number}") for number in range(150)]
    prefixes = [prefixed(allow, f"denied-{number}-") for number in range(150)]
    return [*literal, *prefixes, prefixed(deny, "denied-"), last]


@pytest.mark.parametrize("last", [allow(operation=WRITE), prefixed(allow, "orders-")])
def test_of_very_many_rights_one_that_nothing_denies_is_enough(last):
    assert anywhere(authorizer(*many_rights(last)))
    assert not anywhere(authorizer(*many_rights(prefixed(allow, "denied-too-"))))


@pytest.mark.parametrize("last", [allow(operation=WRITE), prefixed(allow, "orders-")])
def test_very_many_rights_are_looked_at_as_they_were_when_that_began(
    last, monkeypatch: pytest.MonkeyPatch
):
    core = authorizer(*many_rights(last))
    changes = iter([deny(operation=WRITE, name="*"), *many_rights(allow(name="more"))[:20]])
    monkeypatch.setattr(by_type, "pause", lambda: core.index.add(next(changes)))
    assert anywhere(core)
    monkeypatch.undo()
    assert not anywhere(core)
