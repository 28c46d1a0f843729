"""Which groups a principal is in, and what a group may be called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.groups import LONGEST_NAME, MOST_GROUPS, Groups, invalid_group

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
STAFF = Groups(
    [("staff", ALICE), ("staff", ALICE), ("staff", BOB), ("eu", ALICE), ("staff", ALICE)]
)


def test_a_principal_is_in_the_groups_that_name_it_and_nobody_else_is() -> None:
    assert STAFF.of(ALICE) == ("Group:eu", "Group:staff")
    assert STAFF.of(BOB) == ("Group:staff",)
    for other in (CAROL, "User:Alice", "alice", "Group:staff", "User:*", ""):
        assert STAFF.of(other) == ()
    assert (STAFF.names, len(STAFF)) == (2, 2)


def test_without_memberships_nobody_is_in_a_group() -> None:
    assert Groups().of(ALICE) == ()
    assert Groups().principals((ALICE,)) == (ALICE,)


def test_a_session_has_its_own_principals_first_and_each_group_once() -> None:
    claimed = ("Group:staff", "Group:a")
    found = STAFF.principals(("User:z", ALICE), claimed)
    assert found == ("User:z", ALICE, "Group:a", "Group:eu", "Group:staff")
    session = Session(found, "::1", "SASL_SSL", own=("User:z", ALICE), claimed=claimed)
    assert (session.own, session.peer) == (("User:z", ALICE), (found, "::1"))
    assert Session(found, "::1", "SASL_SSL").own == found
    # What a builder of the user's own has named stays where it is.
    assert STAFF.principals((BOB, "Group:staff"), claimed) == (BOB, "Group:staff", "Group:a")


@given(st.permutations(["a", "b", "c", "d"]), st.permutations(["Group:c", "Group:x", "Group:d"]))
def test_the_order_of_groups_makes_no_difference(names: list[str], claimed: list[str]) -> None:
    found = Groups((name, ALICE) for name in names).principals((ALICE,), claimed)
    assert found == (ALICE, "Group:a", "Group:b", "Group:c", "Group:d", "Group:x")


def test_principals_of_the_same_groups_have_them_in_common() -> None:
    groups = Groups((name, member) for member in (ALICE, BOB) for name in ("a", "b"))
    assert groups.of(ALICE) is groups.of(BOB)


def test_nobody_is_in_more_groups_than_are_allowed() -> None:
    most = [(f"g{number}", ALICE) for number in range(MOST_GROUPS)]
    assert len(Groups([*most, ("other", BOB)]).of(ALICE)) == MOST_GROUPS
    with pytest.raises(ValueError, match=f"'{ALICE}' is in more than 1,000 groups"):
        Groups([*most, ("other", ALICE)])


def test_what_is_forgotten_is_gone() -> None:
    groups = Groups([("staff", ALICE)])
    groups.forget()
    assert groups.of(ALICE) == ()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("g" * (LONGEST_NAME + 1), "has 257 characters; 256 are allowed"),
        ("*", "ACLs of User:* are those for everyone"),
        ("a\nb", "a control character"),
        ("\x7f", "a control character"),
        ("\ud800", "half of a surrogate pair"),
    ],
)
def test_a_name_that_no_group_can_have_is_told_why(name: str, problem: str) -> None:
    assert problem in str(invalid_group(name))


@pytest.mark.parametrize(
    "name",
    ["staff", "/eu/staff", "Group:x", "a, b", " ", "Größe", "\U0001f984", "a\u200bb", "g" * 256],
)
def test_an_acl_can_name_a_group_of_any_other_name(name: str) -> None:
    assert invalid_group(name) is None
    [_, group] = Groups([(name, ALICE)]).principals((ALICE,))
    binding = AclBinding(
        ResourceType.TOPIC,
        "orders",
        PatternType.LITERAL,
        group,
        "*",
        AclOperation.READ,
        AclPermission.ALLOW,
    )
    assert invalid_reason(binding) is None
