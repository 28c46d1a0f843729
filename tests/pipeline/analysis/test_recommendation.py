"""What is recommended opens nothing, loses nothing that was used, and is the smallest such set."""

from collections.abc import Collection
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission, PatternType
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.idle import without_idle
from aclbroker.pipeline.analysis.opened import opened
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import why_not
from tests.acl.examples import DESCRIBE, READ, TOPIC, WRITE
from tests.pipeline.analysis.recommended_universe import (
    any_topic,
    as_given,
    fewest_allows,
    loses,
    near,
    on_any_topic,
    on_used_names,
    opens,
)
from tests.pipeline.analysis.recommending import changes_of, draft, proposal, without_one
from tests.pipeline.analysis.test_least_privilege import acls, rulesets
from tests.pipeline.universe import (
    Asking,
    Universe,
    allowed,
    asked,
    is_of_any,
    on_kafka,
    with_subnets,
)
from tests.support.tables import check_each, examples

ALLOW_ALL = "allow ALL topic * literal User:*"


def ruleset(*texts: str, **settings) -> Ruleset:
    return Ruleset(ordered(acls(*texts)), **settings)


def is_the_least(rules: Ruleset, log: Collection[Asking], proposed: Ruleset) -> bool:
    """Hold a proposal to every request near it."""
    requests = near(rules, log, proposed)
    assert opens(rules, proposed, requests) == set()
    assert set(log) <= allowed(proposed, log)
    assert loses(rules, proposed, log) == set()
    then = allowed(proposed, requests)
    for fewer in without_one(proposed):
        # Where what has no ACL is open to everyone, one also closes it to all others.
        assert loses(rules, fewer, log) or allowed(fewer, requests) - then
    assert without_idle(proposed, {each.principals for each in log}) == proposed
    for read in (as_given, on_kafka, with_subnets):
        assert opened(read(rules), read(proposed), {each.principals for each in log}).opened == ()
    return True


