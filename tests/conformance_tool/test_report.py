"""What is said of a comparison, in each format."""

import json
from xml.etree import ElementTree

import pytest

from aclbroker.conformance.command import ConformanceOptions, write_report
from aclbroker.conformance.comparison import compare
from aclbroker.conformance.outline import CLOSED, without_answer
from aclbroker.conformance.recording import Recording
from aclbroker.conformance.report import FORMATS
from aclbroker.protocol.messages import ApiKey
from tests.conformance_tool.examples import PATH, answered, recording, step

LABEL = "of <topics> & 'more'"
ALIKE = answered({PATH: 29})
PLACES = [step(label=LABEL, version=version) for version in (10, 11, 12)]
OLD_PRODUCE = step(ApiKey.PRODUCE, "to each topic", 1, "super")
KAFKA = recording({**dict.fromkeys(PLACES, ALIKE), OLD_PRODUCE: without_answer(CLOSED)}, "Kafka 9")
OURS = recording(
    {
        PLACES[0]: ALIKE,
        PLACES[1]: answered({PATH: 0}),
        PLACES[2]: answered({PATH: 0}),
        OLD_PRODUCE: ALIKE,
    }
)


def said(name: str, actual: Recording = OURS) -> str:
    return FORMATS[name](KAFKA.broker, compare(KAFKA, actual))


def test_the_text_counts_by_key_and_role_and_shows_each_difference_once():
    lines = said("text").splitlines()
    assert lines[0].split()[:3] == ["none", "resources", "wildcards"]
    assert lines[1].split()[:3] == ["metadata", "1/2", "-"]
    assert lines[2].split()[0] == "produce"
    assert lines[2].split()[-1] == "1"
    assert f"metadata {LABEL}: role none, version 11, 12" in lines
    assert lines.count(f"    {PATH}: recorded 29, is 0") == 1


def test_the_text_ends_with_what_was_meant_and_the_totals():
    *_, meant, total = said("text").splitlines()
    assert meant.startswith("1 steps differ as meant, produce 0-2: Kafka 4 advertises")
    assert total == "4 steps (API key, case, version, role) compared with Kafka 9: 2 differ."


def test_the_text_does_not_show_more_of_a_long_difference_than_one_can_read():
    codes = {f"topics[{n}].error_code": 29 for n in range(30)}
    place = step()
    results = compare(recording({place: answered(codes)}), recording({place: answered()}))
    lines = FORMATS["text"]("Kafka", results).splitlines()
    assert sum("recorded 29" in line for line in lines) == 8
    assert "    and 22 more" in lines


def test_the_json_has_totals_counts_and_each_difference():
    document = json.loads(said("json"))
    assert (document["recorded"], document["steps"], document["different"]) == ("Kafka 9", 4, 2)
    assert document["divergences"] == {"produce 0-2": 1}
    assert document["keys"]["METADATA"] == {"none": {"passed": 1, "different": 2}}
    assert document["differences"][0] == {
        "key": "METADATA",
        "case": LABEL,
        "version": 11,
        "role": "none",
        "path": PATH,
        "recorded": "29",
        "actual": "0",
    }


def test_the_junit_has_a_suite_for_each_key_and_a_failure_for_what_differs():
    suites = ElementTree.fromstring(said("junit"))
    assert (suites.get("tests"), suites.get("failures")) == ("2", "1")
    metadata, produce = suites
    assert (metadata.get("name"), metadata.get("tests")) == ("METADATA", "1")
    assert (metadata.get("failures"), produce.get("failures")) == ("1", "0")
    [case] = metadata
    assert (case.get("classname"), case.get("name")) == ("METADATA.none", LABEL)
    message = f"v11 {PATH}: recorded 29, is 0; v12 {PATH}: recorded 29, is 0"
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == message


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_say_that_all_is_alike(name: str):
    assert said(name, KAFKA)


@pytest.mark.parametrize(("actual", "status"), [(KAFKA, 0), (OURS, 1)])
def test_the_exit_status_is_0_only_if_there_is_no_unexplained_difference(
    actual: Recording, status: int, tmp_path, capsys: pytest.CaptureFixture[str]
):
    output = tmp_path / "report.json"
    options = ConformanceOptions(
        "compare", "host:1", "file", [], True, str(output), None, "json", False, None
    )
    assert write_report(options, KAFKA, actual) == status
    assert json.loads(output.read_text())["steps"] == 4
    assert write_report(options._replace(output=None, format="text"), KAFKA, actual) == status
    assert "compared with Kafka 9" in capsys.readouterr().out
