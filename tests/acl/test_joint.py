"""Sets of ACLs that decide together decide as one set of all of them, whatever is changed where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.bindings import AclBinding, AclFilter, ResourcePattern
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.joint import parts_of
from tests.acl.examples import LITERAL, READ, TOPIC, allow, allowed, deny
from tests.acl.strategies import OPERATIONS, RESOURCE_TYPES, bindings, names, sessions

ORDERS = ResourcePattern(TOPIC, LITERAL, "orders")


@pytest.fixture
def joint():
    return AclIndex()


@pytest.fixture
def parts(joint):
    return parts_of(joint, 2)


def test_an_allow_of_either_allows_and_a_denial_of_either_wins(joint, parts):
    core = StandardAuthorizerData(joint)
    own, central = parts
    assert not allowed(core)
    for one, other in ((own, central), (central, own)):
        one.add(allow())
        assert allowed(core)
        other.add(deny())
        assert not allowed(core)
        other.remove(deny())
        assert allowed(core)
        one.remove(allow())
        assert not allowed(core)


def test_of_many_that_are_added_at_once_each_decides(joint, parts):
    own, central = parts
    told: list[AclBinding] = []
    own.watch = told.append
    own.add_all([allow(), allow(name="other")])
    central.add_all([allow(), deny(name="other")])
    assert told == [allow(), allow(name="other")]
    assert set(joint) == {allow(), allow(name="other"), deny(name="other")}
    assert allowed(StandardAuthorizerData(joint))
    assert not allowed(StandardAuthorizerData(joint), name="other")


def test_what_both_have_counts_until_neither_has_it(joint, parts):
    core = StandardAuthorizerData(joint)
    for part in parts:
        assert part.add(allow())
        assert not part.add(allow())
    assert len(joint) == 1
    for part, left in zip(parts, (True, False), strict=True):
        assert part.remove(allow())
        assert not part.remove(allow())
        assert allowed(core) is left


def test_a_resource_is_open_if_no_set_has_acls_of_it(joint, parts):
    core = StandardAuthorizerData(joint, allow_everyone_if_no_acl_found=True)
    assert allowed(core)
    parts[1].add(allow("User:bob"))
    assert not allowed(core)
    parts[1].remove(allow("User:bob"))
    assert allowed(core)


def test_what_one_withholds_is_denied_until_none_does(joint, parts):
    core = StandardAuthorizerData(joint)
    own, central = parts
    central.add(allow())
    own.withhold(ORDERS)
    central.withhold(ORDERS)
    assert not allowed(core)
    own.release(ORDERS)
    assert not allowed(core)
    central.release(ORDERS)
    assert allowed(core)


def test_each_lists_its_own(joint, parts):
    parts[0].add(allow())
    parts[1].add(deny("User:bob"))
    assert list(parts[0].find(AclFilter())) == [allow()]
    assert list(parts[1].find(AclFilter())) == [deny("User:bob")]
    assert set(joint) == {allow(), deny("User:bob")}


def test_who_watches_a_set_is_told_of_its_changes_alone(parts):
    told: list[AclBinding] = []
    parts[0].watch = told.append
    parts[0].add(allow())
    parts[0].add(allow())
    parts[1].add(deny())
    parts[0].remove(allow())
    parts[0].remove(deny())
    assert told == [allow(), allow()]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), bindings), max_size=30),
    sessions,
    st.sampled_from(OPERATIONS),
    st.sampled_from(RESOURCE_TYPES),
    names,
    st.booleans(),
)
def test_all_is_decided_as_by_one_index_of_everything(
    changes, session, operation, resource_type, name, is_open
):
    joint = AclIndex(cidr=True)
    parts = parts_of(joint, 3, cidr=True)
    core = StandardAuthorizerData(joint, allow_everyone_if_no_acl_found=is_open)
    for at, is_added, acl in changes:
        (parts[at].add if is_added else parts[at].remove)(acl)
        together = AclIndex({each for part in parts for each in part}, cidr=True)
        expected = StandardAuthorizerData(together, allow_everyone_if_no_acl_found=is_open)
        asked = session, operation, resource_type, [name]
        [found], [wanted] = core.authorize(*asked), expected.authorize(*asked)
        assert found.allowed is wanted.allowed
        assert set(joint) == set(together)
    assert not core.authorize(session, READ, TOPIC, [None])[0].allowed
