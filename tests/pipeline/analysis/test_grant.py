"""What would allow something that was denied."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.broker.acl.authorizer import Action, Session
from aclbroker.broker.acl.bindings import AclOperation, AclPermission, ResourceType
from aclbroker.broker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.pipeline.analysis.grant import Denied, Kind, Remedy, Standing, remedy
from tests.pipeline.analysis.test_least_privilege import HOSTS, NAMES, OPERATIONS, acl, rulesets

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE_READS = Denied("User:alice", READ, TOPIC, "orders")
ALLOW = acl("allow READ topic orders literal User:alice")
DENY = acl("deny READ topic orders prefixed User:*")

NOTHING = Standing(False)
BLOCKED = Standing(False, [ALLOW], [DENY])
BLOCKED_ONLY = Standing(False, [], [DENY])
ALLOWED = Standing(True, [ALLOW])


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([NOTHING], Remedy(Kind.ALLOW, ALLOW)),
        ([NOTHING, ALLOWED], Remedy(Kind.ALLOW, ALLOW)),
        ([ALLOWED], Remedy(Kind.NOW)),
        ([BLOCKED, ALLOWED], Remedy(Kind.DENY, None, (DENY,))),
        ([BLOCKED_ONLY], Remedy(Kind.DENY, None, (DENY,), "and no ACL allows it besides")),
        (
            [BLOCKED_ONLY, NOTHING],
            Remedy(Kind.ALLOW, ALLOW, (DENY,), "from some hosts a DENY blocks it"),
        ),
        ([], Remedy(Kind.UNKNOWN)),
    ],
)
def test_remedy(standings, expected):
    assert remedy(ALICE_READS, standings) == expected


def test_no_resource_is_allowed_to_nobody():
    assert remedy(ALICE_READS._replace(name=None), [NOTHING]) == Remedy(Kind.NEVER)


def test_a_group_named_star_is_not_every_group():
    found = remedy(Denied("User:a", READ, ResourceType.GROUP, "*"), [NOTHING])
    assert found.acl == acl("allow READ group * prefixed User:a")


@pytest.mark.parametrize(
    ("denied", "note"),
    [
        (ALICE_READS._replace(name=""), "The resource name of a new ACL must not be empty."),
        (
            ALICE_READS._replace(principal="User:*"),
            "an ACL of User:* would hold for everyone",
        ),
    ],
)
def test_where_no_acl_can_be_made(denied, note):
    assert remedy(denied, [NOTHING]) == Remedy(Kind.NONE, None, (), note)


@settings(max_examples=200, deadline=None)
@given(
    rulesets,
    st.sampled_from(["User:alice", "User:bob"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from(NAMES),
)
def test_the_remedy_is_one(rules, principal, operation, name):
    """An ACL allows it wherever no DENY is told; without the DENYs and with the ACL, always."""
    denied = Denied(principal, operation, TOPIC, name)
    sessions = [Session((principal,), host, "PLAINTEXT") for host in HOSTS]
    standings = [standing(rules, session, denied) for session in sessions]
    found = remedy(denied, standings)
    action = Action(operation, TOPIC, name)
    if found.kind is Kind.NOW:
        assert all(each.allowed for each in standings)
        return
    assert found.kind in (Kind.ALLOW, Kind.DENY)
    added = {*rules.acls, *([found.acl] if found.acl else [])}
    then = rules.with_acls(added).authorizer()
    for session, before in zip(sessions, standings, strict=True):
        assert then.decide(session, action).allowed == (not before.denies)
    without = rules.with_acls(added - set(found.denies)).authorizer()
    if found.kind is Kind.ALLOW or not found.note:
        assert all(without.decide(session, action).allowed for session in sessions)


def standing(rules, session, denied) -> Standing:
    authorizer = rules.authorizer()
    allowed = authorizer.decide(session, Action(*denied[1:])).allowed
    matching = list(authorizer.index.bindings_for(session.peer, TOPIC, denied.name))
    allows = [
        each
        for each in matching
        if each.permission is AclPermission.ALLOW
        and GRANTED_BY[denied.operation] >> each.operation & 1
    ]
    denies = [
        each
        for each in matching
        if each.permission is AclPermission.DENY
        and NAMED_BY[denied.operation] >> each.operation & 1
    ]
    return Standing(allowed, allows, denies)
