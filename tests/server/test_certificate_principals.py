"""Mutual TLS: certificates become principals by the documented rules, and ACLs name those."""

from __future__ import annotations

from pathlib import Path

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.certificates import Authority, Identity
from tests.support.client import Client, topic_read
from tests.support.tls import LISTENERS, client_tls, pem_stores

DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)
"""The example of Kafka's documentation for ssl.principal.mapping.rules."""

SERVICE = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=US"
ADMIN = "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=US"
OTHER = "CN=Other.Host,OU=Somewhere"
ALLOWED, DENIED = 0, 29


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority):
    directory = tmp_path_factory.mktemp("broker")
    mapped = {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": DOCUMENTED,
        "aclbroker.catalog.topics": "service:1,admin:1,other:1",
        "super.users": "User:ANONYMOUS;User:adminuser@admin",
    }
    stores = pem_stores(directory, authority.issue(), authority)
    broker = ThreadBroker(directory, {**LISTENERS, **stores, **mapped})
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        service, other = (
            topic_read("service", "User:serviceuser"),
            topic_read("other", "User:other.host"),
        )
        assert admin.create(service, other) == [0, 0]
    yield broker
    broker.terminate()


def errors(broker: Broker, authority: Authority, identity: Identity) -> dict[str, int]:
    names = ["service", "admin", "other"]
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    with Client(broker.listeners["SSL"], tls=client_tls(authority, identity)) as client:
        topics = client.ask(ApiKey.METADATA, 12, request).topics
    return {topic.name: topic.error_code for topic in topics}


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        (SERVICE, {"service"}),
        (ADMIN, {"service", "admin", "other"}),
        (OTHER, {"other"}),
        ("CN=serviceuser,OU=Others,O=a,L=b,ST=c,C=US", set()),
        ("CN=serviceuser", {"service"}),
        ("O=nobody", set()),
    ],
)
def test_a_certificate_has_the_rights_of_the_principal_that_the_rules_make_of_it(
    broker: Broker, authority: Authority, subject: str, allowed: set[str]
) -> None:
    # RFC 4514 writes a name from its end, as Java prints it and the rules expect it.
    identity = authority.issue(subject)
    found = errors(broker, authority, identity)
    assert found == {name: ALLOWED if name in allowed else DENIED for name in found}


def test_a_certificate_that_no_rule_names_gets_nobody_in(
    tmp_path: Path, authority: Authority
) -> None:
    rules = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=(a.*)$/$1/"}
    stores = pem_stores(tmp_path, authority.issue(), authority)
    broker = ThreadBroker(tmp_path, {**LISTENERS, **stores, **rules})
    broker.start()
    try:
        tls = client_tls(authority, authority.issue("CN=bob"))
        with Client(broker.listeners["SSL"], tls=tls) as client:
            assert client.is_closed()
        [failure] = [each for each in broker.events() if each["event"] == "authentication failed"]
        assert "CN=bob" in failure["reason"]
        named = client_tls(authority, authority.issue("CN=alice"))
        with Client(broker.listeners["SSL"], tls=named) as client:
            request = MetadataRequest([MetadataRequestTopic(name="orders")])
            [topic] = client.ask(ApiKey.METADATA, 12, request).topics
            assert topic.error_code == DENIED
    finally:
        broker.terminate()
