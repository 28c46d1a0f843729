"""What two answers may differ in."""

import pytest

from aclbroker.conformance.outline import CLOSED, NO_ANSWER, Outline, without_answer
from aclbroker.conformance.rules import differences
from aclbroker.protocol.messages import ApiKey
from tests.conformance_tool.examples import PATH, answered


def found(before: Outline, now: Outline, key: ApiKey = ApiKey.METADATA, **comparable: list[str]):
    return [str(each) for each in differences(key, before, now, comparable)]


@pytest.mark.parametrize("code", [29, 30, 31, 53, 54, 65])
def test_a_refusal_on_one_side_is_a_difference(code: int):
    refused, allowed = answered({PATH: code}), answered({PATH: 0})
    assert found(refused, allowed) == [f"{PATH}: recorded {code}, is 0"]
    assert found(allowed, refused) == [f"{PATH}: recorded 0, is {code}"]


def test_two_different_refusals_are_a_difference():
    assert found(answered({PATH: 29}), answered({PATH: 30})) == [f"{PATH}: recorded 29, is 30"]


def test_all_other_codes_are_alike():
    assert found(answered({PATH: 3}), answered({PATH: 0})) == []
    assert found(answered({PATH: 15}), answered({PATH: -1})) == []


def test_an_entry_that_is_refused_must_not_be_missing():
    assert found(answered({PATH: 29}), answered()) == [f"{PATH}: recorded 29, is missing"]
    assert found(answered(), answered({PATH: 29})) == [f"{PATH}: recorded missing, is 29"]


def test_an_entry_that_is_allowed_may_be_missing():
    assert found(answered({PATH: 3}), answered()) == []
    assert found(answered(), answered({PATH: 3})) == []


def test_an_entry_that_is_refused_under_another_name_is_a_difference():
    before, now = answered({"topics[a#a].error_code": 29}), answered({"topics[a].error_code": 29})
    assert len(found(before, now)) == 2


def test_codes_about_tokens_count_in_the_token_apis_only():
    before, now = answered({"error_code": 61}), answered({"error_code": 64})
    assert found(before, now, ApiKey.DESCRIBE_DELEGATION_TOKEN) == [
        "error_code: recorded 61, is 64"
    ]
    assert found(before, now, ApiKey.METADATA) == []


def test_other_authorized_operations_are_a_difference():
    path = "cluster_authorized_operations"
    before, now = answered(operations={path: 0x120}), answered(operations={path: 0x100})
    assert found(before, now) == [f"{path}: recorded 0x120, is 0x100"]


def test_authorized_operations_must_be_told_on_both_sides_or_on_none():
    path = "topics[a].topic_authorized_operations"
    told = answered({PATH: 0}, {path: 0x120})
    assert found(told, answered({PATH: 0})) == [f"{path}: recorded 0x120, is not told"]
    assert found(answered({PATH: 0}), told) == [f"{path}: recorded not told, is 0x120"]


def test_authorized_operations_need_not_be_told_of_what_is_not_there():
    path = "topics[a].topic_authorized_operations"
    told = answered({PATH: 0}, {path: 0x120})
    assert found(told, answered({PATH: 3})) == []


def test_a_name_is_missed_only_where_both_show_it_to_the_super_user():
    before, now = answered(names={"topics": ["a", "b"]}), answered(names={"topics": []})
    assert found(before, now, topics=["a"]) == ["topics[a]: recorded listed, is not listed"]
    assert found(now, before, topics=["a"]) == ["topics[a]: recorded not listed, is listed"]
    assert found(before, now) == []


@pytest.mark.parametrize("outcome", [CLOSED, NO_ANSWER])
def test_no_answer_is_not_like_an_answer(outcome: str):
    assert found(without_answer(outcome), answered()) == [f": recorded {outcome}, is answered"]
    assert found(without_answer(outcome), without_answer(outcome)) == []


def test_a_closed_connection_is_not_like_no_answer():
    assert found(without_answer(CLOSED), without_answer(NO_ANSWER)) != []


def test_a_code_that_the_case_names_is_compared():
    before, now = answered({PATH: 42}, named=[42]), answered({PATH: 3}, named=[42])
    assert found(before, now) == [f"{PATH}: recorded 42, is 3"]
    assert found(before, answered(named=[42])) == [f"{PATH}: recorded 42, is missing"]
    assert found(answered({PATH: 3}, named=[42]), answered({PATH: 0}, named=[42])) == []


def test_a_field_beside_a_refusal_is_compared():
    before, now = ({PATH: 30}, {"topics[a].offset": -1}), ({PATH: 30}, {"topics[a].offset": 0})
    first, second = (answered(codes, fields=fields) for codes, fields in (before, now))
    assert found(first, second) == ["topics[a].offset: recorded -1, is 0"]
    assert found(first, answered({PATH: 30})) == ["topics[a].offset: recorded -1, is missing"]


def test_fields_are_not_compared_where_the_codes_differ():
    before = answered({PATH: 30}, fields={"topics[a].offset": -1})
    assert found(before, answered({PATH: 0})) == [f"{PATH}: recorded 30, is 0"]


def test_a_name_that_a_message_tells_is_a_difference_even_on_both_sides():
    silent, telling = answered({PATH: 29}), answered({PATH: 29}, told={"error_message": ["a"]})
    assert found(silent, telling) == ["error_message: recorded telling no name, is telling a"]
    assert found(telling, telling) == ["error_message: recorded telling a, is telling a"]
    assert found(silent, silent) == []
