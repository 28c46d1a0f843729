"""SCRAM users and delegation tokens: our broker answers as a real Kafka 4.3.0 does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.conformance import credentials
from tests.conformance.credentials import Answers, Asked
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka, running_kafka

ENABLED = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "the secret key of all tokens",
    **{
        f"listener.name.sasl_plaintext.scram-sha-{bits}.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        for bits in (256, 512)
    },
}
ENABLED_DIALOGUES = (
    credentials.scram_users,
    credentials.described_users,
    credentials.scram_logins,
    credentials.tokens,
)
REFUSED = (
    58,
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    "SCRAM-SHA-256",
    False,
)
ACCEPTED = (0, "", True)
CLOSED = "connection closed"


class Divergence(NamedTuple):
    """A difference that is wanted."""

    reason: str
    kafka: Any
    ours: Any


_ENUMERATION = "d8 SCRAM: Kafka tells at once who is no user; here nobody is told that"
_SIZE = "d8 SCRAM: Kafka hangs up without an answer at a proof of another size"
_RFC = "d8 SCRAM: RFC 5802 wants it verified, or refused"
DIVERGENCES: Mapping[str, Divergence] = {
    "scram_logins: first: a user that there is not": Divergence(_ENUMERATION, REFUSED, ACCEPTED),
    "scram_logins: first: a token that there is not": Divergence(_ENUMERATION, REFUSED, ACCEPTED),
    "scram_logins: first: a user of the other mechanism": Divergence(
        _ENUMERATION, REFUSED, ACCEPTED
    ),
    "scram_logins: first: a reserved attribute": Divergence(_RFC, ACCEPTED, REFUSED),
    "scram_logins: last: an empty proof": Divergence(_SIZE, CLOSED, REFUSED),
    "scram_logins: last: a short proof": Divergence(_SIZE, CLOSED, REFUSED),
    "scram_logins: last: an extension that is not signed": Divergence(_RFC, ACCEPTED, REFUSED),
    "scram_logins: last: an extension that is signed": Divergence(_RFC, REFUSED, ACCEPTED),
    "scram_logins: last: another channel": Divergence(_RFC, ACCEPTED, REFUSED),
    "tokens: logged in with an expired token": Divergence(
        "d9 expired tokens: Kafka lets it in until it is removed, into a session that is over",
        (0, 0),
        (58, 0),
    ),
}


def answers(broker: Asked, dialogues: tuple[Callable[[Asked], Answers], ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for dialogue in dialogues:
        for question, answer in dialogue(broker):
            label = f"{dialogue.__name__}: {question}"
            assert label not in found
            found[label] = answer
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """What Kafka and our broker answer with tokens enabled."""
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), ENABLED)
    with ExitStack() as ended:
        kafka = ended.enter_context(running_kafka(tmp_path_factory.mktemp("kafka"), ENABLED))
        broker.start()
        ended.callback(broker.terminate)
        both = Asked(kafka.listeners, settles=True), Asked(broker.listeners, settles=False)
        for each in both:
            ended.callback(each.close)
        theirs, ours = (answers(each, ENABLED_DIALOGUES) for each in both)
        yield theirs, ours


@pytest.mark.thorough
def test_answers_are_those_of_kafka(played: tuple[Any, Any]) -> None:
    kafka, ours = played
    assert kafka.keys() == ours.keys()
    differing = {
        label: (kafka[label], ours[label])
        for label in kafka
        if kafka[label] != ours[label] and label not in DIVERGENCES
    }
    shown = "\n".join(f"{label}\n  Kafka: {a}\n  ours:  {b}" for label, (a, b) in differing.items())
    assert not differing, shown


@pytest.mark.thorough
def test_each_divergence_is_still_there(played: tuple[Any, Any]) -> None:
    kafka, ours = played
    meant = {label: (each.kafka, each.ours) for label, each in DIVERGENCES.items()}
    assert {label: (kafka[label], ours[label]) for label in meant} == meant


def test_without_a_secret_key_answers_are_those_of_kafka(
    kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    both = Asked(kafka.listeners, settles=True), Asked(broker.listeners, settles=False)
    theirs, ours = (answers(each, (credentials.disabled_tokens,)) for each in both)
    for each in both:
        each.close()
    broker.terminate()
    assert ours == theirs
