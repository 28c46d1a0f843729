"""How two sets of rules differ, as sets."""

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.difference import Change, difference, setting_differences
from tests.acl.examples import PREFIXED, WRITE, allow, deny
from tests.acl.strategies import bindings

acl_sets = st.lists(bindings, max_size=15)


def acls(*given_acls, **settings):
    return Ruleset(**settings).with_acls(given_acls)


@given(acl_sets, acl_sets)
def test_the_difference_leads_from_one_set_to_the_other(before, after):
    found = difference(acls(*before), acls(*after))
    result = (set(before) - set(found.removed)) | set(found.added)
    assert not difference(acls(*result), acls(*after)).added
    assert not difference(acls(*result), acls(*after)).removed
    assert set(found.removed) <= set(before) - set(after)
    assert set(found.added) <= set(after) - set(before)


@given(acl_sets, acl_sets)
def test_a_change_is_of_one_acl_that_went_and_one_that_came(before, after):
    found = difference(acls(*before), acls(*after))
    for at, side in ((1, found.removed), (2, found.added)):
        paired = [change[at] for change in found.changed]
        assert len(paired) == len(set(paired))
        assert set(paired) <= set(side)
    for change in found.changed:
        differing = [name for name in change.before._fields if _differs(name, change)]
        assert differing == [change.field]


def _differs(name, change):
    return getattr(change.before, name) != getattr(change.after, name)


@given(acl_sets, acl_sets)
def test_counts_by_principal_add_up(before, after):
    found = difference(acls(*before), acls(*after))
    counts = found.by_principal()
    assert sum(removed for _, removed, _ in counts) == len(found.removed)
    assert sum(added for _, _, added in counts) == len(found.added)


def test_the_same_address_written_otherwise_is_no_difference():
    assert difference(acls(allow(host="::1")), acls(allow(host="0:0:0:0:0:0:0:1"))).added == ()


def test_the_same_subnet_written_otherwise_is_no_difference_where_there_are_subnets():
    one, other = allow(host="10.1.2.3/16"), allow(host="10.1.0.0/16")
    assert difference(acls(one, cidr=True), acls(other, cidr=True)).added == ()
    assert difference(acls(one), acls(other)).added == (other,)
    single = acls(allow(host="10.1.2.3/32"), cidr=True)
    assert difference(single, acls(allow(host="10.1.2.3"), cidr=True)).added == ()
    mapped = acls(allow(host="::ffff:10.1.0.0/112"), cidr=True)
    assert difference(mapped, acls(other, cidr=True)).added == ()


def test_what_a_person_would_call_a_change():
    before = acls(allow(), allow(operation=WRITE, host="10.0.0.1"), allow(name="old"))
    after = acls(deny(), allow(operation=WRITE), allow(name="new", pattern_type=PREFIXED))
    found = difference(before, after)
    assert found.changed == (
        Change("permission", allow(), deny()),
        Change("host", allow(operation=WRITE, host="10.0.0.1"), allow(operation=WRITE)),
    )
    assert len(found.removed) == len(found.added) == 3
    assert found.by_principal() == [("User:alice", 3, 3)]


def test_settings_that_differ_are_told_with_their_values():
    before = Ruleset(super_users=frozenset(["User:b", "User:a"]))
    after = Ruleset(
        broker_users=BrokerUsers(frozenset(["User:k"]), "INTERNAL"),
        allow_everyone_if_no_acl_found=True,
        cidr=True,
    )
    assert setting_differences(before, before) == []
    assert setting_differences(before, after) == [
        ("super.users", "User:a;User:b", ""),
        ("broker.users", "", "User:k on INTERNAL"),
        ("allow.everyone.if.no.acl.found", "false", "true"),
        ("subnets as hosts of ACLs", "false", "true"),
    ]
