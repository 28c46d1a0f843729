"""The groups that an access token names."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.broker.auth.sasl.access_token import TokenRules
from tests.auth.test_access_token import RSA, RULES, payload, refusal, validator
from tests.support.access_tokens import token

WITH_GROUPS: TokenRules = RULES._replace(groups_claim_name="roles")


def groups(**claims: Any) -> tuple[str, ...]:
    return validator(rules=WITH_GROUPS).validate(token(RSA, payload(**claims))).groups


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        (["staff", "/eu/payments"], ("Group:/eu/payments", "Group:staff")),
        ("staff", ("Group:staff",)),
        ("staff eu", ("Group:staff eu",)),
        (["a", "a"], ("Group:a",)),
        (
            ["Group:x", "User:alice", " a, b "],
            ("Group: a, b ", "Group:Group:x", "Group:User:alice"),
        ),
        ([], ()),
        ([f"g{number:04}" for number in range(1_000)], None),
    ],
)
def test_the_claim_is_a_list_of_groups_or_one(claim: Any, found: tuple[str, ...] | None) -> None:
    assert groups(roles=claim) == (found or tuple(f"Group:{each}" for each in claim))


def test_a_token_without_the_claim_and_a_listener_without_the_setting_know_no_groups() -> None:
    assert groups() == ()
    assert groups(groups=["staff"], realm_access={"roles": ["staff"]}) == ()
    assert validator().validate(token(RSA, payload(roles=["staff"]))).groups == ()
    # Nobody looks at the claim that is not asked for.
    assert validator().validate(token(RSA, payload(roles=5))).groups == ()


def test_null_is_as_if_the_claim_were_not_there() -> None:
    assert (
        validator(rules=WITH_GROUPS).validate(token(RSA, payload() | {"roles": None})).groups == ()
    )


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (5, "is not a string or an array of strings"),
        (True, "is not a string or an array of strings"),
        ({"a": "b"}, "is not a string or an array of strings"),
        (["secret", 5], "entry 2: not a string"),
        (["secret", None], "entry 2: not a string"),
        (["secret", ["secret"]], "entry 2: not a string"),
        ("", "entry 1: the name of a group is empty"),
        (["secret", "secret" * 50], "entry 2: the name of a group has 300 characters"),
        (["secret\nline"], "entry 1: the name of a group has a control character"),
        (["\ud83e"], "half of a surrogate pair"),
        (["*"], "a group cannot have the name *"),
        (["secret"] * 1_001, "has 1,001 groups; 1,000 are allowed"),
        (["g" * 100] * 10_000, "has 10,000 groups; 1,000 are allowed"),
    ],
)
def test_a_claim_that_cannot_be_taken_whole_refuses_the_token_and_is_not_repeated(
    claim: Any, problem: str
) -> None:
    reason = refusal(token(RSA, payload(roles=claim)), rules=WITH_GROUPS)
    assert reason.startswith("the groups claim 'roles'")
    assert problem in reason
    assert "secret" not in reason


def test_a_token_whose_groups_the_issuer_left_out_is_refused() -> None:
    elsewhere = {"_claim_names": {"roles": "src1"}, "_claim_sources": {"src1": {"endpoint": "x"}}}
    reason = refusal(token(RSA, payload(**elsewhere)), rules=WITH_GROUPS)
    assert reason == "the groups claim 'roles' was left out by the issuer, as _claim_names tells"
    assert groups(_claim_names={"other": "src1"}) == ()
    assert groups(_claim_names="roles") == ()
