"""The command config: who is logged in as whom, and what is said of what cannot be used."""

from pathlib import Path

import pytest

from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.conformance.options import read_keys, read_target
from aclbroker.protocol.messages import APIS, ApiKey
from tests.conformance_tool.examples import command_config, jaas

SERVER = "broker.example.org:9092"
USER = "conformance.user."
OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def kerberos(principal: str) -> str:
    module = "com.sun.security.auth.module.Krb5LoginModule"
    return f'{module} required useKeyTab=true keyTab="/x.keytab" principal="{principal}";'


def test_the_other_user_is_reached_as_the_super_user_is(tmp_path: Path):
    target = read_target(SERVER, command_config(tmp_path, {"request.timeout.ms": "7000"}))
    admin, alice = target.super_user, target.user
    assert admin.addresses == alice.addresses == [("broker.example.org", 9092)]
    assert (admin.name, alice.name, target.principal) == ("User:admin", "User:alice", "User:alice")
    for each, password in ((admin, "admin-secret"), (alice, "alice-secret")):
        assert each.settings[:2] == ("SASL_PLAINTEXT", "PLAIN")
        assert each.settings.request_timeout == 7
        assert each.settings.jaas is not None
        assert each.settings.jaas.options["password"] == password


def test_a_super_user_may_be_anonymous_and_the_other_user_on_another_listener(tmp_path: Path):
    file = command_config(
        tmp_path,
        {
            "security.protocol": None,
            "sasl.jaas.config": None,
            f"{USER}bootstrap.servers": "[::1]:9093",
            f"{USER}security.protocol": "SASL_PLAINTEXT",
        },
    )
    target = read_target(SERVER, file)
    assert target.super_user.settings.protocol == "PLAINTEXT"
    assert target.super_user.addresses == [("broker.example.org", 9092)]
    assert target.user.settings.protocol == "SASL_PLAINTEXT"
    assert target.user.addresses == [("::1", 9093)]


def test_trust_is_shared_and_what_proves_who_somebody_is_is_not(tmp_path: Path):
    file = command_config(
        tmp_path,
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": "/trusted.pem",
            "ssl.keystore.location": "/admin.pem",
            "ssl.key.password": "of-admin",
            f"{USER}sasl.jaas.config": None,
            f"{USER}ssl.keystore.location": "/alice.pem",
            f"{USER}principal": "User:CN=alice",
        },
    )
    target = read_target(SERVER, file)
    assert target.principal == "User:CN=alice"
    shown = {n: v for n, v in target.user.settings.values.items() if n.startswith("ssl.")}
    assert shown == {
        "ssl.truststore.location": "/trusted.pem",
        "ssl.keystore.location": "/alice.pem",
    }


@pytest.mark.parametrize(
    ("url", "inherited"), [("file:/admin.token", False), ("https://tokens.example.org/", True)]
)
def test_a_token_endpoint_is_shared_unless_it_is_the_token(
    tmp_path: Path, url: str, inherited: bool
):
    file = command_config(
        tmp_path,
        {
            "sasl.mechanism": "OAUTHBEARER",
            ENDPOINT: url,
            "sasl.jaas.config": OAUTHBEARER,
            "sasl.oauthbearer.client.credentials.client.id": "admin",
            f"{USER}sasl.jaas.config": OAUTHBEARER,
            f"{USER}principal": "User:alice",
        },
    )
    values = read_target(SERVER, file).user.settings.values
    assert (ENDPOINT in values) is inherited
    assert "sasl.oauthbearer.client.credentials.client.id" not in values


def test_kerberos_tells_the_principal_by_its_name(tmp_path: Path):
    file = command_config(
        tmp_path,
        {
            "sasl.mechanism": "GSSAPI",
            "sasl.jaas.config": kerberos("admin@EXAMPLE.ORG"),
            f"{USER}sasl.jaas.config": kerberos("alice/host@EXAMPLE.ORG"),
        },
    )
    assert read_target(SERVER, file).principal == "User:alice"


def test_a_setting_that_no_client_has_is_warned_of_once(tmp_path: Path):
    properties: dict[str, str | None] = {"sasl.mechnism": "PLAIN", f"{USER}clientid": "x"}
    target = read_target(SERVER, command_config(tmp_path, properties))
    assert [each.partition(": ")[2].partition(" ")[0] for each in target.warnings] == [
        "'sasl.mechnism'",
        "'clientid'",
    ]


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"security.protocol": "TLS"}, "allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": None}, "must be SASL_PLAINTEXT, SASL_SSL or SSL"),
        ({"sasl.jaas.config": None}, "sasl.jaas.config is missing"),
        (
            {f"{USER}sasl.jaas.config": None},
            f"with the settings {USER}*: sasl.jaas.config is missing",
        ),
        ({f"{USER}sasl.jaas.config": jaas("admin")}, "must name another user"),
        ({f"{USER}principal": "User:admin"}, "User:admin is the super user"),
        ({f"{USER}principal": "alice"}, "'alice': allowed: Type:name"),
        ({f"{USER}principal": "User:*"}, "'User:*': allowed: Type:name"),
        (
            {f"{USER}sasl.jaas.config": jaas("alice").replace("username", "user")},
            "do not tell as which principal they log in",
        ),
        ({f"{USER}security.protocol": "SSL"}, "do not tell as which principal they log in"),
        ({"sasl.jaas.config": jaas("admin").removesuffix(";")}, "sasl.jaas.config: at the end"),
        ({f"{USER}bootstrap.servers": "here"}, "bootstrap.servers: 'here' is not HOST:PORT"),
    ],
)
def test_what_cannot_be_used_is_said_without_a_secret(
    tmp_path: Path, properties: dict[str, str | None], said: str
):
    with pytest.raises(ClientConfigError, match=r"^(?!.*secret)") as error:
        read_target(SERVER, command_config(tmp_path, properties))
    assert said in str(error.value)


@pytest.mark.parametrize("server", ["localhost", ":9092", "localhost:", "localhost:x", "a:65536"])
def test_a_server_is_a_host_and_a_port(tmp_path: Path, server: str):
    with pytest.raises(ClientConfigError, match=r"--bootstrap-server: .* is not HOST:PORT"):
        read_target(server, command_config(tmp_path))


def test_a_command_config_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(ClientConfigError, match="cannot be read"):
        read_target(SERVER, str(tmp_path / "absent"))


def test_cases_are_chosen_by_either_name_of_their_api():
    assert read_keys(["CreateAcls", "DESCRIBE_ACLS"]) == {ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS}
    assert read_keys([]) == APIS.keys()
    with pytest.raises(ClientConfigError, match=r"--api Creates is unknown; .*CreateAcls, "):
        read_keys(["CreateAcls", "Creates"])
