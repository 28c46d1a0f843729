"""The settings of a broker, as DescribeConfigs shows them, beside those of a real Kafka 4.3.0."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import describe_configs as described
from aclbroker.testing import AclBroker
from tests.support.client import Client
from tests.support.kafka import Kafka

BROKER = 4
OF_BROKER, BY_DEFAULT = 4, 5
UNKNOWN = 0


def configs(client: Client, *names: str, node: str = "1", version: int = 4) -> dict[str, Any]:
    """Return the settings of a node by name, with their synonyms and documentation."""
    resource = described.DescribeConfigsResource(BROKER, node, list(names) or None)
    request = described.DescribeConfigsRequest(
        [resource], include_synonyms=True, include_documentation=True
    )
    [result] = client.ask(ApiKey.DESCRIBE_CONFIGS, version, request).results
    assert result.error_code == 0, result.error_message
    return {each.name: each for each in result.configs}


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    with (
        AclBroker(properties={"num.partitions": "3"}) as broker,
        Client(broker.bootstrap_servers) as client,
    ):
        client.login("admin", broker.password("admin"))
        return configs(client)


def test_a_broker_shows_all_settings_of_kafka_with_their_types_and_defaults(
    ours: dict[str, Any], kafka: Kafka
):
    with Client(kafka.listeners["PLAINTEXT"]) as client:
        theirs = configs(client)
    # In Kafka, the settings of plug-ins and of single listeners have no type.
    theirs = {
        name: each
        for name, each in theirs.items()
        if each.config_type != UNKNOWN and not name.startswith("listener.name.")
    }
    assert theirs.keys() <= ours.keys()
    assert {name: ours[name].config_type for name in theirs} == {
        name: each.config_type for name, each in theirs.items()
    }
    assert [name for name, each in theirs.items() if each.is_sensitive] == [
        name for name in theirs if ours[name].is_sensitive
    ]
    by_default = {
        name: each.value
        for name, each in theirs.items()
        if each.config_source == BY_DEFAULT == ours[name].config_source and name not in DEFINITIONS
    }
    assert len(by_default) > 200
    assert {name: ours[name].value for name in by_default} == by_default


def test_a_setting_has_the_value_that_holds_here_and_says_where_it_comes_from(
    ours: dict[str, Any],
):
    def shown(name: str) -> tuple[str | None, int, list[tuple[str, str, int]]]:
        each = ours[name]
        synonyms = [(found.name, found.value, found.source) for found in each.synonyms]
        return each.value, each.config_source, synonyms

    assert shown("num.partitions") == (
        "3", OF_BROKER, [("num.partitions", "3", OF_BROKER), ("num.partitions", "1", BY_DEFAULT)],
    )  # fmt: skip
    # Kafka's own default is 3000.
    assert shown("group.initial.rebalance.delay.ms") == (
        "0", BY_DEFAULT, [("group.initial.rebalance.delay.ms", "0", BY_DEFAULT)],
    )  # fmt: skip
    assert shown("node.id") == ("1", OF_BROKER, [("node.id", "1", OF_BROKER)])
    assert shown("ssl.key.password") == (None, BY_DEFAULT, [])
    assert ours["num.partitions"].documentation == DEFINITIONS["num.partitions"].doc
    assert ours["num.io.threads"].documentation is None
    assert all(each.read_only for each in ours.values())


def test_a_request_may_name_settings_and_each_node_shows_its_own_id():
    with AclBroker(nodes=2) as broker, Client(broker.bootstrap_servers.split(",")[1]) as client:
        client.login("admin", broker.password("admin"))
        found = configs(client, "broker.id", "num.io.threads", "nothing", node="2", version=1)
    assert {name: each.value for name, each in found.items()} == {
        "broker.id": "2", "num.io.threads": "8",
    }  # fmt: skip