CASES = {
    "names with a common beginning stay what they are": (
        ruleset(*(f"allow READ topic app.{name} literal User:a" for name in "abcd")),
        [asked("User:a", "READ", f"topic app.{name}") for name in "abcd"],
        [f"allow READ topic app.{name} literal User:a" for name in "abcd"],
    ),
    "of a prefix only the names that were used stay": (
        ruleset("allow READ topic app. prefixed User:a"),
        [asked("User:a", "READ", f"topic app.{name}") for name in "abcd"],
        [f"allow READ topic app.{name} literal User:a" for name in "abcd"],
    ),
    "an operation that another one implies from the same host needs no ACL": (
        ruleset(
            "allow WRITE topic t literal User:a 10.0.0.1", "allow DESCRIBE topic t literal User:a"
        ),
        [
            asked("User:a", "WRITE", "topic t", "10.0.0.1"),
            asked("User:a", "DESCRIBE", "topic t", "10.0.0.1"),
        ],
        ["allow WRITE topic t literal User:a 10.0.0.1"],
    ),
    "an operation that another one implies elsewhere needs its ACL": (
        ruleset(
            "allow WRITE topic t literal User:a 10.0.0.1", "allow DESCRIBE topic t literal User:a"
        ),
        [
            asked("User:a", "WRITE", "topic t", "10.0.0.1"),
            asked("User:a", "DESCRIBE", "topic t", "10.0.0.2"),
        ],
        [
            "allow WRITE topic t literal User:a 10.0.0.1",
            "allow DESCRIBE topic t literal User:a",
        ],
    ),
    "what is allowed from one host is not granted from all": (
        ruleset(
            "allow READ topic t literal User:a 10.0.0.1",
            "allow READ topic t literal User:a 10.0.0.2",
            "allow READ topic u literal User:* 10.0.0.1",
        ),
        [
            asked("User:a", "READ", "topic t", "10.0.0.1"),
            asked("User:a", "READ", "topic u", "10.0.0.1"),
        ],
        [
            "allow READ topic t literal User:a 10.0.0.1",
            "allow READ topic u literal User:a 10.0.0.1",
        ],
    ),
    "what is allowed from a subnet but for a host stays so": (
        ruleset(
            "allow ALL topic t literal User:a 10.0.0.0/24",
            "allow READ topic t literal User:a 10.0.0.7",
            "deny DESCRIBE topic t literal User:* 10.0.0.9",
            cidr=True,
        ),
        [asked("User:a", "READ", "topic t", "10.0.0.7")],
        [
            "allow READ topic t literal User:a 10.0.0.0/24",
            "deny DESCRIBE topic t literal User:* 10.0.0.9",
        ],
    ),
    "a group's right is not granted to its member, who may leave it": (
        ruleset("allow ALL topic t literal Group:g"),
        [asked("User:a Group:g", "READ", "topic t")],
        ["allow READ topic t literal Group:g"],
    ),
    "a member's own right is not granted to the group": (
        ruleset("allow READ topic t literal User:a", "allow READ topic t literal Group:g"),
        [asked("User:a Group:g", "READ", "topic t")],
        ["allow READ topic t literal User:a"],
    ),
    "of a member's right and the group's one suffices": (
        ruleset("allow READ topic t literal User:a", "allow READ topic t literal Group:g"),
        [
            asked("User:a Group:g", "READ", "topic t"),
            asked("User:b Group:g", "READ", "topic t"),
        ],
        ["allow READ topic t literal Group:g"],
    ),
    "a group's denial stays, whoever is in it": (
        ruleset(
            ALLOW_ALL, "deny READ topic t literal Group:g", "deny WRITE topic t literal User:a"
        ),
        [asked("User:a", "READ", "topic t")],
        ["allow READ topic t literal User:a", "deny READ topic t literal Group:g"],
    ),
    "a denial of what a grant implies stays": (
        ruleset(
            ALLOW_ALL, "deny DESCRIBE topic a prefixed User:*", "deny WRITE topic * literal User:b"
        ),
        [asked("User:a", "READ", "topic ax")],
        ["allow READ topic ax literal User:a", "deny DESCRIBE topic a prefixed User:*"],
    ),
    "of groups the one that suffices for all sessions is chosen": (
        ruleset(*(f"allow READ topic t literal Group:{name}" for name in "ABCD")),
        [
            asked("User:u0 Group:C Group:B Group:D", "READ", "topic t"),
            asked("User:u1 Group:D Group:A", "READ", "topic t"),
        ],
        ["allow READ topic t literal Group:D"],
    ),
    "of members' own rights and their group's the group's one suffices": (
        ruleset(*(f"allow READ topic t literal {who}" for who in ("User:a", "User:b", "Group:g"))),
        [
            asked("User:a Group:g", "READ", "topic t"),
            asked("User:b Group:g", "READ", "topic t"),
        ],
        ["allow READ topic t literal Group:g"],
    ),
    "a denial from what may be a subnet stays": (
        ruleset("allow READ topic t literal User:a", "deny READ topic t literal User:a 10.0.0.0/8"),
        [asked("User:a", "READ", "topic t", "192.0.2.1")],
        ["allow READ topic t literal User:a", "deny READ topic t literal User:a 10.0.0.0/8"],
    ),
    "a denial from an address that a Kafka overlooks stays": (
        ruleset(
            "allow READ topic t literal User:a",
            "deny READ topic t literal User:a 2001:DB8::1",
            "deny READ topic u literal User:a 2001:DB8::1",
        ),
        [asked("User:a", "READ", "topic t", "192.0.2.1")],
        ["allow READ topic t literal User:a", "deny READ topic t literal User:a 2001:DB8::1"],
    ),
    "of one address in two forms that is granted which a Kafka knows": (
        ruleset(
            "allow READ topic t literal User:a ::1",
            "allow READ topic t literal User:a 0:0:0:0:0:0:0:1",
        ),
        [asked("User:a", "READ", "topic t", "::1")],
        ["allow READ topic t literal User:a 0:0:0:0:0:0:0:1"],
    ),
    "what was used on any topic follows from what was written": (
        ruleset("allow WRITE topic app. prefixed User:a", "allow ALL topic * literal User:a"),
        [any_topic("User:a"), asked("User:a", "WRITE", "topic app.x")],
        ["allow WRITE topic app.x literal User:a"],
    ),
    "for any topic the narrowest ALLOW of now is kept where nothing was written": (
        ruleset(
            "allow WRITE topic app. prefixed User:a",
            "allow ALL topic * literal User:a",
            "allow READ topic x literal User:a",
        ),
        [any_topic("User:a"), asked("User:a", "READ", "topic x")],
        ["allow WRITE topic app. prefixed User:a", "allow READ topic x literal User:a"],
    ),
    "of what is kept for any topic only the one operation is, for who asked": (
        ruleset("allow ALL topic app. prefixed User:*"),
        [any_topic("User:a")],
        ["allow WRITE topic app. prefixed User:a"],
    ),
    "what was written from another host does not suffice for any topic": (
        ruleset(
            "allow WRITE topic t literal User:a 10.0.0.2", "allow WRITE topic app. prefixed User:a"
        ),
        [any_topic("User:a", "10.0.0.1"), asked("User:a", "WRITE", "topic t", "10.0.0.2")],
        ["allow WRITE topic t literal User:a 10.0.0.2", "allow WRITE topic app. prefixed User:a"],
    ),
    "what a denial that stays takes back does not suffice for any topic": (
        ruleset(
            "allow WRITE topic app.x literal User:a",
            "allow WRITE topic y literal User:a",
            "deny WRITE topic y literal User:a 10.0.0.1",
        ),
        [any_topic("User:a", "10.0.0.1"), asked("User:a", "WRITE", "topic y", "10.0.0.2")],
        [
            "allow WRITE topic app.x literal User:a",
            "allow WRITE topic y literal User:a",
            "deny WRITE topic y literal User:a 10.0.0.1",
        ],
    ),
    "what is kept for any topic takes the place of what lies in it": (
        ruleset(
            "allow WRITE topic app. prefixed User:a",
            "deny WRITE topic app.x literal User:a 10.0.0.1",
        ),
        [any_topic("User:a", "10.0.0.1"), asked("User:a", "WRITE", "topic app.x", "10.0.0.2")],
        [
            "allow WRITE topic app. prefixed User:a",
            "deny WRITE topic app.x literal User:a 10.0.0.1",
        ],
    ),
    "of two that may write the one is chosen who also may on any topic": (
        ruleset(
            "allow WRITE topic t literal User:a 10.0.0.2",
            "allow WRITE topic t literal Group:g",
        ),
        [
            any_topic("User:a Group:g", "10.0.0.1"),
            asked("User:a Group:g", "WRITE", "topic t", "10.0.0.2"),
        ],
        ["allow WRITE topic t literal Group:g"],
    ),
    "for any topic is kept what allows it on a Kafka, too": (
        ruleset(
            "allow WRITE topic a literal User:a ::1",
            "allow WRITE topic bb prefixed User:a 0:0:0:0:0:0:0:1",
        ),
        [any_topic("User:a", "::1")],
        ["allow WRITE topic bb prefixed User:a 0:0:0:0:0:0:0:1"],
    ),
    "where names without ACLs are open, so is any topic": (
        ruleset("allow WRITE topic t literal User:b", allow_everyone_if_no_acl_found=True),
        [any_topic("User:a"), asked("User:b", "WRITE", "topic t")],
        ["allow WRITE topic t literal User:b"],
    ),
    "where the topic gets an ACL that any topic is judged by, who asked gets one, too": (
        ruleset("allow WRITE topic t literal User:b", allow_everyone_if_no_acl_found=True),
        [any_topic("User:a"), asked("User:b", "WRITE", "topic hardcode")],
        [
            "allow WRITE topic t literal User:b",
            "allow WRITE topic hardcode literal User:a",
            "allow WRITE topic hardcode literal User:b",
        ],
    ),
    "a group called * gets no ACL of every group": (
        ruleset("allow READ group * literal User:a"),
        [asked("User:a", "READ", "group *"), asked("User:a", "READ", "group *s")],
        ["allow READ group * prefixed User:a"],
    ),
    "what is open to everyone is closed for all but those who used it": (
        ruleset("allow READ topic t literal User:a", allow_everyone_if_no_acl_found=True),
        [asked("User:a", "READ", "topic t"), asked("User:b", "READ", "topic u")],
        ["allow READ topic t literal User:a", "allow READ topic u literal User:b"],
    ),
    "what keeps names closed may allow what was used, too": (
        ruleset(
            "allow READ topic * literal Group:g",
            "allow READ topic t literal User:b 10.0.0.1",
            allow_everyone_if_no_acl_found=True,
        ),
        [asked("User:b Group:g", "READ", "topic t", "10.0.0.1")],
        ["allow READ topic * literal Group:g"],
    ),
    "what is open to everyone by an ACL needs none where others are open": (
        ruleset(
            "allow ALL topic t literal User:*",
            "allow ALL topic u literal User:* 10.0.0.1",
            allow_everyone_if_no_acl_found=True,
        ),
        [],
        ["allow ALL topic u literal User:* 10.0.0.1"],
    ),
    "what is closed stays closed where others are open": (
        ruleset(
            "allow READ topic t literal User:a",
            "deny READ topic v prefixed User:b",
            allow_everyone_if_no_acl_found=True,
            super_users=frozenset({"User:root"}),
        ),
        [asked("User:b", "READ", "topic u")],
        [
            "allow READ topic u literal User:b",
            "allow DESCRIBE topic t literal User:root",
            "deny READ topic v prefixed User:b",
        ],
    ),
}


