"""Who a session is: by a builder of the user's own, and on the listener of brokers."""

from __future__ import annotations

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.server.test_authorizers import EXAMPLES
from tests.support.accounts import PASSWORDS
from tests.support.client import ALL_ACLS, Client, topic_read

ORDERS = MetadataRequest([MetadataRequestTopic(name="orders")])
ALLOWED, DENIED = 0, 29
CATALOG = {"aclbroker.catalog.topics": "orders:1"}
BUILDER = "group_principals:GroupPrincipals"


def error(address: str, user: str) -> int:
    with Client(address) as client:
        assert client.login(user, PASSWORDS[user]).error_code == 0
        [topic] = client.ask(ApiKey.METADATA, 12, ORDERS).topics
        return int(topic.error_code)


@pytest.mark.broker_process
def test_the_example_of_a_builder_gives_users_the_rights_of_their_groups(
    start_broker: StartBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    broker = start_broker(
        CATALOG
        | {"principal.builder.class": BUILDER, "example.groups": "alice:staff,bob:staff,bob:out"}
    )
    address = broker.listeners["SASL_PLAINTEXT"]
    assert error(address, "alice") == DENIED
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        denies = AclCreation(2, "orders", 3, "Group:out", "*", 2, 2)
        assert admin.create(topic_read("orders", "Group:staff"), denies) == [0, 0]
    assert error(address, "alice") == ALLOWED
    assert error(address, "bob") == DENIED


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"principal.builder.class": "nowhere:Nobody"}, "principal.builder.class=nowhere:Nobody"),
        (
            {"principal.builder.class": BUILDER, "example.groups": "alice"},
            "example.groups: 'alice' is not USER:GROUP",
        ),
        ({"principal.builder.class": "com.example.Builder"}, "allowed: .*package.module:Class"),
    ],
)
def test_a_builder_that_cannot_be_made_stops_the_start(
    start_broker: StartBroker,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    reason: str,
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with pytest.raises(RuntimeError, match=reason):
        start_broker(settings)


def test_users_of_brokers_may_do_everything_on_the_listener_of_brokers_alone(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(
        CATALOG
        | {
            "listeners": "BROKERS://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": (
                "BROKERS:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "listener.name.brokers.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                + " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
                + ";"
            ),
            "inter.broker.listener.name": "BROKERS",
            "broker.users": "User:alice",
        }
    )
    for listener, user, allowed in [
        ("BROKERS", "alice", True),
        ("BROKERS", "bob", False),
        ("BROKERS", "admin", True),
        ("SASL_PLAINTEXT", "alice", False),
    ]:
        assert error(broker.listeners[listener], user) == (ALLOWED if allowed else DENIED)
        with Client(broker.listeners[listener]) as client:
            client.login(user, PASSWORDS[user])
            code = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code
            assert code == (0 if allowed else 31)
