"""Our broker answers as the recording of a real Kafka 4.3.0 says, but for what is meant."""

import json
from pathlib import Path
from typing import Any

import pytest

from aclbroker.conformance.divergences import DIVERGENCES
from aclbroker.conformance.recording import packaged_recording
from tests.conformance_tool.examples import CATALOG, OF_TOKENS, command_config, conformance, to
from tests.conftest import StartBroker
from tests.support.broker import Broker


def compared(broker: Broker, directory: Path, *apis: str) -> tuple[int, dict[str, Any]]:
    """The exit status of a comparison with Kafka's recording, and its report."""
    report = directory / "report.json"
    server = to(broker.listeners["SASL_PLAINTEXT"], command_config(directory))
    chosen = [word for name in apis for word in ("--api", name)]
    options: list[str | Path] = ["--yes", "--format", "json", "--output", report]
    ended = conformance("compare", *server, *chosen, *options)
    assert ended.returncode in {0, 1}, ended.stderr
    return ended.returncode, json.loads(report.read_text())


WITH_TOKENS = "tokens switched on"


def test_our_broker_authorizes_as_kafka_does(start_broker: StartBroker, tmp_path: Path):
    status, report = compared(start_broker(CATALOG), tmp_path)
    print(f"{report['steps']} steps compared, {report['different']} differ")
    assert report["differences"] == []
    assert status == 0
    assert report["steps"] == len(packaged_recording().answers)
    # A divergence that no longer occurs would hide one that comes back.
    meant = {each.name for each in DIVERGENCES} - {"anonymous super user", WITH_TOKENS}
    assert report["divergences"].keys() == meant


def test_our_broker_with_delegation_tokens_authorizes_as_kafka_does(
    start_broker: StartBroker, tmp_path: Path
):
    broker = start_broker(CATALOG | {"delegation.token.secret.key": "not-told-to-anybody"})
    status, report = compared(broker, tmp_path, *OF_TOKENS)
    assert (status, report["differences"]) == (0, [])
    assert WITH_TOKENS in report["divergences"]


@pytest.mark.thorough
def test_a_broker_that_authorizes_by_the_documentation_differs(
    start_broker: StartBroker, tmp_path: Path
):
    broker = start_broker(CATALOG | {"aclbroker.gate.profile": "documented"})
    status, report = compared(broker, tmp_path)
    assert status == 1
    assert {each["key"] for each in report["differences"]} == {
        "DELETE_TOPICS",
        "ELECT_LEADERS",
        "INIT_PRODUCER_ID",
        "PRODUCE",
        "WRITE_TXN_MARKERS",
    }