def test_of_planted_cases():
    def check(name: str) -> None:
        rules, log, expected = CASES[name]
        proposed = proposal(rules, log)
        assert list(proposed.acls) == acls(*expected)
        assert is_the_least(rules, log, proposed)

    check_each(CASES, check)


def test_a_group_called_star_gets_none_where_it_would_open_others():
    """Of ``*`` alone no ACL can be made, and ``*s`` is not open as ``*`` is."""
    rules = ruleset("allow READ group *s literal User:b", allow_everyone_if_no_acl_found=True)
    log = [asked("User:a", "READ", "group *")]
    found = draft(rules, log)
    assert [each.name for each in found.grants.unmet] == ["*"]
    assert "other names that begin so" in found.grants.unmet[0].reason
    assert found.rules(()).acls == rules.acls


def test_who_is_everyone_gets_what_the_own_group_has():
    """A principal of that name is no principal to grant anything."""
    log = [asked("User:* Group:g", "READ", "topic t"), asked("User:*", "READ", "topic u")]
    found = draft(
        ruleset("allow READ topic t literal Group:g", "allow READ topic u literal User:*"), log
    )
    assert list(found.rules(()).acls) == acls("allow READ topic t literal Group:g")
    assert [(each.name, each.reason) for each in found.grants.unmet] == [
        ("u", "an ACL of User:* would hold for everyone")
    ]


