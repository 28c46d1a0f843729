"""The settings of the cluster behind a gateway."""

import pytest

from aclbroker.broker.backends.upstream.access import UpstreamSettingsError, upstream_access
from aclbroker.broker.config import ConfigError, load

UPSTREAM = {"aclbroker.upstream.bootstrap.servers": "kafka-1:9092,[::1]:9093"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "


def test_the_names_are_those_of_kafkas_clients():
    given = UPSTREAM | {
        "aclbroker.upstream.security.protocol": "SASL_SSL",
        "aclbroker.upstream.sasl.mechanism": "PLAIN",
        "aclbroker.upstream.sasl.jaas.config": f'{PLAIN}username="gateway" password="top-secret";',
        "aclbroker.upstream.client.id": "our-gateway",
        "aclbroker.upstream.request.timeout.ms": "5000",
    }
    config = load(overrides=given)
    access = upstream_access(config)
    assert access.addresses == (("kafka-1", 9092), ("::1", 9093))
    assert access.settings.client_id == "our-gateway"
    assert access.settings.request_timeout == 5
    assert access.tls is not None
    assert "top-secret" not in repr(access) + repr(config) + str(config.warnings)
    assert not [warning for warning in config.warnings if "upstream" in warning]


def test_a_broker_without_a_cluster_upstream_has_no_settings_of_one():
    config = load(overrides={"aclbroker.upstream.client.id": "alone"})
    assert config.upstream == {}
    assert [warning for warning in config.warnings if "no effect without" in warning]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("aclbroker.cluster", "memory", "the cluster is the one upstream"),
        ("aclbroker.catalog.topics", "orders:3", "topics and groups are those of the cluster"),
        ("aclbroker.catalog.groups", "readers", "topics and groups are those of the cluster"),
        ("aclbroker.upstream.sasl.mechanism", "GSSAPI", "allowed: PLAIN, SCRAM-SHA-256"),
        ("aclbroker.upstream.nodes.first.port", "70000", "1 to 65535"),
        ("aclbroker.upstream.security.protocol", "TLS", "allowed: PLAINTEXT, SSL"),
    ],
)
def test_settings_that_contradict_a_cluster_upstream_are_refused(
    name: str, value: str, message: str
):
    with pytest.raises(ConfigError, match=message):
        load(overrides=UPSTREAM | {name: value})


def test_ports_of_brokers_need_one_process():
    ports = {"aclbroker.upstream.nodes.first.port": "9100", "aclbroker.workers": "2"}
    with pytest.raises(ConfigError, match="one process opens the ports of brokers"):
        load(overrides=UPSTREAM | ports)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aclbroker.upstream.bootstrap.servers": "kafka-1"}, "is not HOST:PORT"),
        ({"aclbroker.upstream.security.protocol": "SASL_PLAINTEXT"}, "sasl.jaas.config is missing"),
        (
            {
                "aclbroker.upstream.security.protocol": "SASL_PLAINTEXT",
                "aclbroker.upstream.sasl.jaas.config": f'{PLAIN}username="a" password="b";',
            },
            "sasl.mechanism is needed; allowed: PLAIN",
        ),
        (
            {
                "aclbroker.upstream.security.protocol": "SSL",
                "aclbroker.upstream.ssl.truststore.location": "/nowhere.jks",
            },
            "ssl.truststore.location",
        ),
    ],
)
def test_an_access_that_cannot_be_is_told_with_the_prefix(given: dict[str, str], message: str):
    with pytest.raises(UpstreamSettingsError, match=message) as error:
        upstream_access(load(overrides=UPSTREAM | given))
    assert str(error.value).startswith("settings aclbroker.upstream.*: ")
