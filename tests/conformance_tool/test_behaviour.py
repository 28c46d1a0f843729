"""What stories about topics, records, groups and transactions are answered."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from aclbroker.conformance.behaviour.comparison import compare
from aclbroker.conformance.behaviour.divergences import DIVERGENCES
from aclbroker.conformance.behaviour.roles import ROLES
from aclbroker.conformance.behaviour.shown import Names, shown
from aclbroker.conformance.behaviour.stories import STORIES
from aclbroker.conformance.comparison import Result
from aclbroker.conformance.outline import Outline, without_answer
from aclbroker.conformance.recording import (
    BEHAVIOUR,
    Recording,
    Step,
    load,
    packaged_recording,
)
from aclbroker.protocol.messages import ApiKey, fetch
from aclbroker.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from tests.conformance_tool.examples import answered, command_config, conformance, recording, to
from tests.conftest import StartBroker
from tests.memory.records import batch as batch_of
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import running_kafka

MEMORY: Final = {
    "aclbroker.cluster": "memory",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
}
AS_RECORDED: Final = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
}
"""The settings of the Kafka of the recording."""

TIMES: Final = 3

SAME_MESSAGES: Final = frozenset(
    (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.DESCRIBE_GROUPS)
)
"""The keys whose error messages are Kafka's in all stories."""


def recorded_of(address: str, directory: Path) -> Recording:
    """What a broker answers to the stories."""
    file = directory / "recording.json.gz"
    server = to(address, command_config(directory))
    ended = conformance("record", *server, "--suite", "behaviour", "--yes", "--output", file)
    assert ended.returncode == 0, ended.stderr
    return load(file)


@pytest.fixture(scope="module")
def our_recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("broker")
    broker = ThreadBroker(directory, MEMORY)
    broker.start()
    try:
        return recorded_of(broker.listeners["SASL_PLAINTEXT"], directory)
    finally:
        broker.terminate()


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_kafka_answers_as_recorded(tmp_path: Path):
    # What a Kafka lists of groups is what its log has committed, which can be a moment late: an
    # answer is another one only if it is so each time.
    always: dict[Step, Result] | None = None
    for number in range(TIMES):
        directory = tmp_path / str(number)
        directory.mkdir()
        with running_kafka(directory, AS_RECORDED) as kafka:
            actual = recorded_of(kafka.listeners["SASL_PLAINTEXT"], directory)
        recorded = packaged_recording(BEHAVIOUR)
        results = compare(recorded, actual)
        assert len(results) == len(recorded.answers) == len(actual.answers)
        others = {each.step: each for each in results if not each.passed or each.explained}
        always = (
            others
            if always is None
            else {step: each for step, each in others.items() if step in always}
        )
        if not always:
            return
    assert always == {}


def test_our_broker_answers_as_kafka_does(our_recording: Recording):
    recorded = packaged_recording(BEHAVIOUR)
    results = compare(recorded, our_recording)
    print(f"{len(results)} steps compared")
    assert [result for result in results if not result.passed] == []
    assert our_recording.answers.keys() == recorded.answers.keys()
    # A divergence that no longer occurs would hide one that comes back.
    meant = {each.name for each in DIVERGENCES}
    assert {name for result in results for name in result.explained} == meant


def test_errors_about_groups_and_internal_topics_have_kafkas_messages(our_recording: Recording):
    recorded, ours = (
        {
            step: _messages(answer)
            for step, answer in recording.answers.items()
            if step.key in SAME_MESSAGES or step.label.startswith("internal topics:")
        }
        for recording in (packaged_recording(BEHAVIOUR), our_recording)
    )
    assert ours == recorded
    assert len({str(messages) for messages in recorded.values()}) > 20


def _messages(answer: Outline) -> dict[str, list[str]]:
    """The error messages by path, without those of refusals: ours name the missing right."""
    return {
        path: messages
        for path, messages in answer.told.items()
        if answer.fields[f"{path.removesuffix('message')}code"] not in (29, 30)
    }


def test_a_broker_that_keeps_no_records_differs(start_broker: StartBroker, tmp_path: Path):
    server = to(start_broker().listeners["SASL_PLAINTEXT"], command_config(tmp_path))
    ended = conformance("compare", *server, "--suite", "behaviour", "--yes")
    assert ended.returncode == 2
    assert "aclbroker conformance: a topic cannot be created: 44: " in ended.stderr


