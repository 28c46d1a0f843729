"""A real Kafka 4.3.0 answers as the recording that is checked in says."""

import json
from pathlib import Path

import pytest

from aclbroker.conformance.comparison import compare
from aclbroker.conformance.recording import load, packaged_recording
from tests.conformance_tool.examples import OF_TOKENS, command_config, conformance, to
from tests.support.kafka import Kafka

pytestmark = pytest.mark.thorough


def test_kafka_answers_as_recorded(kafka: Kafka, tmp_path: Path):
    file = tmp_path / "recording.json.gz"
    server = to(kafka.listeners["SASL_PLAINTEXT"], command_config(tmp_path))
    ended = conformance("record", *server, "--yes", "--output", file)
    assert ended.returncode == 0, ended.stderr
    recorded, actual = packaged_recording(), load(file)
    assert actual.offered == recorded.offered
    results = compare(recorded, actual)
    assert [result for result in results if not result.passed or result.explained] == []
    assert len(results) == len(recorded.answers) == len(actual.answers)


def test_a_kafka_with_delegation_tokens_compares_equal(tmp_path: Path):
    kafka = Kafka(tmp_path, overrides={"delegation.token.secret.key": "not-told-to-anybody"})
    try:
        kafka.start()
        server = to(kafka.listeners["SASL_PLAINTEXT"], command_config(tmp_path))
        report = tmp_path / "report.json"
        apis = [word for name in OF_TOKENS for word in ("--api", name)]
        options: list[str | Path] = ["--yes", "--format", "json", "--output", report]
        ended = conformance("compare", *server, *apis, *options)
        assert ended.returncode == 0, ended.stderr + report.read_text()[-2000:]
        assert json.loads(report.read_text())["divergences"].keys() == {"tokens switched on"}
    finally:
        kafka.terminate(60)