def test_prefixes_that_are_asked_for_open_what_is_told():
    rules = ruleset(*(f"allow READ topic app.{name} literal User:a" for name in "abcd"))
    log = [asked("User:a", "READ", f"topic app.{name}") for name in "abcd"]
    proposed = proposal(rules, log, PrefixOptions())
    assert list(proposed.acls) == acls("allow READ topic app. prefixed User:a")
    (told,) = opened(rules, proposed).opened
    assert told.texts()[1:9] == (
        ("User:a",),
        False,
        ("any host",),
        ("READ", "DESCRIBE"),
        "TOPIC",
        "PREFIXED",
        "app.",
        ("app.a", "app.b", "app.c", "app.d"),
    )
    requests = near(rules, log, proposed)
    gained = allowed(proposed, requests) - allowed(rules, requests)
    near_names = {"app.", "app.~", *(f"app.{name}~" for name in "abcd")}
    assert {each.name for each in gained} == near_names


def test_a_prefix_that_would_allow_what_was_denied_is_not_made():
    rules = ruleset(*(f"allow READ topic app.{name} literal User:a" for name in "abcd"))
    log = [asked("User:a", "READ", f"topic app.{name}") for name in "abcd"]
    found = draft(rules, log, PrefixOptions())
    denied = asked("User:a", "READ", "topic app.secret")
    assert allowed(found.widest(), [denied]) == {denied}
    (prefix,) = found.considered
    assert found.rules({prefix.acl}) == rules
    taken = found.rules(()).acls
    assert why_not(prefix, taken, (), 0) is None
    assert why_not(prefix, rules.acls, {prefix.acl}, 0) == "something denied would become allowed"
    assert why_not(prefix, rules.acls, (), 0) == "another prefix allows the same"
    assert why_not(prefix._replace(price=3), rules.acls, (), 2) == "its price is above 2"


def test_without_prefixes_none_is_affordable():
    log = [asked("User:a", "READ", "topic t")]
    assert draft(None, log).affordable == []


def test_prefixes_within_what_is_allowed_open_nothing():
    rules = ruleset(
        "allow READ topic app. prefixed User:a", "deny READ topic app.x literal Group:g"
    )
    log = [asked("User:a", "READ", f"topic app.{name}") for name in "abc"]
    proposed = proposal(rules, log, PrefixOptions())
    assert proposed == rules
    assert opened(rules, proposed).changes == ()


def test_a_groups_prefix_takes_the_place_of_what_it_implies_for_a_member():
    rules = ruleset(
        "allow READ topic app. prefixed Group:g", "allow DESCRIBE topic app.a literal User:a"
    )
    log = [
        *(asked("User:b Group:g", "READ", f"topic app.{name}") for name in "abc"),
        asked("User:a Group:g", "DESCRIBE", "topic app.a"),
    ]
    assert list(proposal(rules, log, PrefixOptions()).acls) == acls(
        "allow READ topic app. prefixed Group:g"
    )


def test_an_operation_that_the_type_does_not_have_keeps_its_acl():
    """No broker asks for it, but a log may say so, and the ACLs that are in force allow it."""
    rules = ruleset("allow ALL group g literal User:a")
    log = [asked("User:a", "WRITE", "group g"), asked("User:a", "READ", "group g")]
    assert list(proposal(rules, log).acls) == acls(
        "allow READ group g literal User:a", "allow WRITE group g literal User:a"
    )


