"""docs/conformance.md says what the tool does."""

from pathlib import Path

import pytest

from aclbroker.broker.conformance.codes import REFUSALS
from aclbroker.broker.conformance.corpus import corpus
from aclbroker.broker.conformance.divergences import DIVERGENCES, Divergence
from aclbroker.broker.conformance.resources import TopicIds
from aclbroker.broker.conformance.roles import ROLES, Role

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=lambda each: each.name)
def test_each_divergence_is_documented_with_its_reason(divergence: Divergence):
    assert f"| {divergence.name} | {divergence.reason} |" in DOCUMENT


@pytest.mark.parametrize("role", ROLES, ids=lambda each: each.name)
def test_each_role_is_documented(role: Role):
    assert f"`{role.name}`" in DOCUMENT.partition("| role | ACLs |")[2]


def test_each_code_that_a_case_names_is_documented():
    named = {code for case in corpus(TopicIds({})) for code in case.codes}
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, named))


def test_each_code_that_refuses_is_documented():
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, REFUSALS))
