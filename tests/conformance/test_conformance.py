"""Our broker answers as a real Kafka 4.3.0 does, except where `divergences` says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.conformance.cases import SCENARIOS
from tests.conformance.comparison import Exchange, Record, moments, play, version_of
from tests.conformance.divergences import DIVERGENCES, explanation
from tests.conformance.player import playing
from tests.conformance.requests import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.support.broker import Broker
from tests.support.kafka import Kafka


class Played(NamedTuple):
    """What both brokers answered to all requests."""

    kafka: Record
    ours: Record

    def differences(self) -> Iterator[Exchange]:
        """Yield each request whose answers differ."""
        for moment, step in moments():
            kafka, ours = self.kafka[moment], self.ours[moment]
            if kafka != ours:
                version = version_of(step, moment.version)
                yield Exchange(moment, step.request, version, kafka, ours)


def described(exchange: Exchange) -> str:
    """Return the request and both answers, to be read by people."""
    request = exchange.request
    return (
        f"step {exchange.moment.step}, API key {request.key} version {exchange.version}: "
        f"{request.fields or request.raw!r}\n  Kafka: {exchange.kafka}\n  ours:  {exchange.ours}"
    )


@pytest.fixture(scope="module")
def played(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Played:
    broker = Broker(tmp_path_factory.mktemp("conformance"))
    broker.start()
    try:
        with playing(broker.listeners) as player:
            ours = play(player, settling=False)
    finally:
        broker.terminate()
    with playing(kafka.listeners) as player:
        return Played(play(player, settling=True), ours)


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        pytest.param(scenario.name, version, id=f"{scenario.name}-v{version}")
        for scenario in SCENARIOS
        for version in scenario.versions
    ],
)
def test_answers_are_those_of_kafka(played: Played, scenario: str, version: int) -> None:
    for exchange in played.differences():
        here = exchange.moment[:2] == (scenario, version)
        if here and explanation(exchange, played.kafka) is None:
            pytest.fail(described(exchange), pytrace=False)


@pytest.mark.parametrize("name", [divergence.name for divergence in DIVERGENCES])
def test_divergence_is_still_there(played: Played, name: str) -> None:
    found = (explanation(exchange, played.kafka) for exchange in played.differences())

    assert any(divergence and divergence.name == name for divergence in found)


def test_more_than_200_acl_requests_are_compared() -> None:
    acl_requests = {DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS}
    bodies = {
        (step.request.key, step.request.body(version))
        for moment, step in moments()
        if step.request.key in acl_requests
        and 1 <= (version := version_of(step, moment.version)) <= 3
    }

    assert len(bodies) >= 200
