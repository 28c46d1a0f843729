"""docs/conformance.md says what the tool does."""

from pathlib import Path

from aclbroker.conformance.behaviour import divergences as of_behaviour
from aclbroker.conformance.behaviour.roles import ROLES as ROLES_OF_BEHAVIOUR
from aclbroker.conformance.codes import REFUSALS
from aclbroker.conformance.corpus import corpus
from aclbroker.conformance.divergences import DIVERGENCES
from aclbroker.conformance.resources import TopicIds
from aclbroker.conformance.roles import ROLES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()


ALL_DIVERGENCES = (*DIVERGENCES, *of_behaviour.DIVERGENCES)


def test_each_divergence_is_documented_with_its_reason():
    rows = [f"| {each.name} | {each.reason} |" for each in ALL_DIVERGENCES]
    assert [row for row in rows if row not in DOCUMENT] == []


def test_each_role_is_documented():
    documented = DOCUMENT.partition("| role | ACLs |")[2]
    names = [each.name for each in (*ROLES, *ROLES_OF_BEHAVIOUR)]
    assert [name for name in names if f"`{name}`" not in documented] == []


def test_each_code_that_a_case_names_is_documented():
    named = {code for case in corpus(TopicIds({})) for code in case.codes}
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, named))


def test_each_code_that_refuses_is_documented():
    rule = DOCUMENT.partition("1. **Codes that refuse**")[2].partition("\n2. ")[0]
    assert all(code in rule.replace(",", "").split() for code in map(str, REFUSALS))
