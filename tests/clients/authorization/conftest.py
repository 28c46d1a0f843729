"""Fixtures: the running clients, and brokers that hold the rights of these tests."""

from collections.abc import Callable, Iterator

import pytest

from tests.clients.authorization.drivers import ATTEMPTING, AttemptDriver
from tests.clients.authorization.rights import (
    TOPICS,
    create_topics,
    delete_topics,
    remove_acls,
    replace_acls,
)
from tests.clients.conftest import DriverOf
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka

AttemptDriverOf = Callable[[str], AttemptDriver]


@pytest.fixture(scope="package")
def attempting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttemptDriverOf]:
    """The driver of a client by its name, started once for both brokers."""
    logs = tmp_path_factory.mktemp("attempting")
    started: dict[str, AttemptDriver] = {}

    def start(name: str) -> AttemptDriver:
        if name not in started or started[name].ended:
            started[name] = AttemptDriver(ATTEMPTING[name], logs / f"{name}.log")
        return started[name]

    yield start
    for driver in started.values():
        driver.close()


@pytest.fixture(scope="package")
def guarded_broker(
    tmp_path_factory: pytest.TempPathFactory, running_driver_of: DriverOf
) -> Iterator[Broker]:
    """Our broker, with the topics and the rights of these tests."""
    topics = ",".join(f"{name}:1" for name in TOPICS)
    broker = ThreadBroker(tmp_path_factory.mktemp("guarded"), {"aclbroker.catalog.topics": topics})
    broker.start()
    replace_acls(running_driver_of("kafka-python"), broker.listeners["SASL_PLAINTEXT"])
    yield broker
    broker.terminate()


@pytest.fixture(scope="package")
def guarded_kafka(kafka: Kafka, running_driver_of: DriverOf) -> Iterator[Kafka]:
    """The real Kafka, with the topics and the rights of these tests."""
    driver, address = running_driver_of("kafka-python"), kafka.listeners["SASL_PLAINTEXT"]
    create_topics(kafka.listeners["PLAINTEXT"])
    replace_acls(driver, address)
    yield kafka
    remove_acls(driver, address)
    delete_topics(kafka.listeners["PLAINTEXT"])


@pytest.fixture(scope="package", params=["aclbroker", "kafka-4.3.0"])
def guarded(request: pytest.FixtureRequest) -> Broker | Kafka:
    """Our broker, then a real Kafka."""
    ours = request.param == "aclbroker"
    found: Broker | Kafka = request.getfixturevalue("guarded_broker" if ours else "guarded_kafka")
    return found
