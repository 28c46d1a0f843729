"""Who has the right gets no authorization error: Kafka does it, our broker says why it cannot."""

from typing import NamedTuple

import pytest

from tests.clients.authorization.conftest import AttemptDriverOf
from tests.clients.authorization.drivers import ATTEMPTING, DONE, Client
from tests.support.broker import Broker
from tests.support.kafka import Kafka
from tests.support.tables import check_each

PATIENCE = 15.0
# For who has the right, a broker without a coordinator is one to ask again until then.
PATIENCE_WITHOUT_COORDINATOR = 1.0

NO_COORDINATOR = "COORDINATOR_NOT_AVAILABLE"
REFUSED_BY_POLICY = "POLICY_VIOLATION"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


class Allowed(NamedTuple):
    """An attempt, the clients that can, and the error or `DONE` that each broker answers it."""

    attempt: str
    clients: tuple[str, ...]
    ours: str
    kafka: str = DONE


EVERY = tuple(ATTEMPTING)

ALLOWED = [
    Allowed("alice produce own-topic", EVERY, REFUSED_BY_POLICY),
    Allowed("alice produce-idempotently own-topic", EVERY, REFUSED_BY_POLICY),
    Allowed("alice produce-in-transaction own-id own-topic", EVERY, NO_COORDINATOR),
    Allowed("alice assign own-topic own-group", EVERY, DONE),
    Allowed("alice subscribe own-topic own-group-of-{client}", EVERY, NO_COORDINATOR),
    Allowed(
        "alice subscribe-by-heartbeat own-topic own-heartbeat-group-of-{client}",
        ("java", "confluent-kafka"),
        NO_COORDINATOR,
    ),
    Allowed("alice commit own-topic own-group", EVERY, NO_COORDINATOR),
    Allowed("alice describe-topic own-topic", ("java",), DONE),
    Allowed("alice describe-topic missing-topic", ("java",), UNKNOWN_TOPIC, kafka=UNKNOWN_TOPIC),
    Allowed("admin describe-topic-config own-topic", ("java",), DONE),
    Allowed("admin describe-broker-config 1", ("java", "confluent-kafka"), DONE),
    Allowed("admin describe-log-dirs 1", ("java",), DONE),
    Allowed("admin describe-quotas", ("java",), DONE),
    Allowed("admin describe-scram-credentials alice", ("java",), DONE),
    Allowed("admin list-reassignments", ("java",), DONE),
    Allowed("admin describe-acls", ("java",), DONE),
]


def _outcomes(client: Client, answer: str) -> frozenset[str]:
    if answer == NO_COORDINATOR:
        return client.time_outs
    return frozenset({DONE if answer == DONE else client.name_of(answer)})


@pytest.mark.parametrize("client", EVERY)
def test_who_has_the_right_gets_the_answer_of_the_broker_and_no_authorization_error(
    client: str, guarded: Broker | Kafka, attempting: AttemptDriverOf
) -> None:
    def check(allowed: Allowed) -> None:
        answer = allowed.ours if isinstance(guarded, Broker) else allowed.kafka
        patience = PATIENCE_WITHOUT_COORDINATOR if answer == NO_COORDINATOR else PATIENCE
        attempt = allowed.attempt.format(client=client)
        got = attempting(client).attempt(guarded.listeners["SASL_PLAINTEXT"], attempt, patience)
        assert got.outcome in _outcomes(ATTEMPTING[client], answer)

    check_each((each for each in ALLOWED if client in each.clients), check)
