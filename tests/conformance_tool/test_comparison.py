"""Whole recordings compared: what passes, and that nothing altered goes unnoticed."""

import random
from collections.abc import Iterator

import pytest

from aclbroker.conformance.comparison import compare
from aclbroker.conformance.outline import CLOSED, Outline, without_answer
from aclbroker.conformance.recording import Recording, Step, dumps, loads, packaged_recording
from aclbroker.conformance.resources import topic
from aclbroker.protocol.messages import ApiKey
from tests.conformance_tool.examples import PATH, answered, recording, step

REFUSED, ALLOWED = answered({PATH: 29}), answered({PATH: 0})
SEED = 4_003_000


@pytest.fixture(scope="module")
def kafka() -> Recording:
    return packaged_recording()


def altered(outline: Outline, path: str, code: int | None) -> Outline:
    codes = outline.codes | {path: code}
    return outline._replace(codes={each: c for each, c in codes.items() if c is not None})


def one_step(kafka: Recording, place: Step, outline: Outline) -> Recording:
    return Recording(kafka.broker, kafka.offered, {place: outline})


def distinct(kafka: Recording) -> Iterator[tuple[Step, Outline]]:
    """One step for each outline of each key."""
    seen = set()
    for place, outline in kafka.answers.items():
        mark = (place.key, repr(outline))
        if mark not in seen:
            seen.add(mark)
            yield place, outline


def test_a_recording_equals_itself(kafka: Recording):
    results = compare(kafka, kafka)
    assert len(results) == len(kafka.answers)
    assert all(result.passed and not result.explained for result in results)


@pytest.mark.parametrize(
    "change",
    [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in (31, None))],
)
def test_every_refusal_that_kafka_gave_is_missed_when_it_is_altered(
    kafka: Recording, change: int | None
):
    tried = 0
    for place, outline in distinct(kafka):
        actual = one_step(kafka, place, outline)
        for path, code in outline.codes.items():
            if code in {29, 30, 31, 53} - {change}:
                before = one_step(kafka, place, altered(outline, path, change))
                assert not compare(before, actual)[0].passed, (place, path)
                tried += 1
    assert tried > 2_000


@pytest.mark.thorough
def test_everything_that_kafka_allowed_is_missed_when_it_is_altered_to_a_refusal(
    kafka: Recording,
):
    for place, outline in distinct(kafka):
        actual = one_step(kafka, place, outline)
        for path, code in outline.codes.items():
            if code not in {29, 30, 31, 53}:
                before = one_step(kafka, place, altered(outline, path, 29))
                assert not compare(before, actual)[0].passed, (place, path)


def test_a_file_with_one_code_altered_differs_in_that_step_only(kafka: Recording, every_case: bool):
    chosen = random.Random(SEED)
    refusing = [p for p, o in kafka.answers.items() if {29, 30, 31, 53} & set(o.codes.values())]
    for place in chosen.sample(refusing, 10 if every_case else 2):
        outline = kafka.answers[place]
        path = chosen.choice([p for p, code in outline.codes.items() if code in {29, 30, 31, 53}])
        answers = kafka.answers | {place: altered(outline, path, 0)}
        results = compare(loads(dumps(kafka._replace(answers=answers))), kafka)
        assert [result.step for result in results if not result.passed] == [place]


def test_a_name_that_is_listed_too_many_is_noticed(kafka: Recording):
    place = step(ApiKey.METADATA, "of all topics", 12, "none")
    everything = kafka.answers[place._replace(role="super")].names
    assert kafka.answers[place].names == {"topics": []}
    answers = kafka.answers | {place: kafka.answers[place]._replace(names=everything)}
    results = compare(kafka, kafka._replace(answers=answers))
    assert [result.step for result in results if not result.passed] == [place]


def test_versions_that_the_recorded_broker_does_not_offer_are_left_out():
    ours = recording({step(version=12): REFUSED, step(version=13): REFUSED})
    assert [r.step.version for r in compare(recording({step(): REFUSED}), ours)] == [12]


