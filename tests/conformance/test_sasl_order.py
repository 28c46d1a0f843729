"""A request in place of a SaslAuthenticate gets the answer of a real Kafka 4.3.0, and the close."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.conformance.case import Case
from aclbroker.conformance.corpus import corpus
from aclbroker.conformance.resources import TopicIds
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.schema import versions_in
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client, request_frame
from tests.support.kafka import Kafka

CASES = {case.id: case for case in reversed(corpus(TopicIds({})))}
NOT_COMPARED = {"error_message", "throttle_time_ms"}
ASKED = (
    ("PRODUCE to each topic", 9),
    ("PRODUCE to each topic", 13),
    ("PRODUCE with acks 0 to an allowed topic", 9),
    ("FETCH of each topic", 4),
    ("FETCH in an unknown session", 11),
    ("FETCH of each topic", 18),
    ("LIST_OFFSETS by a consumer", 7),
    ("METADATA of each topic", 12),
    ("METADATA of all topics", 13),
    ("METADATA by topic id", 10),
    ("METADATA by topic id", 12),
    ("OFFSET_FETCH of no topic in each group", 8),
    ("FIND_COORDINATOR of each group", 4),
    ("LIST_GROUPS all", 4),
    ("CREATE_TOPICS that are not there", 5),
    ("DELETE_TOPICS by unknown id", 6),
    ("DESCRIBE_CLUSTER brokers", 1),
    ("DESCRIBE_CONFIGS each resource", 4),
    ("ADD_PARTITIONS_TO_TXN of each transactional id", 4),
    ("SHARE_GROUP_DESCRIBE each", 1),
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory):
    started = ThreadBroker(tmp_path_factory.mktemp("broker"))
    started.start()
    yield started
    started.terminate()


def plain(value: Any) -> Any:
    """An answer as dicts, its lists sorted, since Kafka's order is often that of a hash table."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names if name not in NOT_COMPARED}
    if isinstance(value, list | tuple):
        return sorted(map(plain, value), key=repr)
    return value


def answer(address: str, case: Case, version: int) -> Any:
    """What is answered to a case after the handshake, or None; the connection must be closed."""
    with Client(address) as client:
        client.handshake("PLAIN")
        client.send(request_frame(case.key, version, case.message))
        try:
            answered = client.response(case.key, version)[1]
        except ConnectionClosed:
            return None
        assert client.is_closed()
        return plain(answered)


@pytest.mark.parametrize(("case", "version"), ASKED)
def test_a_request_after_the_handshake_is_answered_as_by_kafka(
    kafka: Kafka, broker: Broker, case: str, version: int
) -> None:
    asked = CASES[case]
    assert version in versions_in(asked.versions)
    theirs = answer(kafka.listeners["SASL_PLAINTEXT"], asked, version)
    assert answer(broker.listeners["SASL_PLAINTEXT"], asked, version) == theirs
    assert (theirs is None) == ("acks 0" in case)


def test_every_key_has_an_answer_after_the_handshake(broker: Broker) -> None:
    for key in {case.key for case in CASES.values()} - {ApiKey.SASL_AUTHENTICATE}:
        case = next(case for case in CASES.values() if case.key == key and case.answered)
        version = max(v for v in APIS[key].versions if v in versions_in(case.versions))
        answered = answer(broker.listeners["SASL_PLAINTEXT"], case, version)
        assert answered is not None, case.id
