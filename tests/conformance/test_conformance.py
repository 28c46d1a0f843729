"""Our broker answers as a real Kafka 4.3.0 does, except where `divergences` says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.conformance.comparison import Exchange, Record, moments, play, version_of
from tests.conformance.divergences import DIVERGENCES, explanation
from tests.conformance.player import playing
from tests.conformance.requests import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka
from tests.support.tables import SHOWN


class Played(NamedTuple):
    """What both brokers answered to all requests."""

    kafka: Record
    ours: Record
    every_case: bool

    def differences(self) -> Iterator[Exchange]:
        """Yield each request whose answers differ."""
        for moment, step in moments(self.every_case):
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
def played(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory, every_case: bool) -> Played:
    broker = ThreadBroker(tmp_path_factory.mktemp("conformance"))
    broker.start()
    try:
        with playing(broker.listeners) as player:
            ours = play(player, every_case, settling=False)
    finally:
        broker.terminate()
    with playing(kafka.listeners) as player:
        return Played(play(player, every_case, settling=True), ours, every_case)


def test_answers_are_those_of_kafka_or_differ_where_a_divergence_says_so(played: Played) -> None:
    differences = list(played.differences())
    explained = [explanation(exchange, played.kafka) for exchange in differences]
    unexplained = [
        described(exchange)
        for exchange, divergence in zip(differences, explained, strict=True)
        if divergence is None
    ]
    assert not unexplained, "\n".join(unexplained[:SHOWN])
    assert {each.name for each in explained if each} == {each.name for each in DIVERGENCES}


def test_more_than_200_acl_requests_are_compared() -> None:
    acl_requests = {DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS}
    bodies = {
        (step.request.key, step.request.body(version))
        for moment, step in moments(every_case=True)
        if step.request.key in acl_requests
        and 1 <= (version := version_of(step, moment.version)) <= 3
    }

    assert len(bodies) >= 200
