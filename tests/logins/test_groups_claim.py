"""Groups that access tokens name, and groups of holders of tickets."""

from __future__ import annotations

import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.logins.conftest import PREFIX, RSA, kerberos_properties, token_properties
from tests.logins.initiator import context
from tests.support.access_tokens import claims, initial_response, token
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.delegation_tokens import KEY, create
from tests.support.kdc import Kdc, require_gssapi
from tests.support.process import wait_for

ORDERS = MetadataRequest([MetadataRequestTopic(name="orders")])
ALLOWED, DENIED = 0, 29
MECHANISMS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-512",
    "delegation.token.secret.key": KEY,
    "super.users": "User:ANONYMOUS",
    "aclbroker.catalog.topics": "orders:1",
    f"{PREFIX}aclbroker.oauthbearer.groups.claim": "groups",
}


@pytest.fixture
def broker(start_broker: StartBroker, jwks_url: str) -> Broker:
    return start_broker({**token_properties(jwks_url), **MECHANISMS})


def allow(broker: Broker, *principals: str) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        acls = [topic_read("orders", principal) for principal in principals]
        assert admin.create(*acls) == [0] * len(acls)


def log_in(client: Client, **changes: Any) -> Any:
    client.handshake("OAUTHBEARER")
    return client.authenticate(initial_response(token(RSA, claims("carol", **changes))))


def code(client: Client) -> int:
    [topic] = client.ask(ApiKey.METADATA, 12, ORDERS).topics
    return int(topic.error_code)


def test_a_session_has_the_groups_of_its_token_until_another_token_names_others(
    broker: Broker,
) -> None:
    allow(broker, "Group:staff")
    with Client(broker.listeners["SASL_PLAINTEXT"]) as carol:
        assert log_in(carol, groups=["eu", "staff"]).error_code == 0
        assert code(carol) == ALLOWED
        # Not before a second has passed.
        wait_for("again", lambda: carol.handshake("OAUTHBEARER").error_code == 0 or None, 20)
        again = initial_response(token(RSA, claims("carol", groups="eu")))
        assert carol.authenticate(again).error_code == 0
        assert code(carol) == DENIED


REFUSED: tuple[tuple[Any, str], ...] = (
    (5, "the groups claim 'groups' is not a string or an array of strings"),
    (["staff", 5], "the groups claim 'groups', entry 2: not a string"),
    (["staff"] * 1_001, "the groups claim 'groups' has 1,001 groups; 1,000 are allowed"),
)


def test_a_token_with_groups_that_cannot_be_taken_is_refused_and_the_log_says_why(
    broker: Broker,
) -> None:
    for groups, _ in REFUSED:
        with Client(broker.listeners["SASL_PLAINTEXT"]) as carol:
            answer = log_in(carol, groups=groups)
            assert answer.auth_bytes == b'{"status":"invalid_token"}'
            assert carol.authenticate(b"\x01").error_code
    reasons = [str(event.get("reason")) for event in broker.events()]
    assert [reason for reason in reasons if "invalid token" in reason] == [
        f"invalid token: {reason}" for _, reason in REFUSED
    ]


def test_a_megabyte_of_groups_is_refused_before_and_after_it_is_read(
    start_broker: StartBroker, jwks_url: str
) -> None:
    groups = [f"group-{number:0100}" for number in range(10_000)]
    many = {**token_properties(jwks_url), **MECHANISMS, "sasl.server.max.receive.size": "4194304"}
    broker = start_broker(many)
    with Client(broker.listeners["SASL_PLAINTEXT"]) as carol:
        assert log_in(carol, groups=groups).auth_bytes == b'{"status":"invalid_token"}'
    assert "has 10,000 groups; 1,000 are allowed" in broker.log_text()
    with Client(broker.listeners["SASL_PLAINTEXT"]) as carol:
        assert log_in(carol, groups=groups[:1_000]).error_code == 0
        assert code(carol) == DENIED
        allow(broker, f"Group:{groups[999]}")
        assert code(carol) == ALLOWED


def test_a_delegation_token_has_the_groups_that_its_owners_access_token_had(broker: Broker) -> None:
    allow(broker, "Group:staff")
    with (
        Client(broker.listeners["SASL_PLAINTEXT"]) as carol,
        Client(broker.listeners["SASL_PLAINTEXT"]) as bearer,
    ):
        assert log_in(carol, groups=["staff"], exp=int(time.time()) + 3600).error_code == 0
        made = create(carol)
        assert made.error_code == 0
        password = b64encode(made.hmac).decode()
        login = bearer.login_scram(made.token_id, password, "SCRAM-SHA-512", ",tokenauth=true")
        assert login.error_code == 0
        assert code(bearer) == ALLOWED


def test_groups_of_the_token_and_of_the_file_are_added_up(
    start_broker: StartBroker, jwks_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text("version: 1\ngroups: {out: [User:carol]}\n")
    settings = {**token_properties(jwks_url), **MECHANISMS, "aclbroker.groups.file": str(file)}
    broker = start_broker(settings)
    allow(broker, "Group:staff")
    with (
        Client(broker.listeners["SASL_PLAINTEXT"]) as carol,
        Client(broker.listeners["PLAINTEXT"]) as admin,
    ):
        assert log_in(carol, groups=["staff"]).error_code == 0
        assert code(carol) == ALLOWED
        assert admin.create(AclCreation(2, "orders", 3, "Group:out", "*", 8, 2)) == [0]
        assert code(carol) == DENIED


def test_holders_of_tickets_have_the_groups_of_their_short_name(
    start_broker: StartBroker, kdc: Kdc, keytab: Path, tmp_path: Path, monkeypatch
) -> None:
    require_gssapi()
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "groups.yaml"
    file.write_text("version: 1\ngroups: {staff: [User:dora]}\n")
    broker = start_broker(
        {
            "listeners": "PLAINTEXT://localhost:0,SASL_PLAINTEXT://localhost:0",
            **kerberos_properties(keytab),
            "aclbroker.groups.file": str(file),
            "aclbroker.catalog.topics": "orders:1",
        }
    )
    allow(broker, "Group:staff")
    address = broker.listeners["SASL_PLAINTEXT"].replace("localhost", "127.0.0.1")
    initiator = context("dora/shop", kdc.keytab("dora/shop"))
    with Client(address) as client:
        client.handshake("GSSAPI")
        answer = client.authenticate(initiator.step())
        while not initiator.complete:
            answer = client.authenticate(initiator.step(answer.auth_bytes) or b"")
        chosen = initiator.wrap(b"\x01\x00\x00\x00", False).message
        assert client.authenticate(chosen).error_code == 0
        assert code(client) == ALLOWED
