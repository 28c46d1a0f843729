"""Real clients get in with a token or a ticket, and are told when they do not."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.logins.clients import franz_go, kafka_acls, python
from tests.logins.conftest import OAUTHBEARER_MODULE, OTHER_RSA, RSA, kerberos_login
from tests.support.access_tokens import token
from tests.support.broker import Broker
from tests.support.kdc import REALM, Kdc

GOOD, BAD = token(RSA), token(OTHER_RSA, kid="rsa")
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def java_with_a_token(address: str, directory: Path, access_token: str) -> str:
    file = directory / "token.jwt"
    file.write_text(access_token)
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}"
    return kafka_acls(address, directory, settings, allowed)


def java_with_a_ticket(address: str, directory: Path, kdc: Kdc, login: str) -> str:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": login,
    }
    return kafka_acls(address, directory, settings, f"-Djava.security.krb5.conf={kdc.krb5_conf}")


@pytest.mark.parametrize(
    ("library", "told"),
    [
        ("confluent-kafka", "invalid_token"),
        ("kafka-python", "Unable to bootstrap"),
        # It does not look at what it is told, and goes on; its next request is refused (34).
        ("aiokafka", "NodeNotReadyError"),
    ],
)
def test_python_clients_with_a_token(library: str, told: str, token_broker: Broker) -> None:
    address = token_broker.listeners["SASL_PLAINTEXT"]
    assert python(library, "OAUTHBEARER", address, GOOD) == ""
    assert told in python(library, "OAUTHBEARER", address, BAD)


def test_franz_go_with_a_token(token_broker: Broker) -> None:
    address = token_broker.listeners["SASL_PLAINTEXT"]
    assert franz_go("OAUTHBEARER", address, GOOD) == ""
    # It does not show what the broker told it.
    assert "unexpected data in oauth response" in franz_go("OAUTHBEARER", address, BAD)


def test_java_clients_with_a_token(token_broker: Broker, tmp_path: Path) -> None:
    address = token_broker.listeners["SASL_PLAINTEXT"]
    assert java_with_a_token(address, tmp_path, GOOD) == ""
    assert java_with_a_token(address, tmp_path, BAD) == (
        "Error while executing ACL command: "
        'org.apache.kafka.common.errors.SaslAuthenticationException: {"status":"invalid_token"}'
    )


@pytest.fixture
def alice(kdc: Kdc) -> Path:
    return kdc.keytab("alice")


@pytest.fixture
def with_a_ticket(kdc: Kdc, alice: Path) -> Mapping[str, str]:
    """The environment in which Kerberos gets alice tickets."""
    cache = f"FILE:{alice.parent / 'clients.tickets'}"
    return {**kdc.environment, "KRB5_CLIENT_KTNAME": str(alice), "KRB5CCNAME": cache}


@pytest.fixture
def address(kerberos_broker: Broker) -> str:
    """The broker's, with the host name that is in its principal."""
    port = kerberos_broker.listeners["SASL_PLAINTEXT"].rpartition(":")[2]
    return f"localhost:{port}"


# librdkafka has Kerberos only where it is built with Cyrus SASL; its wheels are not.
@pytest.mark.parametrize("library", ["kafka-python", "aiokafka"])
def test_python_clients_with_a_ticket(
    library: str, address: str, with_a_ticket: Mapping[str, str]
) -> None:
    assert python(library, "GSSAPI", address, environment=with_a_ticket) == ""


def test_franz_go_with_a_ticket(address: str, kdc: Kdc, alice: Path) -> None:
    assert franz_go("GSSAPI", address, str(kdc.krb5_conf), str(alice), "alice", REALM) == ""


def test_java_clients_with_a_ticket(address: str, kdc: Kdc, alice: Path, tmp_path: Path) -> None:
    assert java_with_a_ticket(address, tmp_path, kdc, kerberos_login(alice, "alice")) == ""
