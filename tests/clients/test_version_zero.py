"""AdminClients before Kafka 2.0 speak version 0 of the ACL requests, which Kafka 4 dropped."""

import pytest

from tests.clients.conftest import DriverOf
from tests.clients.drivers import OF_VERSION_ZERO
from tests.clients.story import (
    EVERYTHING,
    LITERALS,
    PREFIXED,
    REFUSALS,
    STORY_OF_VERSION_ZERO,
    connect,
    creates,
    lists,
    tell,
)
from tests.support.broker import Broker

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("client", OF_VERSION_ZERO)
def test_literal_acls_are_managed_and_prefixed_acls_neither_seen_nor_deleted(
    client: str, broker: Broker, driver_of: DriverOf
) -> None:
    address = broker.listeners["SASL_PLAINTEXT"]
    newer, older = driver_of("confluent-kafka"), driver_of(client)
    connect(newer, address, "admin")
    tell(newer, [creates(PREFIXED)])

    connect(older, address, "admin")
    tell(older, STORY_OF_VERSION_ZERO)
    tell(newer, [lists(EVERYTHING, PREFIXED)])


@pytest.mark.parametrize("client", OF_VERSION_ZERO)
def test_what_a_client_of_version_zero_adds_is_literal_for_newer_clients(
    client: str, broker: Broker, driver_of: DriverOf
) -> None:
    address = broker.listeners["SASL_PLAINTEXT"]
    newer, older = driver_of("confluent-kafka"), driver_of(client)
    connect(older, address, "admin")
    tell(older, [creates(LITERALS)])
    connect(newer, address, "admin")
    tell(newer, [lists("ANY,,LITERAL,,,ANY,ANY", LITERALS), lists("ANY,,PREFIXED,,,ANY,ANY", [])])


@pytest.mark.parametrize("client", OF_VERSION_ZERO)
def test_a_principal_without_rights_gets_the_clients_cluster_authorization_error(
    client: str, broker: Broker, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    connect(driver, broker.listeners["SASL_PLAINTEXT"], "alice")
    tell(driver, REFUSALS)
    connect(driver, broker.listeners["SASL_PLAINTEXT"], "admin")
    tell(driver, [lists("ANY,,LITERAL,,,ANY,ANY", [])])
