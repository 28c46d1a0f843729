"""docs/conformance.md says what the tool does."""

from pathlib import Path

import pytest

from aclbroker.broker.conformance.behaviour import divergences as of_behaviour
from aclbroker.broker.conformance.behaviour.roles import ROLES as ROLES_OF_BEHAVIOUR
from aclbroker.broker.conformance.codes import REFUSALS
from aclbroker.broker.conformance.corpus import corpus
from aclbroker.broker.conformance.divergences import DIVERGENCES, Divergence
from aclbroker.broker.conformance.resources import TopicIds
from aclbroker.broker.conformance.roles import ROLES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()


ALL_DIVERGENCES = (*DIVERGENCES, *of_behaviour.DIVERGENCES)


@pytest.mark.parametrize("divergence", ALL_DIVERGENCES, ids=lambda each: each.name)
def test_each_divergence_is_documented_with_its_reason(divergence: Divergence):
    assert f"| {divergence.name} | {divergence.reason} |" in DOCUMENT


@pytest.mark.parametrize("name", [each.name for each in (*ROLES, *ROLES_OF_BEHAVIOUR)])
def test_each_role_is_documented(name: str):
    assert f"`{name}`" in DOCUMENT.partition("| role | ACLs |")[2]


def test_each_code_that_a_case_names_is_documented():
    named = {code for case in corpus(TopicIds({})) for code in case.codes}
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, named))


def test_each_code_that_refuses_is_documented():
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, REFUSALS))
