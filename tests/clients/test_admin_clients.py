"""Every client that knows pattern types manages ACLs alike on our broker and on a real Kafka."""

import pytest

from tests.clients.conftest import DriverOf, Target
from tests.clients.drivers import WITH_PATTERN_TYPES, parameters
from tests.clients.story import (
    EVERYTHING,
    READ_ORDERS,
    REFUSALS,
    STORY,
    Step,
    connect,
    lists,
    tell,
)


@pytest.mark.parametrize("client", parameters(WITH_PATTERN_TYPES))
def test_acls_are_added_listed_by_filters_and_deleted(
    client: str, target: Target, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    connect(driver, target.listeners["SASL_PLAINTEXT"], "admin")
    tell(driver, STORY, target.reads_are_late)


@pytest.mark.parametrize("client", parameters(WITH_PATTERN_TYPES))
def test_a_principal_without_rights_gets_the_clients_cluster_authorization_error(
    client: str, target: Target, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    connect(driver, target.listeners["SASL_PLAINTEXT"], "alice")
    tell(driver, REFUSALS)
    connect(driver, target.listeners["SASL_PLAINTEXT"], "admin")
    tell(driver, [lists(EVERYTHING, [])])


@pytest.mark.parametrize(
    ("client", "error"),
    [
        ("kafka-clients-4.3.0", "InvalidRequestException"),
        pytest.param("kafka-clients-2.0.1", "InvalidRequestException", marks=pytest.mark.thorough),
        ("confluent-kafka", "INVALID_REQUEST"),
    ],
)
def test_an_acl_that_is_refused_does_not_keep_its_neighbour_from_being_added(
    client: str, error: str, target: Target, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    connect(driver, target.listeners["SASL_PLAINTEXT"], "admin")
    no_principal_type = READ_ORDERS.replace("User:alice", "alice")
    steps = [
        Step("create", [no_principal_type, READ_ORDERS], [error, None]),
        lists(EVERYTHING, [READ_ORDERS]),
    ]
    tell(driver, steps, target.reads_are_late)