def test_a_version_that_the_broker_does_not_offer_is_a_difference_unless_it_is_allowed():
    kafka = recording({step(): REFUSED})
    less = Recording("less", {ApiKey.METADATA: range(12)}, {})
    [result] = compare(kafka, less)
    assert [str(each) for each in result.unexplained] == [": recorded answered, is not offered"]
    assert compare(kafka, less, offered_only=True) == []


def test_a_case_that_was_sent_though_its_key_is_not_offered_is_compared():
    kafka, ours = (Recording(n, {}, {step(): o}) for n, o in (("k", ALLOWED), ("o", REFUSED)))
    [result] = compare(kafka, ours)
    assert [str(each) for each in result.unexplained] == [f"{PATH}: recorded 0, is 29"]


def test_no_message_of_kafka_tells_a_name_that_its_request_does_not_have(kafka: Recording):
    assert not any(outline.told for outline in kafka.answers.values())


def test_a_field_beside_a_refusal_of_kafka_is_missed_when_it_is_altered(kafka: Recording):
    place = step(ApiKey.OFFSET_FETCH, "of each topic in 'conformance-group-closed'", 1, "none")
    outline = kafka.answers[place]
    path = next(path for path in outline.fields if path.endswith("committed_offset"))
    changed = outline._replace(fields=outline.fields | {path: 0})
    [result] = compare(one_step(kafka, place, outline), one_step(kafka, place, changed))
    assert [str(each) for each in result.unexplained] == [f"{path}: recorded -1, is 0"]


def test_the_id_of_a_refused_topic_may_be_left_out_and_nothing_else_of_it():
    place = step(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "in 'a'", 0)
    name, end = topic("closed"), "partitions[0].error_code"
    told = answered({f"responses[{name}#{name}].{end}": 29})
    hidden = answered({f"responses[{name}].{end}": 29})
    kafka, ours = recording({place: told}), recording({place: hidden})
    [result] = compare(kafka, ours)
    assert (result.passed, result.explained) == (True, ("d10 refused topic ids",))
    assert not compare(ours, kafka)[0].passed


def test_a_key_that_the_broker_does_not_offer_is_a_difference():
    [result] = compare(recording({step(): REFUSED}), Recording("none", {}, {}))
    assert not result.passed


def test_a_case_that_one_recording_lacks_is_a_difference():
    both, one = recording({step(): REFUSED}), recording({})
    less = one._replace(offered=both.offered)
    assert [str(d) for d in compare(both, less)[0].unexplained] == [
        ": recorded answered, is not sent"
    ]
    assert [str(d) for d in compare(less, both)[0].unexplained] == [
        ": recorded not recorded, is answered"
    ]


def test_what_is_meant_to_differ_passes_by_its_name():
    place = step(ApiKey.PRODUCE, "to each topic", 2)
    kafka, ours = recording({place: without_answer(CLOSED)}), recording({place: ALLOWED})
    [result] = compare(kafka, ours)
    assert (result.passed, result.explained) == (True, ("produce 0-2",))
    assert not compare(ours, kafka)[0].passed


def test_the_same_difference_elsewhere_does_not_pass():
    place = step(ApiKey.PRODUCE, "to each topic", 3)
    kafka, ours = recording({place: without_answer(CLOSED)}), recording({place: ALLOWED})
    assert not compare(kafka, ours)[0].passed


@pytest.mark.parametrize(("role", "passes"), [("super", True), ("none", False)])
def test_a_super_user_without_a_login_may_not_ask_about_tokens(role: str, passes: bool):
    place = step(ApiKey.DESCRIBE_DELEGATION_TOKEN, "of all owners", 3, role)
    kafka = recording({place: answered({"error_code": 61})})
    ours = recording({place: answered({"error_code": 64})})
    assert compare(kafka, ours)[0].passed == passes
