"""Fixtures of the clients: each client's driver, and the brokers to which it talks."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.clients.drivers import OF_VERSION_ZERO, WITH_PATTERN_TYPES, Driver
from tests.clients.story import EVERYTHING, connect, lists, tell
from tests.support.kafka import Kafka

DriverOf = Callable[[str], Driver]


class Target(NamedTuple):
    """A broker without ACLs: its listeners, and whether what it lists may be late."""

    listeners: dict[str, str]
    reads_are_late: bool


@pytest.fixture(scope="session")
def running_driver_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverOf]:
    """The driver of a client by its name, started once for all tests."""
    logs = tmp_path_factory.mktemp("drivers")
    started: dict[str, Driver] = {}

    def start(name: str) -> Driver:
        if name not in started or started[name].ended:
            client = {**WITH_PATTERN_TYPES, **OF_VERSION_ZERO}[name]
            started[name] = Driver(client, logs / f"{name}.log")
        return started[name]

    yield start
    for driver in started.values():
        driver.close()


@pytest.fixture
def driver_of(running_driver_of: DriverOf) -> Iterator[DriverOf]:
    """`running_driver_of`, disconnected when the test ends.

    A test names it after its brokers: so the clients leave before a broker stops.
    """
    used: dict[str, Driver] = {}

    def use(name: str) -> Driver:
        used[name] = running_driver_of(name)
        return used[name]

    yield use
    for driver in used.values():
        if not driver.ended:
            driver.step("disconnect")


@pytest.fixture
def bare_kafka(kafka: Kafka, running_driver_of: DriverOf) -> Kafka:
    """The real Kafka, from which the ACLs of other tests are removed."""
    driver = running_driver_of("kafka-python")
    connect(driver, kafka.listeners["SASL_PLAINTEXT"], "admin")
    driver.step("delete", EVERYTHING)
    tell(driver, [lists(EVERYTHING, [])], reads_are_late=True)
    driver.step("disconnect")
    return kafka


@pytest.fixture(params=["aclbroker", "kafka-4.3.0"])
def target(request: pytest.FixtureRequest) -> Target:
    """Our broker, then a real Kafka."""
    ours = request.param == "aclbroker"
    server = request.getfixturevalue("broker" if ours else "bare_kafka")
    return Target(server.listeners, reads_are_late=not ours)
