"""Why a decision flips: undoing the causes brings the old decision back, checked by deciding."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Action, RuleKind, Session
from aclbroker.acl.bindings import AclPermission
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.causes import Causes, Decided, DecisiveSetting, causes
from tests import model
from tests.acl.examples import DESCRIBE, DESCRIBE_CONFIGS, READ, TOPIC, WRITE, allow, deny
from tests.acl.strategies import PRINCIPALS, bindings

ALICE = Session(("User:alice",), "10.0.0.1", "PLAINTEXT")

rulesets = st.builds(
    lambda acls, super_users, everyone, cidr: Ruleset(
        super_users=super_users, allow_everyone_if_no_acl_found=everyone, cidr=cidr
    ).with_acls(acls),
    st.lists(bindings, max_size=12),
    st.frozensets(st.sampled_from(PRINCIPALS), max_size=1),
    st.booleans(),
    st.booleans(),
)
QUESTIONS = [
    (Session(principals, host, "PLAINTEXT"), Action(operation, TOPIC, name))
    for principals in [("User:alice",), ("User:bob", "Group:staff")]
    for host in ["10.0.0.1", "::1"]
    for operation in [READ, DESCRIBE, DESCRIBE_CONFIGS]
    for name in ["a", "abc"]
]


def decided(rules, session, action):
    """What `pipeline.replay.replay.decided` explains, found by looking at every ACL."""
    on_resource = [
        acl
        for acl in rules.acls
        if model.pattern_matches(acl, action.resource_type, action.resource_name)
    ]
    mine = [
        acl
        for acl in on_resource
        if model.applies(acl, session.principals, session.host, rules.cidr)
    ]

    def with_bits(permission, bits):
        return [a for a in mine if a.permission is permission and bits >> a.operation & 1]

    return Decided(
        rules.authorizer().decide(session, action).rule.kind,
        with_bits(AclPermission.ALLOW, GRANTED_BY[action.operation]),
        with_bits(AclPermission.DENY, NAMED_BY[action.operation]),
        on_resource if rules.allow_everyone_if_no_acl_found else None,
        frozenset(rules.acls),
        rules.cidr,
    )


def flip(before, after, session, action):
    """Whether it was allowed before, and the causes; None if nothing flips."""
    allowed = before.authorizer().decide(session, action).allowed
    if after.authorizer().decide(session, action).allowed == allowed:
        return None
    old, new = decided(before, session, action), decided(after, session, action)
    return allowed, causes(old, new, allowed_before=allowed)


@given(rulesets, st.lists(bindings, max_size=12))
def test_undoing_the_causes_brings_the_old_decision_back(before, acls_after):
    before = replace(before, allow_everyone_if_no_acl_found=False)
    after = before.with_acls(acls_after)
    for session, action in QUESTIONS:
        flipped = flip(before, after, session, action)
        if flipped:
            allowed, found = flipped
            undone = after.with_acls({*after.acls, *found.removed} - set(found.added))
            assert undone.authorizer().decide(session, action).allowed == allowed


@given(rulesets, rulesets)
def test_causes_are_changes(before, after):
    differs = {
        DecisiveSetting.SUPER_USER: before.super_users != after.super_users,
        DecisiveSetting.DEFAULT: before.allow_everyone_if_no_acl_found
        != after.allow_everyone_if_no_acl_found,
        DecisiveSetting.SUBNETS: before.cidr != after.cidr,
    }
    for session, action in QUESTIONS:
        flipped = flip(before, after, session, action)
        if flipped:
            _, found = flipped
            assert any(found)
            assert set(found.removed) <= set(before.acls) - set(after.acls)
            assert set(found.added) <= set(after.acls) - set(before.acls)
            assert all(differs[setting] for setting in found.settings)


def acls(*given_acls, **settings):
    return Ruleset(**settings).with_acls(given_acls)


READS = Action(DESCRIBE, TOPIC, "orders")


def test_all_acls_that_allowed_are_causes_also_by_implication():
    was = acls(allow(operation=READ), allow(operation=WRITE), allow(name="other"))
    assert flip(was, acls(), ALICE, READS) == (
        True,
        Causes([allow(operation=READ), allow(operation=WRITE)], [], []),
    )


def test_a_removed_allow_is_no_cause_beside_one_that_stays():
    was = acls(allow(operation=READ), allow(operation=WRITE))
    will = acls(allow(operation=READ), deny(operation=DESCRIBE))
    assert flip(was, will, ALICE, READS) == (True, Causes([], [deny(operation=DESCRIBE)], []))


def test_what_opens_is_what_is_added_and_the_denials_that_go():
    was, will = acls(deny(operation=DESCRIBE)), acls(allow(operation=READ))
    assert flip(was, will, ALICE, READS) == (
        False,
        Causes([deny(operation=DESCRIBE)], [allow(operation=READ)], []),
    )


def test_a_first_acl_on_a_resource_closes_it_to_others():
    open_to_all = acls(allow_everyone_if_no_acl_found=True)
    first = allow("User:bob")
    will = acls(first, allow_everyone_if_no_acl_found=True)
    assert flip(open_to_all, will, ALICE, READS) == (True, Causes([], [first], []))
    assert flip(will, open_to_all, ALICE, READS) == (False, Causes([first], [], []))


def test_an_acl_that_stays_is_no_cause_where_any_topic_suffices():
    stays, denies = allow(operation=WRITE, name="a"), deny(operation=WRITE, name="*")
    was = Decided(RuleKind.MATCHING_ACL, [stays], [], None, {stays})
    will = Decided(RuleKind.MATCHING_ACL, [], [denies], None, {stays, denies})
    assert causes(was, will, allowed_before=True) == Causes([], [denies], [])


def test_an_allow_that_went_is_a_cause_where_what_is_left_does_not_suffice_for_any_topic():
    gone, left = allow(operation=WRITE, name="a"), allow(operation=WRITE, name="b")
    old, new = deny(operation=WRITE, name="b"), deny(operation=WRITE, name="*")
    was = Decided(RuleKind.MATCHING_ACL, [gone], [], None, {gone, left, old})
    will = Decided(RuleKind.DEFAULT_DENY, [left], [old], None, {left, old})
    assert causes(was, will, allowed_before=True) == Causes([gone], [], [])
    both = Decided(RuleKind.MATCHING_ACL, [left], [old, new], None, {left, old, new})
    assert causes(was, both, allowed_before=True) == Causes([gone], [new], [])


def test_settings_are_causes():
    super_user = acls(super_users=frozenset(["User:alice"]))
    assert flip(super_user, acls(), ALICE, READS) == (
        True,
        Causes([], [], [DecisiveSetting.SUPER_USER]),
    )
    open_to_all = acls(allow_everyone_if_no_acl_found=True)
    assert flip(acls(), open_to_all, ALICE, READS) == (
        False,
        Causes([], [], [DecisiveSetting.DEFAULT]),
    )
    subnet = allow(operation=READ, host="10.0.0.0/8")
    assert flip(acls(subnet, cidr=True), acls(subnet), ALICE, READS) == (
        True,
        Causes([], [], [DecisiveSetting.SUBNETS]),
    )
