from itertools import pairwise

import pytest

from aclbroker.acl.bindings import AclBinding, AclFilter, AclPermission, PatternType
from aclbroker.acl.index import AclIndex
from tests.acl.examples import (
    ALL,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)

HERE = "192.0.2.7"
ALICE = (("User:alice",), HERE)


def test_an_acl_is_new_once_and_is_removed_once():
    index = AclIndex()
    assert index.add(allow())
    assert not index.add(allow())
    assert (len(index), list(index)) == (1, [allow()])
    assert allow() in index
    assert index.remove(allow())
    assert not index.remove(allow())
    assert (len(index), list(index)) == (0, [])
    assert allow() not in index


def test_an_allowance_and_a_denial_of_the_same_are_two_acls():
    index = AclIndex([allow(), deny()])
    assert set(index) == {allow(), deny()}
    index.remove(allow())
    assert list(index) == [deny()]


def test_a_host_is_known_until_its_last_acl_is_removed():
    acls = [
        allow(host="h"),
        deny(host="h"),
        allow(host="h", name="other"),
        allow("User:b", host="h"),
    ]
    index = AclIndex(acls)
    for acl in acls:
        assert index.hosts() == {"h"}
        index.remove(acl)
    assert index.hosts() == set()


def test_looking_for_an_acl_that_is_not_there_adds_nothing():
    index = AclIndex()
    assert not index.remove(allow())
    assert allow("User:x", host="h") not in index
    assert index.hosts() == set()
    assert index.masks(ALICE, TOPIC, "orders") == (0, 0, False)


def test_an_empty_name_is_refused_because_an_empty_prefix_would_match_everything():
    index = AclIndex()
    with pytest.raises(ValueError, match="everything"):
        index.add(allow(name="", pattern_type=PREFIXED))
    assert index.masks(ALICE, TOPIC, "orders") == (0, 0, False)


def test_many_are_added_as_one_after_the_other_is():
    many = [
        *(allow(), allow(), deny(), allow("User:bob"), allow(host="h"), allow(name="other")),
        *(allow(pattern_type=PREFIXED), allow(operation=WRITE), allow("User:bob", name="new")),
    ]
    index = AclIndex()
    index.add_all(many)
    one_by_one = AclIndex()
    added = [one_by_one.add(acl) for acl in many]
    assert set(index) == set(one_by_one) == set(many)
    assert len(index) == len(one_by_one) == sum(added) == len(many) - 1
    assert index.masks(ALICE, TOPIC, "orders") == one_by_one.masks(ALICE, TOPIC, "orders")
    index.add_all([allow(operation=ALL, name="late")])
    # It was asked before: what it answered then holds no more.
    assert index.masks(ALICE, TOPIC, "late") == (1 << ALL, 0, True)
    for acl in [*many, allow(operation=ALL, name="late")]:
        index.remove(acl)
    assert (len(index), list(index), index.hosts()) == (0, [], set())


def test_those_before_an_acl_that_is_refused_are_added_and_counted():
    index = AclIndex()
    with pytest.raises(ValueError, match="everything"):
        index.add_all([allow(), allow(name="")])
    assert (len(index), list(index)) == (1, [allow()])


def test_a_list_is_not_current_any_more_when_many_were_added():
    index = AclIndex([allow()])
    found = index.find(AclFilter())
    assert found.is_current()
    index.add_all([allow(name="late")])
    assert not found.is_current()


def test_masks_join_what_all_matching_acls_say_and_imply_nothing():
    index = AclIndex(
        [
            allow(),
            allow("User:*", WRITE, "*"),
            deny(operation=ALL, name="ord", pattern_type=PREFIXED),
            allow("User:bob", operation=ALL),
        ]
    )
    assert index.masks(ALICE, TOPIC, "orders") == (1 << READ | 1 << WRITE, 1 << ALL, True)
    assert index.masks(ALICE, TOPIC, "other") == (1 << WRITE, 0, True)
    assert index.masks(ALICE, GROUP, "orders") == (0, 0, False)


def test_a_pattern_is_found_even_if_its_acls_are_of_others():
    index = AclIndex([allow("User:bob")])
    assert index.masks(ALICE, TOPIC, "orders") == (0, 0, True)


def test_bindings_are_returned_as_they_were_written():
    acls = {allow(host="0:0::1"), allow(host="::1"), allow(host="::0001"), allow(host="10.0.0.0/8")}
    for cidr in (False, True):
        index = AclIndex(acls, cidr=cidr)
        assert len(index) == 4
        assert set(index) == acls
        assert index.hosts() == {"0:0::1", "::1", "::0001", "10.0.0.0/8"}


def test_the_acls_of_one_pattern_are_found_together():
    acls = [
        allow(principal, operation, name)
        for operation in (READ, WRITE)
        for name in ("a", "b", "c")
        for principal in ("User:x", "User:y")
    ]
    patterns = [acl.resource_name for acl in AclIndex(acls).find(AclFilter())]
    assert len(patterns) == 12
    assert sum(one != following for one, following in pairwise(patterns)) == 2


def test_a_match_filter_finds_each_acl_once_even_for_the_name_star():
    acls = [allow(name="*"), allow(name="*", pattern_type=PREFIXED)]
    found = list(AclIndex(acls).find(AclFilter(resource_name="*", pattern_type=PatternType.MATCH)))
    assert sorted(found) == sorted(acls)


def test_a_filter_for_the_wildcard_principal_finds_only_its_own_acls():
    index = AclIndex([allow(), allow("User:*"), deny("User:*")])
    assert set(index.find(AclFilter(principal="User:*"))) == {allow("User:*"), deny("User:*")}


@pytest.mark.thorough
def test_d7_a_million_acls_are_indexed_and_decided_over():
    index = AclIndex()
    for number in range(100_000):
        pattern_type = PREFIXED if number % 5 == 0 else LITERAL
        for user in range(10):
            index.add(
                AclBinding(
                    TOPIC,
                    f"team-{number:06}",
                    pattern_type,
                    f"User:u{user}",
                    "*",
                    READ,
                    AclPermission.ALLOW,
                )
            )
    assert len(index) == 1_000_000
    assert index.masks((("User:u3",), HERE), TOPIC, "team-099999") == (1 << READ, 0, True)
    assert index.masks((("User:u3",), HERE), TOPIC, "team-099995-x") == (1 << READ, 0, True)
    assert index.masks((("User:u3",), HERE), TOPIC, "team-099999-x") == (0, 0, False)
    assert index.masks((("User:x",), HERE), TOPIC, "team-000001") == (0, 0, True)
    found = index.find(AclFilter(resource_name="team-000005-x", pattern_type=PatternType.MATCH))
    assert len(list(found)) == 10
