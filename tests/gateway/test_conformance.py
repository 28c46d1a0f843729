"""The conformance suites through a gateway, before a Kafka 4.3.0 without an authorizer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance_tool.examples import command_config, conformance, to
from tests.conformance_tool.test_behaviour import AS_RECORDED
from tests.support.broker import Broker
from tests.support.gateway import gateway_before
from tests.support.kafka import Kafka, running_kafka

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

OF_A_FOLLOWER = "by a follower"
"""The case of a Fetch that only brokers send: the gateway refuses it to everybody."""

NOT_OFFERED = "brokers write markers"
"""The stories that need WriteTxnMarkers, which only brokers send."""


@pytest.fixture(scope="module")
def open_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka in which everybody may do everything, with the settings of the recordings."""
    settings = {"authorizer.class.name": "", "super.users": "", **AS_RECORDED}
    with running_kafka(tmp_path_factory.mktemp("kafka"), settings) as running:
        yield running


def differences(gateway: Broker, directory: Path, suite: str) -> list[dict[str, Any]]:
    """Return the steps whose answers differ from the recording of Kafka 4.3.0."""
    report = directory / "report.json"
    server = to(gateway.listeners["SASL_PLAINTEXT"], command_config(directory))
    options = ["--suite", suite, "--yes", "--offered-only", "--format", "json", "--output", report]
    ended = conformance("compare", *server, *map(str, options))
    assert ended.returncode in (0, 1), ended.stderr
    result = json.loads(report.read_text())
    assert result["steps"] > 11_000
    found: list[dict[str, Any]] = result["differences"]
    return found


def test_every_refusal_is_kafkas(kafka: Kafka, tmp_path: Path):
    # In this Kafka the gateway is a super user. As in that of the recording, topics are created.
    gateway = gateway_before(kafka.listeners["PLAINTEXT"], tmp_path)
    try:
        found = differences(gateway, tmp_path, "authorization")
    finally:
        gateway.terminate()
    others = [each for each in found if not _is_after_acks_0(each)]
    assert [each for each in others if OF_A_FOLLOWER not in each["case"]] == []


def test_every_answer_about_records_groups_and_transactions_is_kafkas(
    open_kafka: Kafka, tmp_path: Path
):
    settings = {"auto.create.topics.enable": "false"}
    gateway = gateway_before(open_kafka.listeners["PLAINTEXT"], tmp_path, **settings)
    try:
        found = _unexplained(differences(gateway, tmp_path, "behaviour"))
        if found:
            # A busy Kafka shows a change only a while after its answer, each time in other steps.
            again = set(map(_step, _unexplained(differences(gateway, tmp_path, "behaviour"))))
            found = [each for each in found if _step(each) in again]
    finally:
        gateway.terminate()
    assert found == []


def _unexplained(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        each
        for each in found
        if not each["case"].startswith(NOT_OFFERED) and not _is_after_acks_0(each)
    ]


def _step(difference: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(difference[name] for name in ("key", "case", "version", "role"))


def _is_after_acks_0(difference: dict[str, Any]) -> bool:
    """Whether the cluster closed the connection because of a Produce with acks=0.

    The suite notices that at once, or at its next request, because it takes a moment longer here.
    """
    return "acks 0" in difference["case"] or (
        difference["case"].startswith("records are refused: 35")
        and difference["key"] == "LIST_OFFSETS"
    )