def test_a_users_denial_stays_where_another_had_that_user_in_a_session():
    rules = ruleset("allow READ topic t literal User:a", "deny READ topic t literal User:b")
    log = [asked("User:a", "READ", "topic t")]
    assert list(proposal(rules, log).acls) == acls("allow READ topic t literal User:a")
    log.append(asked("User:a User:b", "DESCRIBE", "topic t"))
    assert proposal(rules, log) == rules


def test_what_never_decides_goes_without_a_change():
    rules = ruleset(
        "allow READ topic t literal User:a",
        "allow DESCRIBE topic t literal User:a",
        "deny WRITE topic t literal User:b",
        "allow READ topic t literal User:a not-an-address",
    )
    assert list(without_idle(rules, ()).acls) == acls("allow READ topic t literal User:a")


@st.composite
def cases(draw):
    """Rules, and what was used of what they allow."""
    rules = draw(rulesets)
    sessions = [("User:alice",), ("User:bob",), ("User:carol", "Group:staff")]
    universe = Universe(rules.acls, sessions)
    requests = [
        each
        for each in universe.requests
        if each.principals in sessions and each.operation <= AclOperation.DESCRIBE
    ]
    used = sorted(allowed(rules, requests))
    return rules, draw(st.lists(st.sampled_from(used), max_size=8)) if used else []


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_of_any_case(case):
    rules, log = case
    found = draft(rules, log)
    # A resource called * may get no ACL of its own, where that would open others.
    names = {each.name for each in found.grants.unmet}
    assert names <= {"*"}
    assert is_the_least(rules, [each for each in log if each.name not in names], found.rules(()))


def few_used(random: Random) -> tuple[Ruleset, list[Asking]]:
    """Few ACLs of users and groups on two topics, and what some sessions used of them."""
    principals = ["User:a", "User:b", *(f"Group:{name}" for name in "fgh")]
    rules = Ruleset(
        ordered(
            AclBinding(
                TOPIC,
                random.choice(("t", "t", "tu", "*")),
                random.choice((PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED)),
                random.choice((*principals, "User:*")),
                random.choice(("*", "*", "10.0.0.1", "10.0.0.0/24", "0:0:0:0:0:0:0:1", "::1")),
                random.choice((READ, READ, WRITE, WRITE, DESCRIBE, AclOperation.ALL)),
                random.choice((*(AclPermission.ALLOW,) * 5, AclPermission.DENY)),
            )
            for _ in range(random.randint(2, 7))
        ),
        cidr=random.random() < 0.5,
    )
    sessions = [
        (user, *random.sample(principals[2:], random.randint(0, 2)))
        for user in ("User:a", "User:b", "User:c", "User:d")
    ]
    hosts = ["10.0.0.1", "10.0.0.2", "::1", "203.0.113.77"]
    requests = [
        *on_any_topic(sessions, hosts),
        *(
            Asking(session, host, operation, TOPIC, name)
            for session, host, operation, name in product(
                sessions, hosts, (READ, WRITE, DESCRIBE), ("t", "tu")
            )
        ),
    ]
    used = sorted(allowed(rules, requests))
    return rules, random.sample(used, min(len(used), random.randint(1, 6)))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 10))]
)
def test_no_smaller_set_suffices(seed: int) -> None:
    """All sets within what is allowed now are tried, the smaller ones first."""
    random = Random(seed)
    sizes = 0
    for _ in range(10):
        rules, log = few_used(random)
        proposed = proposal(rules, log)
        assert is_the_least(rules, log, proposed)
        allows = [acl for acl in proposed.acls if acl.permission is AclPermission.ALLOW]
        wide = set(allows).difference(on_used_names(rules, log))
        assert (len(wide), len(allows)) == fewest_allows(rules, log), (rules, log)
        sizes += len(allows)
    assert sizes > 10


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_the_rights_that_prefixes_open_are_all_told(case):
    rules, log = case
    proposed = proposal(rules, log, PrefixOptions(2, 1, 5, any_prefix=True))
    requests = near(rules, log, proposed)
    now, then = allowed(rules, requests), allowed(proposed, requests)
    assert {each for each in log if each.name != "*"} <= then
    sessions = {each.principals for each in log}
    told = opened(rules, proposed, sessions)
    for each in requests:
        is_alike = len(each.principals) == 1 or each.principals in sessions
        if is_alike and not is_of_any(*each[2:]):
            assert changes_of(told, each) == [each in then] * ((each in now) != (each in then))
