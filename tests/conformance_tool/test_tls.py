"""The suite reaches a broker by TLS: the super user by certificate, the other user by SCRAM."""

import json
from pathlib import Path

import pytest

from tests.conformance_tool.examples import CATALOG, conformance, to
from tests.conftest import StartBroker
from tests.server.test_scram import alter, upsertion
from tests.support.accounts import properties_text
from tests.support.broker import Broker
from tests.support.certificates import Authority, Identity, pem
from tests.support.client import Client, topic_read
from tests.support.tls import pem_stores

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
APIS = ("CreateAcls", "DescribeAcls", "Metadata", "Produce")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def broker(start_broker: StartBroker, authority: Authority, tmp_path: Path) -> Broker:
    """A broker whose only super user, besides those of PLAINTEXT, shows a certificate."""
    started = start_broker(
        CATALOG
        | pem_stores(tmp_path, authority.issue(), authority)
        | {
            "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "super.users": "User:CN=admin;User:ANONYMOUS",
        }
    )
    assert alter(started, upsertion("alice", "pencil", "SCRAM-SHA-512")) == [0]
    return started


def client_file(
    directory: Path, broker: Broker, authority: Authority, admin: Identity, password: str = "pencil"
) -> str:
    """The path of a command config with which both users trust an authority."""
    of_admin = directory / "admin.pem"
    of_admin.write_text(admin.pem())
    trusted = directory / "trusted.pem"
    trusted.write_text(pem(authority.certificate))
    file = directory / "suite.properties"
    file.write_text(
        properties_text(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(trusted),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(of_admin),
                "conformance.user.bootstrap.servers": broker.listeners["SASL_SSL"],
                "conformance.user.security.protocol": "SASL_SSL",
                "conformance.user.sasl.mechanism": "SCRAM-SHA-512",
                "conformance.user.sasl.jaas.config": (
                    f'{SCRAM} required username="alice" password="{password}";'
                ),
            }
        )
    )
    return str(file)


@pytest.mark.thorough
def test_a_broker_is_compared_through_tls_with_certificates_and_scram(
    broker: Broker, authority: Authority, tmp_path: Path
):
    file = client_file(tmp_path, broker, authority, authority.issue("CN=admin"))
    report = tmp_path / "report.json"
    chosen = [word for name in APIS for word in ("--api", name)]
    options: list[str | Path] = ["--yes", "--format", "json", "--output", report]
    ended = conformance("compare", *to(broker.listeners["SSL"], file), *chosen, *options)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(report.read_text())
    assert found["differences"] == []
    assert found["steps"] > 100
    # A Produce that is refused without an answer closes the connection, here through TLS.
    assert {"acks 0", "produce 0-2"} <= found["divergences"].keys()


@pytest.mark.parametrize("wrong", ["password", "certificate", "authority"])
def test_who_is_not_let_in_is_told_before_anything_is_done(
    wrong: str, broker: Broker, authority: Authority, tmp_path: Path
):
    other = Authority("Another CA")
    admin = (other if wrong == "certificate" else authority).issue("CN=admin")
    trusted = other if wrong == "authority" else authority
    password = "guessed" if wrong == "password" else "pencil"
    file = client_file(tmp_path, broker, trusted, admin, password)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.create(topic_read("kept"))
        ended = conformance("compare", *to(broker.listeners["SSL"], file), "--yes")
        assert ended.returncode == 2
        who = "the super user" if wrong == "certificate" else "User:alice"
        why = "Authentication failed" if wrong == "password" else "SSL handshake failed"
        assert f"aclbroker conformance: {who} cannot log in: " in ended.stderr
        assert why in ended.stderr
        assert "guessed" not in ended.stderr
        assert client.resource_names() == ["kept"]
