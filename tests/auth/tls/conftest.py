"""Java and Kafka as the oracle of key stores, and key stores to ask about."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.drivers import LineProcess
from tests.support.certificates import Authority, Identity
from tests.support.packages import compiled_java, java_command, kafka_clients_jars

TESTS = Path(__file__).parents[2]

Ask = Callable[..., Any]
"""Asks TlsOracle: a verb and its words."""


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The program TlsOracle, which describes what it answers."""
    jars = kafka_clients_jars("4.3.0")
    sources = ("auth/tls/java/TlsOracle.java", "clients/java/Json.java")
    classes = compiled_java("tls-oracle", jars, *sources, root=TESTS)
    log = tmp_path_factory.mktemp("tls-oracle") / "stderr"
    process = LineProcess(java_command("TlsOracle", classes, jars), log)
    yield lambda *words: process.ask("\t".join(map(str, words)))
    process.close()


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="session")
def identity(authority: Authority) -> Identity:
    """A certificate for localhost below an intermediate authority."""
    return Authority("Intermediate", authority).issue()
