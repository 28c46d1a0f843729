"""What real clients attempt at a broker with the rights of `tests.clients.authorization.rights`.

Each attempt comes with one thing that the broker has to decide for it, and what it decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.clients.authorization.drivers import ATTEMPTING, DONE, AttemptDriver

PATIENCE = 15.0


class Decided(NamedTuple):
    """Named as columns of events."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str
    allowed: bool


class Attempt(NamedTuple):
    """An attempt of `tests.clients.authorization.drivers`, and what is decided for it.

    ``error``: how Kafka names what the client is told, None if it is done.
    """

    words: str
    decided: Decided
    error: str | None
    clients: tuple[str, ...]


JAVA = "java"
CLIENTS = (JAVA, "confluent-kafka")


def _allowed(words: str, operation: str, resource: str, *clients: str) -> Attempt:
    return Attempt(words, _decided(words, operation, resource, True), None, clients or CLIENTS)


def _denied(words: str, operation: str, resource: str, error: str, *clients: str) -> Attempt:
    decided = _decided(words, operation, resource, False)
    return Attempt(words, decided, f"{error}_AUTHORIZATION_FAILED", clients or CLIENTS)


def _decided(words: str, operation: str, resource: str, allowed: bool) -> Decided:
    resource_type, name = resource.split()
    return Decided(f"User:{words.split()[0]}", operation, resource_type, name, allowed)


_ID, _CLUSTER = "TRANSACTIONAL_ID", "CLUSTER kafka-cluster"
_READ_CONFIGS, _CHANGE_CONFIGS = "DESCRIBE_CONFIGS", "ALTER_CONFIGS"

ATTEMPTS = (
    _allowed("alice produce own-topic", "WRITE", "TOPIC own-topic"),
    _allowed("alice produce-in-transaction own-id own-topic", "WRITE", f"{_ID} own-id"),
    _allowed("alice assign own-topic own-group", "READ", "TOPIC own-topic"),
    _allowed("alice subscribe own-topic own-group", "READ", "GROUP own-group"),
    _allowed("alice commit own-topic own-group", "READ", "GROUP own-group"),
    _allowed("alice describe-topic own-topic", "DESCRIBE", "TOPIC own-topic", JAVA),
    _allowed("admin describe-topic-config own-topic", _READ_CONFIGS, "TOPIC own-topic", JAVA),
    _allowed("admin describe-acls", "DESCRIBE", _CLUSTER, JAVA),
    _denied("alice produce hidden-topic", "DESCRIBE", "TOPIC hidden-topic", "TOPIC"),
    _denied("alice produce seen-topic", "WRITE", "TOPIC seen-topic", "TOPIC"),
    _denied("alice assign seen-topic own-group", "READ", "TOPIC seen-topic", "TOPIC"),
    _denied("alice subscribe own-topic hidden-group", "DESCRIBE", "GROUP hidden-group", "GROUP"),
    _denied("alice subscribe own-topic seen-group", "READ", "GROUP seen-group", "GROUP"),
    _denied(
        "alice produce-in-transaction hidden-id own-topic", "DESCRIBE", f"{_ID} hidden-id", _ID
    ),
    _denied("alice produce-in-transaction seen-id own-topic", "WRITE", f"{_ID} seen-id", _ID),
    _denied("alice describe-broker-config 1", _READ_CONFIGS, _CLUSTER, "CLUSTER"),
    _denied("alice create-topic new-topic", "CREATE", "TOPIC new-topic", "TOPIC"),
    _denied(
        "alice alter-topic-config seen-topic", _CHANGE_CONFIGS, "TOPIC seen-topic", "TOPIC", JAVA
    ),
    _denied("alice describe-acls", "DESCRIBE", _CLUSTER, "CLUSTER", JAVA),
    _denied("alice delete-topic seen-topic", "DELETE", "TOPIC seen-topic", "TOPIC"),
)


def attempt_all(address: str, logs: Path) -> dict[tuple[str, str], str]:
    """Let each client attempt all at a SASL_PLAINTEXT listener; return the outcomes by both."""
    outcomes = {}
    for name in CLIENTS:
        driver = AttemptDriver(ATTEMPTING[name], logs / f"{name}.log")
        try:
            for attempt in ATTEMPTS:
                if name in attempt.clients:
                    outcome = driver.attempt(address, attempt.words, PATIENCE).outcome
                    outcomes[name, attempt.words] = outcome
        finally:
            driver.close()
    return outcomes


def expected_outcomes() -> dict[tuple[str, str], str]:
    """Return the outcomes at a Kafka, as `attempt_all` does."""
    return {
        (name, attempt.words): ATTEMPTING[name].name_of(attempt.error) if attempt.error else DONE
        for attempt in ATTEMPTS
        for name in attempt.clients
    }
