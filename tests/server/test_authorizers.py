"""Who decides: the built-in authorizer by each of its names, one of the user's own, or nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client

EXAMPLES = Path(__file__).parents[2] / "examples"
TOPIC = MetadataRequest([MetadataRequestTopic(name="alice-orders")])
OTHER_TOPIC = MetadataRequest([MetadataRequestTopic(name="bob-orders")])


def topic_error(client: Client, request: MetadataRequest) -> int:
    """Return the error code of the one topic in the answer to a Metadata request."""
    [topic] = client.ask(ApiKey.METADATA, 12, request).topics
    return int(topic.error_code)


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
    ],
)
def test_kafkas_class_names_select_the_built_in_authorizer(
    start_broker: StartBroker, name: str
) -> None:
    broker = start_broker({"authorizer.class.name": name})
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.login("alice", "alice-secret")
        assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 31
        assert topic_error(client, TOPIC) == 29


@pytest.mark.broker_process
def test_the_example_of_an_authorizer_of_ones_own_decides(
    start_broker: StartBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    broker = start_broker({"authorizer.class.name": "owner_authorizer:OwnerAuthorizer"})
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.login("alice", "alice-secret")
        assert topic_error(client, TOPIC) == 3
        assert topic_error(client, OTHER_TOPIC) == 29


@pytest.mark.parametrize("name", ["nowhere:Nobody", "json:Nobody", "json:dumps"])
def test_an_authorizer_that_cannot_be_made_stops_the_start(
    start_broker: StartBroker, name: str
) -> None:
    with pytest.raises(RuntimeError, match=f"authorizer.class.name={name} cannot be made"):
        start_broker({"authorizer.class.name": name})


def test_the_example_configuration_serves_its_users(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    overrides = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "aclbroker.store": f"sqlite:///{broker.store}",
    }
    broker.command[2:] = [str(EXAMPLES / "server.properties")]
    for name, value in overrides.items():
        broker.command += ["--override", f"{name}={value}"]
    broker.start()
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("admin", "admin-secret").error_code == 0
        assert client.resource_names() == []
    broker.terminate()
