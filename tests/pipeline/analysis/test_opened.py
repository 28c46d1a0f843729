"""What a change of rules opens and closes, for every request."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.opened import (
    AskedQuestion,
    ChangedRights,
    Opened,
    changed_rights,
    name_of_session,
    opened,
    rules_of,
)
from tests.pipeline.analysis.recommending import changes_of
from tests.pipeline.analysis.test_least_privilege import acls, rulesets
from tests.pipeline.universe import Universe
from tests.support.tables import examples

TOPIC, READ, DESCRIBE = ResourceType.TOPIC, AclOperation.READ, AclOperation.DESCRIBE
SESSIONS = [("User:carol", "Group:staff"), ("User:carol", "User:bob")]


def ruleset(*texts: str, **settings) -> Ruleset:
    return Ruleset(ordered(acls(*texts)), **settings)


def test_rules_written_otherwise_change_nothing():
    found = opened(
        ruleset("allow READ topic t literal User:a", "allow DESCRIBE topic t literal User:a"),
        ruleset("allow READ topic t literal User:a"),
    )
    assert found.changes == ()
    assert found.sentence() == "opens nothing: proven for every request, asked or not"
    assert found.sentence_of_closed() == "closes nothing: proven for every request, asked or not"


def test_what_is_opened_and_closed_is_told_with_an_example():
    found = opened(
        ruleset(
            "allow READ topic app.a literal User:a", "allow WRITE topic t literal User:b 10.0.0.1"
        ),
        ruleset("allow READ topic app. prefixed User:a"),
    )
    first, second = found.changes
    assert (first.is_opened, second.is_opened) == (True, False)
    assert first.texts() == (
        "opened",
        ("User:a",),
        False,
        ("any host",),
        ("READ", "DESCRIBE"),
        "TOPIC",
        "PREFIXED",
        "app.",
        ("app.a",),
        "User:a from 192.0.2.1: READ on TOPIC app.example",
        False,
    )
    assert second.texts().hosts == ("10.0.0.1",)
    assert found.sentence() == (
        "opens 2 rights that nobody asked for, such as User:a from 192.0.2.1: READ on TOPIC "
        "app.example"
    )
    assert found.sentence_of_closed() == (
        "closes 2 rights that nobody asked for, such as User:b from 10.0.0.1: WRITE on TOPIC t"
    )


def test_what_was_asked_is_told_apart_among_tens_of_thousands():
    """Regions are held against what was asked in several goes."""
    (acl,) = acls("allow READ topic t literal User:a")
    names = [f"t{number:05}" for number in range(25_000)]
    given = Ruleset(ordered(acl._replace(resource_name=name) for name in names))
    some = names[0], names[12_000], names[-1]
    asked = [AskedQuestion(("User:a",), None, READ, TOPIC, name) for name in some]
    found = opened(given, ruleset(), asked=asked)
    assert len(found.closed) == len(names)
    assert {each.texts().name for each in found.closed if each.is_asked} == set(some)


def test_rights_are_counted_by_principal_and_operation():
    found = opened(
        ruleset(),
        ruleset(
            "allow READ topic t literal User:a",
            "allow READ topic t literal User:b",
            "allow DELETE group * literal User:*",
        ),
    )
    assert (found.rights_opened, found.rights_closed) == (6, 0)
    (everyone,) = (each for each in found.opened if each.texts().is_everyone_else)
    assert (everyone.rights, everyone.texts().principals) == (2, ())


def test_one_right_is_one():
    found = opened(ruleset(), ruleset("allow CREATE topic t literal User:a"))
    assert found.sentence().startswith("opens 1 right that nobody asked for, such as User:a from")


@pytest.mark.parametrize(
    ("host", "is_asked"), [("10.0.0.1", True), ("10.0.0.2", False), (None, False)]
)
def test_what_was_asked_is_told_apart(host, is_asked):
    after = ruleset(
        "allow READ topic t literal User:a 10.0.0.1", "allow CREATE topic u literal User:a"
    )
    question = AskedQuestion(("User:a",), host, DESCRIBE, TOPIC, "t")
    found = opened(ruleset(), after, asked=[question])
    assert [each.is_asked for each in found.opened if each.region.names.key[0] == "t"] == [is_asked]
    if is_asked:
        assert found.sentence() == (
            "opens 3 rights, 2 of them asked for, such as User:a from 192.0.2.1: CREATE on TOPIC u"
        )


def test_a_question_from_any_other_host_is_one_from_a_host_that_no_acl_names():
    after = ruleset(
        "allow READ topic a prefixed User:a", "deny READ topic a prefixed User:a 192.0.2.1"
    )
    question = AskedQuestion(("User:a",), None, READ, TOPIC, "ab")
    assert [each.is_asked for each in opened(ruleset(), after, asked=[question]).opened] == [
        True,
        False,
    ]


def test_a_session_of_several_principals_is_one_of_its_own():
    before = ruleset("allow READ topic t literal User:a", "deny READ topic t literal Group:g")
    after = ruleset("allow READ topic t literal User:a")
    assert opened(before, after).changes == ()
    (told,) = opened(before, after, [("User:a", "Group:g"), ("User:a",)]).opened
    assert told.texts().principals == ("session of User:a with Group:g",)
    assert told.example is not None
    assert not told.example.is_allowed(rules_of(before, [("User:a", "Group:g")]))
    assert told.example.is_allowed(rules_of(after, [("User:a", "Group:g")]))


def test_sessions_of_others_are_told_apart_whatever_their_names():
    names = [
        name_of_session(each)
        for each in (
            ("User:a",),
            ("User:a", "Group:b", "Group:c"),
            ("User:a", "Group:b, Group:c"),
            ("User:a with Group:b", "Group:c"),
        )
    ]
    assert names == [
        "User:a",
        "session of User:a with Group:b, Group:c",
        'session of User:a with "Group:b, Group:c"',
        'session of "User:a with Group:b" with Group:c',
    ]


def test_settings_count():
    before = ruleset("allow READ topic t literal User:a")
    after = Ruleset(before.acls, frozenset({"User:root"}), BrokerUsers(frozenset({"User:b"}), "IN"))
    assert {each.texts().principals for each in opened(before, after).opened} == {("User:root",)}


@settings(max_examples=examples(80), deadline=None)
@given(rulesets, rulesets)
def test_every_request_is_told_that_is_decided_otherwise(before, after):
    supers = [(each,) for each in sorted(before.super_users | after.super_users)]
    universe = Universe({*before.acls, *after.acls}, [*SESSIONS, *supers])
    old, new = universe.allowed(before), universe.allowed(after)
    found = opened(before, after, SESSIONS)
    for at, each in enumerate(universe.requests):
        if each.name == ANY_RESOURCE:
            # It is no topic of its own: what becomes allowed so is allowed on some topic anew.
            assert found.opened or at in old or at not in new
            continue
        assert changes_of(found, each) == [at in new] * ((at in old) != (at in new))


def test_with_the_hosts_of_others_what_is_said_of_one_does_not_depend_on_who_else_is_compared():
    """Each of whom something else is so on some names is told apart, everybody as well."""
    before = ruleset(
        "allow ALL topic app. prefixed User:a",
        "allow ALL topic app. prefixed User:b",
        "allow ALL topic app. prefixed User:c",
        "allow READ topic open. prefixed User:*",
    )
    after = ruleset(
        "allow READ topic app.a literal User:a",
        "allow READ topic open.b literal User:b",
        "allow READ topic app.d literal User:d 10.0.0.1",
    )
    cut = HostCut({"10.0.0.1", "10.0.0.2"}, cidr=False)
    together = told_apart(changed_rights(before, after, cut=cut))
    apart = [
        told_apart(changed_rights(of(before, who), of(after, who), cut=cut))
        for who in ({"User:a"}, {"User:b", "User:c"}, {"User:d"})
    ]
    assert together.keys() == set().union(*apart)
    for right, principals in together.items():
        assert principals == set().union(*(found.get(right, set()) for found in apart))
    assert any(each.region.apart for each in changed_rights(before, after))
    texts = {
        each.texts()[1:3] + each.texts()[8:9] for each in changed_rights(before, after, cut=cut)
    }
    assert (("User:a",), False, ("app.a",)) in texts
    assert (("User:b",), False, ("open.b",)) in texts


def of(rules: Ruleset, principals: set[str]) -> Ruleset:
    return rules.with_acls(acl for acl in rules.acls if acl.principal in {*principals, "User:*"})


def told_apart(changes: Iterable[ChangedRights]) -> dict[object, set[str]]:
    """The principals of each right; of everyone's, those who do not have it."""
    found: dict[object, set[str]] = {}
    for each in changes:
        assert not each.region.apart
        change, principals, is_everyone, *right = each.texts()[:9]
        found.setdefault((change, is_everyone, *right), set()).update(principals)
    return found


@pytest.mark.thorough
@settings(max_examples=examples(80), deadline=None)
@given(rulesets, rulesets)
def test_every_request_is_told_with_the_hosts_of_others(before, after):
    supers = [(each,) for each in sorted(before.super_users | after.super_users)]
    universe = Universe({*before.acls, *after.acls}, [*SESSIONS, *supers])
    old, new = universe.allowed(before), universe.allowed(after)
    hosts = {acl.host for acl in (*before.acls, *after.acls)} | {"10.9.9.9", "10.9.0.0/16"}
    cut = HostCut(hosts, before.cidr or after.cidr)
    found = Opened(tuple(changed_rights(before, after, SESSIONS, cut=cut)))
    assert not any(each.region.apart for each in found.changes)
    for at, each in enumerate(universe.requests):
        if each.name == ANY_RESOURCE:
            # It is no topic of its own: what becomes allowed so is allowed on some topic anew.
            assert found.opened or at in old or at not in new
            continue
        assert changes_of(found, each) == [at in new] * ((at in old) != (at in new))