def test_a_recording_of_the_other_suite_ends_it_before_anything_is_done(tmp_path: Path):
    file = Path("src/aclbroker/conformance/recordings/kafka-4.3.0.json.gz")
    ended = conformance(
        *("compare", *to("127.0.0.1:1", command_config(tmp_path)), "--yes"),
        *("--suite", "behaviour", "--recording", file),
    )
    assert ended.returncode == 2
    assert "is a recording of the suite authorization, not of behaviour" in ended.stderr


def test_each_story_and_each_role_is_recorded():
    answers = packaged_recording(BEHAVIOUR).answers
    told = {(step.label.partition(":")[0], step.role) for step in answers}
    wanted = {(story.name, role.name) for story in STORIES for role in ROLES if role.tells(story)}
    # What sessions of fetches there are is a matter of versions that the lowest has not.
    assert wanted - told == {("sessions of fetches", "old-owner")}
    assert told <= wanted


def test_no_code_in_the_recording_can_be_altered_unnoticed():
    recorded = packaged_recording(BEHAVIOUR)
    for step, answer in recorded.answers.items():
        for path, value in answer.fields.items():
            if path.endswith("error_code"):
                fields = answer.fields | {path: value + 1}
                altered = recorded._replace(answers={step: answer._replace(fields=fields)})
                one = recorded._replace(answers={step: answer})
                [result] = compare(one, altered)
                assert result.unexplained or result.explained


def test_a_version_that_the_other_broker_lacks_is_a_difference_unless_it_is_told_not_to_be():
    lower, higher = (Step(ApiKey.FETCH, "a story: 01", version, "owner") for version in (11, 18))
    recorded = recording({higher: answered(fields={"error_code": 0})})
    actual = recording({lower: answered(fields={"error_code": 1})})
    [result] = compare(recorded, actual)
    assert (result.step, str(result.unexplained[0])) == (
        higher,
        ": recorded answered, is not offered",
    )
    assert compare(recorded, actual, offered_only=True) == []


def test_a_step_that_is_not_recorded_or_not_answered_alike_is_a_difference():
    one = Step(ApiKey.FETCH, "a story: 01", 12, "owner")
    known, none = recording({one: answered(fields={"a": 1, "b": 2})}), recording({})
    for recorded, actual, told in (
        (none, known, ": recorded not recorded, is answered"),
        (known, recording({one: without_answer("closed")}), ": recorded answered, is closed"),
        (known, recording({one: answered(fields={"b": 2})}), "a: recorded 1, is missing"),
    ):
        [result] = compare(recorded, actual)
        assert list(map(str, result.unexplained)) == [told]


def test_what_is_different_each_time_is_shown_by_a_name():
    names = Names("conformance-1-")
    names.call(b"x" * 16, "id of orders")
    names.call(5, "producer")
    names.call("consumer-77", "member")
    batch = batch_of(b"a", producer=(5, 0, 0))
    data = fetch.PartitionData(0, records=batch + batch[:-1])
    answer = fetch.FetchResponse(
        session_id=4711,
        responses=[fetch.FetchableTopicResponse(topic_id=b"x" * 16, partitions=[data])],
    )
    fields = shown(ApiKey.FETCH, 18, answer, names).fields
    assert fields["session_id"] == "<session>"
    [line] = fields["responses[<id of orders>].partitions[0].records"]
    assert "producer <producer> 0 from 0: 1 records" in line
    assert names.of("conformance-1-orders of consumer-77") == "orders of <member>"
    assert names.of_number("transaction_start_time_ms", 1_800_000_000_000) == "<now>"
    assert names.of_number("leader_id", 3) == "<node>"


def test_groups_of_others_are_not_shown_in_a_list():
    names = Names("conformance-1-")
    listed = [ListedGroup(each) for each in ("conformance-1-group", "conformance-2-group", "mine")]
    fields = shown(ApiKey.LIST_GROUPS, 5, ListGroupsResponse(groups=listed), names).fields
    assert fields["groups"] == 1
    assert fields["groups[group].group_id"] == "group"
