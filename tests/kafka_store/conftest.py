"""A Kafka in memory for most tests, and a real Kafka behind a proxy that can cut the network."""

import pytest

from tests.support.kafka import Kafka
from tests.support.memory_kafka import memory_kafka
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def memory_proxy():
    """The proxy through which a cluster in memory is reached; each test names its own topic."""
    with memory_kafka() as proxy:
        yield proxy


@pytest.fixture
def looks_often(monkeypatch):
    """Stores look at the settings and the first offset of their topic at short intervals."""
    monkeypatch.setattr("aclbroker.broker.stores.kafka.health._LOOK_S", 0.1)
    monkeypatch.setattr("aclbroker.broker.stores.kafka.store._WATCH_S", 0.1)


@pytest.fixture(scope="package")
def kafka_behind(tmp_path_factory):
    """A Kafka that compacts soon, and a proxy in front of its listener PROXIED."""
    overrides = {"super.users": "User:ANONYMOUS", "log.cleaner.backoff.ms": "100"}
    kafka = Kafka(
        tmp_path_factory.mktemp("kafka-behind"),
        overrides=overrides,
        protocols={"PLAINTEXT": "PLAINTEXT", "PROXIED": "PLAINTEXT"},
    )
    with Proxy(kafka.listeners["PROXIED"]) as proxy:
        shown = {**kafka.listeners, "PROXIED": proxy.address}
        overrides["advertised.listeners"] = ",".join(f"{n}://{a}" for n, a in shown.items())
        try:
            kafka.start()
            yield kafka, proxy
        finally:
            kafka.kill()
