"""The index and the authorizer do what the model of tests/model.py does, for any ACLs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Action, RuleKind
from aclbroker.acl.bindings import AclOperation, AclPermission
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import supported_operations
from tests import model
from tests.acl.strategies import (
    OPERATIONS,
    RESOURCE_TYPES,
    bindings,
    changes,
    filters_near,
    names,
    sessions,
)
from tests.support.tables import examples

many = settings(max_examples=examples(500), deadline=None)

operations = st.sampled_from(OPERATIONS)
resource_types = st.sampled_from(RESOURCE_TYPES)
super_users = st.sampled_from([(), ("User:bob",), ("User:*",)])


def changed(steps, cidr):
    """The index and the plain set after the same changes."""
    index, plain = AclIndex(cidr=cidr), set()
    for is_added, binding in steps:
        if is_added:
            assert index.add(binding) == (binding not in plain)
            plain.add(binding)
        else:
            assert index.remove(binding) == (binding in plain)
            plain.discard(binding)
    return index, plain


@many
@given(changes, st.booleans(), bindings)
def test_the_index_is_a_set_of_bindings(steps, cidr, other):
    index, plain = changed(steps, cidr)
    assert len(index) == len(plain)
    assert sorted(index) == sorted(plain)
    assert (other in index) == (other in plain)
    assert index.hosts() == {binding.host for binding in plain}


@many
@given(changes, st.data())
def test_a_filter_finds_each_binding_that_it_matches_once(steps, data):
    index, plain = changed(steps, cidr=False)
    acl_filter = data.draw(filters_near([binding for _, binding in steps]))
    assert sorted(index.find(acl_filter)) == sorted(filter(acl_filter.matches, plain))


@many
@given(changes, st.booleans(), sessions, operations, resource_types, names, super_users,
       st.booleans())  # fmt: skip
def test_a_decision_is_the_models(
    steps, cidr, session, operation, resource_type, name, supers, default
):
    index, plain = changed(steps, cidr)
    decision = StandardAuthorizerData(index, supers, default).decide(
        session, Action(operation, resource_type, name)
    )
    request = (session.principals, session.host, operation, resource_type, name)
    assert decision.allowed == model.authorize(
        plain, *request, super_users=supers, allow_if_no_acl=default, cidr=cidr
    )
    kind, binding = decision.rule
    assert (binding is not None) == (kind is RuleKind.MATCHING_ACL)
    if binding is not None:
        assert binding in plain
        assert decision.allowed == (binding.permission == AclPermission.ALLOW)
        if decision.allowed:
            assert model.authorize([binding], *request, cidr=cidr)
        else:
            same = binding._replace(permission=AclPermission.ALLOW, operation=operation)
            assert model.authorize([same], *request, cidr=cidr)
            assert binding.operation in (operation, AclOperation.ALL)


@many
@given(changes, st.booleans(), sessions, operations, resource_types, super_users, st.booleans())
def test_authorize_by_type_is_the_models(
    steps, cidr, session, operation, resource_type, supers, default
):
    index, plain = changed(steps, cidr)
    core = StandardAuthorizerData(index, supers, default)
    assert core.authorize_by_resource_type(session, operation, resource_type).allowed == (
        model.authorize_by_type(
            plain,
            session.principals,
            session.host,
            operation,
            resource_type,
            super_users=supers,
            allow_if_no_acl=default,
            cidr=cidr,
        )
    )


@many
@given(changes, sessions, resource_types, names, super_users, st.booleans())
def test_authorized_operations_are_one_decision_each(
    steps, session, resource_type, name, supers, default
):
    core = StandardAuthorizerData(changed(steps, cidr=True)[0], supers, default)
    decided = sum(
        1 << operation
        for operation in supported_operations(resource_type)
        if core.decide(session, Action(operation, resource_type, name)).allowed
    )
    assert core.authorized_operations(session, resource_type, name) == decided


@many
@given(changes, sessions, operations, resource_types, names)
def test_several_principals_are_denied_if_one_is_and_allowed_if_one_is(
    steps, session, operation, resource_type, name
):
    core = StandardAuthorizerData(changed(steps, cidr=False)[0])

    def kinds(principals):
        each = type(session)(principals, session.host, session.listener)
        decision = core.decide(each, Action(operation, resource_type, name))
        return decision.allowed, decision.rule.kind

    alone = [kinds((principal,)) for principal in session.principals]
    if (False, RuleKind.MATCHING_ACL) in alone:
        assert not kinds(session.principals)[0]
    else:
        assert kinds(session.principals)[0] == any(is_allowed for is_allowed, _ in alone)
