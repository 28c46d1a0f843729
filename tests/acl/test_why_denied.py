"""What the audit log says of a denial: why, and what would allow it."""

import pytest

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.reasons import AclChange, NearMiss
from aclbroker.acl.why_denied import WhyDenied, why_denied
from tests.acl.examples import (
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

BY_DEFAULT, BY_ACL = RuleKind.DEFAULT_DENY, RuleKind.MATCHING_ACL
HOST = "192.0.2.7"
OWN = allow(host=HOST)
HERE = session(host=HOST)


def why(*acls, kind=BY_DEFAULT, resource=(TOPIC, "orders"), operation=READ, **settings):
    return why_denied(authorizer(*acls, **settings), HERE, kind, operation, resource)


def test_who_is_allowed_nothing_needs_an_acl_of_the_own_host():
    assert why() == WhyDenied([], AclChange((OWN,)))


def test_nothing_would_allow_what_nobody_may():
    assert why(allow(operation=WRITE), kind=RuleKind.RESERVED_TOPIC) == WhyDenied()


def test_what_nearly_allows_is_told_with_what_it_lacks():
    near = allow(operation=WRITE)
    assert why(near).nearest == [(near, "it allows WRITE")]


def test_an_address_is_told_as_acls_are_compared_with_it():
    here = session(host="::ffff:192.0.2.7")
    found = why_denied(authorizer(), here, BY_DEFAULT, READ, (TOPIC, "orders"))
    assert found.change == AclChange((OWN,))


def test_a_denial_is_to_be_removed_and_an_acl_added_if_nothing_allows():
    assert why(deny(), allow(), kind=BY_ACL) == WhyDenied(None, AclChange((), (deny(),)))
    assert why(deny(), kind=BY_ACL) == WhyDenied(None, AclChange((OWN,), (deny(),)))
    assert str(why(deny(), kind=BY_ACL).change) == (
        "remove DENY READ on TOPIC LITERAL orders to User:alice from *; "
        "add ALLOW READ on TOPIC LITERAL orders to User:alice from 192.0.2.7"
    )


def test_it_is_not_guessed_what_would_be_open_without_the_denial():
    is_open = {"allow_everyone_if_no_acl_found": True}
    assert why(deny(), kind=BY_ACL, **is_open) == WhyDenied()
    assert why(deny(), allow(), kind=BY_ACL, **is_open).change == AclChange((), (deny(),))


@pytest.mark.parametrize(
    "acls",
    [
        [allow()],
        [deny(name=name, pattern_type=PREFIXED) for name in ("o", "or", "ord", "orde")],
    ],
    ids=["the denial is gone", "there are many"],
)
def test_of_a_denial_that_cannot_be_told_nothing_is(acls):
    assert why(*acls, kind=BY_ACL) == WhyDenied()


def test_no_acl_is_suggested_for_a_name_that_only_acls_on_all_names_match():
    assert why(resource=(GROUP, "")) == WhyDenied([])
    assert why(deny(name="*"), resource=(TOPIC, ""), kind=BY_ACL) == WhyDenied()


def test_a_group_named_star_is_not_every_group():
    own = allow(name="*", resource_type=GROUP, pattern_type=PREFIXED, host=HOST)
    assert why(resource=(GROUP, "*")).change == AclChange((own,))


def test_what_would_do_on_any_topic_is_no_acl():
    near = allow(operation=WRITE, host="10.0.0.2")
    found = why(near, resource=(TOPIC, None), operation=WRITE)
    assert found == WhyDenied([NearMiss(near, "it is for host 10.0.0.2")])
    assert why(deny(operation=WRITE, name="*"), resource=(TOPIC, None), kind=BY_ACL) == WhyDenied()
