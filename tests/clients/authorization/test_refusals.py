"""Who has no right gets the exception that the client has for it, and not its time-out."""

import pytest

from tests.clients.authorization.conftest import AttemptDriverOf
from tests.clients.authorization.drivers import ATTEMPTING
from tests.support.broker import Broker
from tests.support.kafka import Kafka
from tests.support.tables import check_each

# What no client needs: a refusal that is only told after it is one that was tried again until then.
PATIENCE = 8.0

EVERY = tuple(ATTEMPTING)
JAVA = ("java",)
JAVA_AND_CONFLUENT = ("java", "confluent-kafka")
JAVA_AND_AIOKAFKA = ("java", "aiokafka")
"""The others say nothing of a topic that they are assigned and may not describe, on Kafka too."""
ALL_BUT_AIOKAFKA = ("java", "confluent-kafka", "kafka-python")
"""aiokafka's admin client raises none of these errors."""
ALL_BUT_CONFLUENT = ("java", "aiokafka", "kafka-python")
"""confluent-kafka tries such a commit for 45 seconds, on Kafka too."""
ALL_BUT_KAFKA_PYTHON = ("java", "confluent-kafka", "aiokafka")
"""kafka-python says nothing of a topic that it subscribed to and may not describe, on Kafka too."""

REFUSED = {
    "TOPIC_AUTHORIZATION_FAILED": {
        "alice produce hidden-topic": EVERY,
        "alice produce seen-topic": EVERY,
        "alice produce hidden-missing-topic": EVERY,
        "alice produce-idempotently hidden-topic": EVERY,
        "alice produce-idempotently seen-topic": EVERY,
        "alice assign hidden-topic own-group": JAVA_AND_AIOKAFKA,
        "alice assign seen-topic own-group": EVERY,
        "alice subscribe hidden-topic own-group": ALL_BUT_KAFKA_PYTHON,
        "alice subscribe-by-heartbeat hidden-topic own-group": JAVA_AND_CONFLUENT,
        "alice commit seen-topic own-group": EVERY,
        "alice share hidden-topic own-group": JAVA,
        "alice stream hidden-topic own-application": JAVA,
        "alice stream-by-heartbeat hidden-topic own-application": JAVA,
        "alice describe-topic hidden-topic": JAVA,
        "alice create-topic new-topic": JAVA_AND_CONFLUENT,
        "alice delete-topic hidden-topic": ALL_BUT_AIOKAFKA,
        "alice delete-topic seen-topic": ALL_BUT_AIOKAFKA,
        "alice create-partitions seen-topic": JAVA,
        "alice delete-records seen-topic": JAVA,
        "alice describe-topic-config seen-topic": JAVA,
        "alice alter-topic-config seen-topic": JAVA,
        "alice describe-producers seen-topic": JAVA,
    },
    "GROUP_AUTHORIZATION_FAILED": {
        "alice subscribe own-topic hidden-group": EVERY,
        "alice subscribe own-topic seen-group": EVERY,
        "alice subscribe-by-heartbeat own-topic hidden-group": JAVA_AND_CONFLUENT,
        "alice subscribe-by-heartbeat own-topic seen-group": JAVA_AND_CONFLUENT,
        "alice commit own-topic hidden-group": ALL_BUT_CONFLUENT,
        "alice commit own-topic seen-group": EVERY,
        "alice share own-topic hidden-group": JAVA,
        "alice share own-topic seen-group": JAVA,
        "alice stream own-topic hidden-group": JAVA,
        "alice stream own-topic seen-group": JAVA,
        "alice stream-by-heartbeat own-topic hidden-group": JAVA,
        "alice stream-by-heartbeat own-topic seen-group": JAVA,
        "alice describe-group hidden-group": ALL_BUT_AIOKAFKA,
        "alice describe-classic-group hidden-group": JAVA,
        "alice describe-share-group hidden-group": JAVA,
        "alice list-offsets-of-group hidden-group": ALL_BUT_AIOKAFKA,
        "alice alter-offsets-of-group seen-group": JAVA,
        "alice delete-offsets-of-group seen-group": JAVA,
        "alice delete-group seen-group": JAVA_AND_CONFLUENT,
    },
    "CLUSTER_AUTHORIZATION_FAILED": {
        "bob produce-idempotently seen-topic": EVERY,
        "alice describe-broker-config 1": JAVA_AND_CONFLUENT,
        "alice alter-broker-config 1": JAVA,
        "alice describe-log-dirs 1": JAVA,
        "alice unregister-broker 1": JAVA,
        "alice describe-quotas": JAVA,
        "alice describe-scram-credentials alice": JAVA,
        "alice alter-scram-credentials alice": JAVA,
        "alice describe-quorum": ("java", "kafka-python"),
        "alice list-reassignments": JAVA,
        "alice reassign seen-topic": JAVA,
        "alice elect-leaders seen-topic": JAVA,
        "alice update-features kraft.version": JAVA,
        "alice describe-acls": JAVA,
    },
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": {
        "alice produce-in-transaction hidden-id own-topic": EVERY,
        "alice produce-in-transaction seen-id own-topic": EVERY,
        "alice describe-transaction hidden-id": ("java", "kafka-python"),
        "alice fence-producers hidden-id": JAVA,
        "alice fence-producers seen-id": JAVA,
    },
}
"""By the error: who attempts what, and the clients that can."""

TOLD_BY_TEXT = {
    (
        "confluent-kafka",
        "alice subscribe-by-heartbeat own-topic seen-group",
    ): "Fatal error: Broker: Group authorization failed: "
    "ConsumerGroupHeartbeat fatal error: Broker: Group authorization failed",
    (
        "kafka-python",
        "bob produce-idempotently seen-topic",
    ): "KafkaError: Unexpected error in InitProducerIdResponse: "
    "[Error 31] ClusterAuthorizationFailedError",
}
"""Where the client raises its most general error, its text."""


def attempts_of(client: str) -> list[tuple[str, str]]:
    """What a client attempts, and the error."""
    return [
        (attempt, error)
        for error, attempts in REFUSED.items()
        for attempt, clients in attempts.items()
        if client in clients
    ]


@pytest.mark.parametrize("client", EVERY)
def test_who_has_no_right_gets_the_clients_authorization_error_and_not_its_time_out(
    client: str, guarded: Broker | Kafka, attempting: AttemptDriverOf, every_case: bool
) -> None:
    def check(case: tuple[str, str]) -> None:
        attempt, error = case
        got = attempting(client).attempt(guarded.listeners["SASL_PLAINTEXT"], attempt, PATIENCE)
        expected = TOLD_BY_TEXT.get((client, attempt)) or ATTEMPTING[client].name_of(error)
        assert got.outcome == expected
        assert got.seconds < PATIENCE

    attempts = attempts_of(client)
    if isinstance(guarded, Kafka) and not every_case:
        # That ours is as Kafka is what every case shows; daily one of each error does.
        attempts = list({error: (attempt, error) for attempt, error in attempts}.values())
    check_each(attempts, check)
