"""What would allow something that was denied: for the hosts that were denied, and nothing more."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import AclOperation, AclPermission, ResourceType
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.acl.reasoning.regions import Request
from aclbroker.pipeline.analysis.grant import (
    Denied,
    Kind,
    Remedy,
    Standing,
    opened_besides,
    remedies,
    remedy,
    without_implied,
)
from tests.pipeline.analysis.test_least_privilege import (
    HOSTS,
    NAMES,
    OPERATIONS,
    acl,
    acls,
    rulesets,
)
from tests.support.tables import examples

READ, DESCRIBE, TOPIC = AclOperation.READ, AclOperation.DESCRIBE, ResourceType.TOPIC
ALICE_READS = Denied("User:alice", READ, TOPIC, "orders")
ALICE_DESCRIBES = ALICE_READS._replace(operation=DESCRIBE)
ALLOW = acl("allow READ topic orders literal User:alice")
FROM_1 = acl("allow READ topic orders literal User:alice 10.0.0.1")
FROM_2 = acl("allow READ topic orders literal User:alice 10.0.0.2")
DENY = acl("deny READ topic orders prefixed User:*")

NOTHING = Standing(False, hosts=["10.0.0.1"])
BLOCKED = Standing(False, [ALLOW], [DENY], ["10.0.0.9"])
BLOCKED_ONLY = Standing(False, [], [DENY], ["10.0.0.9"])
ALLOWED = Standing(True, [ALLOW], [], ["10.0.0.8"])


def of(*standings, denied=ALICE_READS, most_hosts=2):
    return remedy(denied, standings, most_hosts=most_hosts)


@pytest.mark.parametrize(
    ("standings", "expected"),
    [
        ([NOTHING], Remedy(Kind.ALLOW, (FROM_1,))),
        ([NOTHING, ALLOWED], Remedy(Kind.ALLOW, (FROM_1,))),
        ([ALLOWED], Remedy(Kind.NOW)),
        ([BLOCKED, ALLOWED], Remedy(Kind.DENY, (), (DENY,))),
        ([BLOCKED_ONLY], Remedy(Kind.DENY, (), (DENY,), "and no ACL allows it besides")),
        (
            [BLOCKED_ONLY, NOTHING],
            Remedy(Kind.ALLOW, (FROM_1,), (DENY,), "from some hosts a DENY blocks it"),
        ),
        ([], Remedy(Kind.UNKNOWN)),
    ],
)
def test_remedy(standings, expected):
    assert of(*standings) == expected


def test_each_host_that_was_denied_gets_its_acl():
    two = Standing(False, hosts=["10.0.0.1", "10.0.0.2"])
    assert of(two).acls == (FROM_1, FROM_2)
    assert of(NOTHING, NOTHING._replace(hosts=["10.0.0.2"])).acls == (FROM_1, FROM_2)


def test_what_too_many_hosts_were_denied_gets_no_acls_unless_one_for_all_is_asked_for():
    three = Standing(False, hosts=["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    note = "denied from more than 2 hosts"
    assert of(three) == Remedy(Kind.HOSTS, (), (), note)
    assert of(three, BLOCKED).note == f"{note}; from some hosts a DENY blocks it"
    assert of(three, most_hosts=None) == Remedy(Kind.ALLOW, (ALLOW,))


def test_what_is_no_address_gets_no_acl():
    here = Standing(False, hosts=["laptop"])
    assert of(here) == Remedy(Kind.NONE, (), (), "it came from no address")
    assert of(here, NOTHING).acls == (FROM_1,)


def test_the_remedy_of_each_is_its_own_and_says_which_other_one_implies_it():
    asked = {
        ALICE_READS: [NOTHING],
        ALICE_DESCRIBES: [NOTHING._replace(hosts=["10.0.0.1", "10.0.0.2"])],
        ALICE_DESCRIBES._replace(name="other"): [NOTHING],
        ALICE_DESCRIBES._replace(principal="User:bob"): [NOTHING],
    }
    found = remedies(asked, most_hosts=2)
    describe = [
        acl(f"allow DESCRIBE topic orders literal User:alice 10.0.0.{host}") for host in (1, 2)
    ]
    assert found[ALICE_READS] == Remedy(Kind.ALLOW, (FROM_1,))
    note = "READ, denied as well, implies it"
    assert found[ALICE_DESCRIBES] == Remedy(Kind.ALLOW, tuple(describe), (), note)
    # Whoever is given all of them needs fewer.
    assert set(without_implied(each for one in found.values() for each in one.acls)) == {
        FROM_1,
        describe[1],
        *acls(
            "allow DESCRIBE topic other literal User:alice 10.0.0.1",
            "allow DESCRIBE topic orders literal User:bob 10.0.0.1",
        ),
    }


@pytest.mark.parametrize(
    ("kind", "name", "wide"),
    [
        (ResourceType.CLUSTER, "kafka-cluster", AclOperation.ALTER),
        (TOPIC, "orders", AclOperation.ALTER),
        (TOPIC, "orders", READ),
        (ResourceType.GROUP, "orders", AclOperation.DELETE),
    ],
)
def test_who_was_denied_to_describe_need_not_be_given_more_whatever_else_was_denied(
    kind, name, wide
):
    describes = Denied("User:alice", DESCRIBE, kind, name)
    found = remedies({describes: [NOTHING], describes._replace(operation=wide): [NOTHING]},
                     most_hosts=2)  # fmt: skip
    (narrow,) = found[describes].acls
    assert narrow == acl(f"allow DESCRIBE {kind.name.lower()} {name} literal User:alice 10.0.0.1")
    assert found[describes].note == f"{wide.name}, denied as well, implies it"
    both = {each for one in found.values() for each in one.acls}
    assert without_implied(both) == [narrow._replace(operation=wide)]


def test_one_of_several_operations_that_imply_it_is_enough():
    asked = {
        ALICE_READS._replace(operation=each): [NOTHING]
        for each in (AclOperation.WRITE, READ, DESCRIBE)
    }
    found = remedies(asked, most_hosts=2)
    assert found[ALICE_DESCRIBES].note == "READ, denied as well, implies it"
    suggested = {each for one in found.values() for each in one.acls}
    assert {each.operation for each in without_implied(suggested)} == {READ, AclOperation.WRITE}


def test_what_a_denial_blocks_is_not_suggested_for_what_it_implies():
    asked = {ALICE_READS: [BLOCKED], ALICE_DESCRIBES: [NOTHING]}
    found = remedies(asked, most_hosts=2)
    assert found[ALICE_READS].acls == ()
    assert [each.operation for each in found[ALICE_DESCRIBES].acls] == [DESCRIBE]


def test_no_resource_is_allowed_to_nobody():
    assert of(NOTHING, denied=ALICE_READS._replace(name=None)) == Remedy(Kind.NEVER)


def test_a_group_named_star_is_not_every_group():
    found = of(NOTHING, denied=Denied("User:a", READ, ResourceType.GROUP, "*"))
    assert found.acls == (acl("allow READ group * prefixed User:a 10.0.0.1"),)


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
    assert of(NOTHING, denied=denied) == Remedy(Kind.NONE, (), (), note)


@settings(max_examples=examples(200), deadline=None)
@given(
    rulesets,
    st.sampled_from(["User:alice", "User:bob"]),
    st.sampled_from(OPERATIONS),
    st.sampled_from(NAMES),
    st.sampled_from([None, 1, 4]),
)
def test_the_remedy_is_one(rules, principal, operation, name, most_hosts):
    """The ACLs allow it wherever no DENY is told, and nothing else; without the DENYs, always."""
    denied = Denied(principal, operation, TOPIC, name)
    sessions = [Session((principal,), host, "PLAINTEXT") for host in ADDRESSES]
    standings = [standing(rules, session, denied) for session in sessions]
    found = remedy(denied, standings, most_hosts=most_hosts, cidr=rules.cidr)
    action = Action(operation, TOPIC, name)
    if found.kind is Kind.NOW:
        assert all(each.allowed for each in standings)
        return
    if found.kind is Kind.HOSTS:
        assert sum(not each.allowed and not each.denies for each in standings) > 1
        return
    assert found.kind in (Kind.ALLOW, Kind.DENY)
    added = {*rules.acls, *found.acls}
    then = rules.with_acls(added).authorizer()
    for session, before in zip(sessions, standings, strict=True):
        assert then.decide(session, action).allowed == (not before.denies)
    without = rules.with_acls(added - set(found.denies)).authorizer()
    if not found.note:
        assert all(without.decide(session, action).allowed for session in sessions)
    if most_hosts is not None:
        elsewhere = Session((principal,), "192.0.2.77", "PLAINTEXT")
        assert then.decide(elsewhere, action).allowed == (
            rules.authorizer().decide(elsewhere, action).allowed
        )


ADDRESSES = [host for host in HOSTS if host != "elsewhere"]


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
    return Standing(allowed, allows, denies, [session.host])


def told(new, *others, denied=()):
    return list(map(str, opened_besides(new, others, denied)))


def test_an_acl_opens_what_it_implies_besides_what_was_denied():
    assert told(FROM_1, denied=[(READ, "10.0.0.1")]) == ["DESCRIBE on TOPIC orders from 10.0.0.1"]
    both = [(READ, "10.0.0.1"), (DESCRIBE, "10.0.0.1")]
    assert told(FROM_1, denied=both) == []


def test_what_is_allowed_already_is_not_opened():
    wide = acl("allow DESCRIBE topic ord prefixed User:*")
    other = acl("allow DESCRIBE topic other literal User:*")
    of_group = acl("allow DESCRIBE group orders literal User:alice")
    assert told(FROM_1, wide, denied=[(READ, "10.0.0.1")]) == []
    assert told(FROM_1, other, of_group, denied=[(READ, "10.0.0.1")]) == [
        "DESCRIBE on TOPIC orders from 10.0.0.1"
    ]


@settings(max_examples=examples(150), deadline=None)
@given(
    rulesets,
    st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(NAMES)),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    st.sampled_from([None, 1, 4]),
)
def test_nothing_is_opened_but_what_was_denied_or_is_told(rules, pairs, most_hosts):
    """Each request near the case is asked before and after all that is suggested."""
    rules = replace(rules, allow_everyone_if_no_acl_found=False)
    before = rules.authorizer()
    sessions = {host: Session(("User:alice",), host, "PLAINTEXT") for host in ADDRESSES[1:]}
    asked = {}
    for operation, name in pairs:
        denied = Denied("User:alice", operation, TOPIC, name)
        found = [standing(rules, each, denied) for each in sessions.values()]
        if any(not each.allowed for each in found):
            asked[denied] = found
    suggested = remedies(asked, most_hosts=most_hosts, cidr=rules.cidr)
    new = {acl for each in suggested.values() for acl in each.acls}
    told = {
        acl: opened_besides(
            acl,
            rules.acls,
            [(each.operation, host) for each in asked if each.name == acl.resource_name
             for host in sessions],
            cidr=rules.cidr,
        )
        for acl in new
    }  # fmt: skip
    then = rules.with_acls({*rules.acls, *new}).authorizer()
    for host, principal, operation, name in product(
        [*ADDRESSES, "192.0.2.77"], ["User:alice", "User:bob"], OPERATIONS, [*NAMES, "***"]
    ):
        session, action = Session((principal,), host, ""), Action(operation, TOPIC, name)
        was, is_now = before.decide(session, action).allowed, then.decide(session, action).allowed
        assert is_now or not was
        if is_now is was:
            continue
        request = Request(principal, host, operation, TOPIC, name)
        is_told = any(
            operation in each.operations and request in each.region
            for found in told.values()
            for each in found
        )
        wanted = Denied(principal, operation, TOPIC, name)
        assert is_told or (wanted in asked and host in sessions), request


def test_an_acl_for_all_hosts_opens_the_others():
    assert told(ALLOW, denied=[(READ, "10.0.0.1"), (DESCRIBE, "10.0.0.1")]) == [
        "READ, DESCRIBE on TOPIC orders from any host"
    ]
    assert told(ALLOW, FROM_1, denied=[(READ, "10.0.0.2")]) == [
        "READ, DESCRIBE on TOPIC orders from any host but 10.0.0.1"
    ]


def test_an_acl_of_a_group_named_star_opens_all_that_begin_so():
    new = acl("allow DESCRIBE group * prefixed User:alice 10.0.0.1")
    known = acl("allow DESCRIBE group *x literal User:alice")
    assert told(new, known, denied=[(DESCRIBE, "10.0.0.1")]) == [
        "DESCRIBE on GROUP ** but *x from 10.0.0.1"
    ]
