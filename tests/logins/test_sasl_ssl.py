"""Every SASL mechanism through TLS, all on one listener."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.logins.conftest import PREFIX, RSA, kerberos_properties, token_properties
from tests.logins.initiator import context
from tests.logins.test_kerberos import NO_LAYER
from tests.server.test_scram import alter, upsertion
from tests.support.access_tokens import initial_response, token
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import Client
from tests.support.kdc import Kdc, require_gssapi
from tests.support.tls import client_tls, pem_stores

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def trusting(authority: Authority) -> ssl.SSLContext:
    return client_tls(authority)


@pytest.fixture(scope="module")
def broker(
    kdc: Kdc,
    keytab: Path,
    jwks_url: str,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Broker]:
    """A broker whose only super user besides those of PLAINTEXT is alice."""
    require_gssapi()
    directory = tmp_path_factory.mktemp("broker")
    of_mechanisms = token_properties(jwks_url) | kerberos_properties(keytab)
    properties = {
        name.replace(PREFIX, "listener.name.sasl_ssl."): value
        for name, value in of_mechanisms.items()
    }
    properties |= pem_stores(directory, authority.issue(), authority)
    properties |= {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_JAAS,
        "super.users": "User:alice;User:ANONYMOUS",
    }
    broker = Broker(directory, properties, kdc.environment)
    broker.start()
    scram = [upsertion("alice", "pencil", name) for name in MECHANISMS if "SCRAM" in name]
    for one in scram:
        assert alter(broker, one) == [0]
    yield broker
    broker.terminate()


def kerberos(client: Client, kdc: Kdc) -> None:
    initiator = context("alice", kdc.keytab("alice"))
    client.handshake("GSSAPI")
    answer = client.authenticate(initiator.step())
    while not initiator.complete:
        answer = client.authenticate(initiator.step(answer.auth_bytes) or b"")
    answer = client.authenticate(initiator.wrap(NO_LAYER, False).message)
    assert answer.error_code == 0


def bearer(client: Client, _: Kdc) -> None:
    client.handshake("OAUTHBEARER")
    assert client.authenticate(initial_response(token(RSA))).error_code == 0


LOGINS: dict[str, Callable[[Client, Kdc], object]] = {
    "PLAIN": lambda client, _: client.login("alice", PASSWORDS["alice"]),
    "SCRAM-SHA-256": lambda client, _: client.login_scram("alice", "pencil"),
    "SCRAM-SHA-512": lambda client, _: client.login_scram("alice", "pencil", "SCRAM-SHA-512"),
    "OAUTHBEARER": bearer,
    "GSSAPI": kerberos,
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_has_proved_to_be_a_super_user_may_list_acls(
    broker: Broker,
    trusting: ssl.SSLContext,
    kdc: Kdc,
    mechanism: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    with Client(broker.listeners["SASL_SSL"], tls=trusting) as client:
        LOGINS[mechanism](client, kdc)
        assert client.resource_names() == []
