"""The broker's default settings for new topics, as clients of a cluster in memory see them."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from aclbroker.broker.config.model import ConfigError
from aclbroker.testing import AclBroker

WITHIN = 10
DEFAULTS = {
    "num.partitions": "3",
    "default.replication.factor": "2",
    "log.retention.hours": "2",
    "log.retention.minutes": "90",
    "log.roll.ms": "7000",
    "log.roll.jitter.hours": "1",
    "message.max.bytes": "2000",
    "log.cleanup.policy": "compact, delete",
    "log.local.retention.ms": "-2",
}
OF_TOPIC, OF_BROKER, BY_DEFAULT = 1, 4, 5


@pytest.fixture(scope="module")
def admin() -> Iterator[AdminClient]:
    with AclBroker(properties=DEFAULTS, nodes=3) as broker:
        yield AdminClient(broker.client_config("admin") | {"allow.auto.create.topics": True})


def created(admin: AdminClient, topic: NewTopic) -> dict[str, Any]:
    """Create a topic, and return its configuration."""
    admin.create_topics([topic])[topic.topic].result(WITHIN)
    resource = ConfigResource(ResourceType.TOPIC, topic.topic)
    configs: dict[str, Any] = admin.describe_configs([resource])[resource].result(WITHIN)
    return configs


def partitions(admin: AdminClient, topic: str) -> list[int]:
    """Return the number of replicas of each of a topic's partitions."""
    found = admin.list_topics(topic, timeout=WITHIN).topics[topic].partitions
    return [len(found[index].replicas) for index in sorted(found)]


def shown(config: Any) -> tuple[str, int, list[tuple[str, str, int]]]:
    synonyms = [(name, each.value, each.source) for name, each in config.synonyms.items()]
    return config.value, config.source, synonyms


def test_a_topic_without_a_number_of_partitions_gets_the_brokers(admin: AdminClient):
    created(admin, NewTopic("given-none", num_partitions=-1))
    assert partitions(admin, "given-none") == [2, 2, 2]
    created(admin, NewTopic("given-one", num_partitions=1, replication_factor=1))
    assert partitions(admin, "given-one") == [1]


def test_a_topic_that_is_created_automatically_gets_the_brokers_number_of_partitions(
    admin: AdminClient,
):
    # As in Kafka, the request that creates a topic does not return it yet.
    found = partitions(admin, "automatic") or partitions(admin, "automatic")
    assert found == [2, 2, 2]


# A real Kafka 4.3.0 with these settings answers the same.
def test_settings_of_a_topic_default_to_the_brokers(admin: AdminClient):
    configs = created(admin, NewTopic("defaults", config={"max.message.bytes": "900"}))
    assert shown(configs["retention.ms"]) == (
        "5400000", BY_DEFAULT, [],
    )  # fmt: skip
    assert shown(configs["segment.jitter.ms"]) == ("3600000", BY_DEFAULT, [])
    assert shown(configs["segment.ms"]) == (
        "7000", OF_BROKER, [("log.roll.ms", "7000", OF_BROKER)],
    )  # fmt: skip
    assert shown(configs["cleanup.policy"])[:2] == ("compact,delete", OF_BROKER)
    assert shown(configs["max.message.bytes"])[:2] == ("900", OF_TOPIC)
    assert shown(configs["segment.bytes"])[:2] == ("1073741824", BY_DEFAULT)


def test_a_value_that_kafka_would_refuse_keeps_the_broker_from_starting():
    with pytest.raises(ConfigError) as why:
        AclBroker(
            properties={"log.retention.ms": "0", "log.segment.bytes": "1", "num.partitions": "0"}
        ).start()
    assert [problem.partition(": ")[2].partition("=")[0] for problem in why.value.problems] == [
        "num.partitions", "log.segment.bytes", "log.retention.ms",
    ]  # fmt: skip
