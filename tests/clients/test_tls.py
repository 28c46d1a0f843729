"""Real clients through TLS, with our broker and with a real Kafka, which start from the same files.

A listener's name says what is special about it: the format of its stores, or which clients it lets
in. Without the prefix of a listener, client certificates are required.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import javaproperties
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from tests.clients.acl_command import Commands
from tests.clients.conftest import DriverOf
from tests.clients.drivers import Answer
from tests.clients.story import EVERYTHING
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.certificates import PASSWORD, Authority, Identity, pem
from tests.support.client import Client
from tests.support.kafka import Kafka, running_kafka
from tests.support.keytool import key_store, trust_store
from tests.support.tls import client_tls
from tests.support.toolchain import require, run

PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "PEM": "SSL",
    "JKS": "SSL",
    "PKCS12": "SSL",
    "REQUESTED": "SSL",
    "REQUIRED": "SSL",
    "SUITES": "SSL",
    "SASL_SSL": "SASL_SSL",
    "MUTUAL": "SASL_SSL",
}
SUITE = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
CLIENTS = ["kafka-clients-4.3.0", "confluent-kafka", "kafka-python", "franz-go", "kafkajs"]
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "authentication.md"
STORES = ["PEM", "JKS", "PKCS12"]


class Files(NamedTuple):
    """The files of the brokers and of their clients, in one directory."""

    directory: Path
    authority: Authority

    def identity(self, name: str) -> Path:
        """A client's key and certificate, in PEM."""
        return self.directory / f"{name}.pem"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    directory = tmp_path_factory.mktemp("files")
    authority, other = Authority(), Authority("Other")
    broker, alice = authority.issue(), authority.issue("CN=alice", names=())
    strangers = {
        "alice": alice,
        "admin": authority.issue("CN=admin", names=()),
        "expired": authority.issue("CN=alice", days=-1),
        "other": other.issue("CN=alice"),
    }
    for name, identity in {"broker": broker, **strangers}.items():
        (directory / f"{name}.pem").write_text(identity.pem())
    (directory / "trust.pem").write_text(pem(authority.certificate))
    for kind in ("JKS", "PKCS12"):
        _write_stores(directory, kind, {"broker": broker, "alice": alice}, authority)
    return Files(directory, authority)


def _write_stores(
    directory: Path, kind: str, identities: Mapping[str, Identity], authority: Authority
) -> None:
    for name, identity in identities.items():
        key_store(directory / f"{name}.{kind}", identity, kind)
    trust_store(directory / f"trust.{kind}", authority, kind=kind)


def _stores(files: Files, kind: str, own: str | None, prefix: str = "") -> dict[str, str]:
    """The settings that name an own key and whom to trust, for a broker or a Java client."""
    found = {"ssl.truststore.type": kind, "ssl.truststore.location": f"trust.{kind}"}
    if own is not None:
        found |= {"ssl.keystore.type": kind, "ssl.keystore.location": f"{own}.{kind}"}
    for name in [name for name in found if name.endswith("location")]:
        found[name] = str(files.directory / found[name].replace(".PEM", ".pem"))
        if kind != "PEM":
            found[name.replace("location", "password")] = PASSWORD
    return {prefix + name: value for name, value in found.items()}


@pytest.fixture(scope="module")
def settings(files: Files) -> dict[str, str]:
    """What both brokers have in server.properties."""
    found = {
        "listener.security.protocol.map": ",".join(
            map(":".join, {**PROTOCOLS, "CONTROLLER": "PLAINTEXT"}.items())
        ),
        "ssl.client.auth": "required",
        **_stores(files, "PEM", "broker"),
        "listener.name.requested.ssl.client.auth": "requested",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.required.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
        "listener.name.suites.ssl.client.auth": "none",
        "listener.name.suites.ssl.cipher.suites": f"{SUITE},TLS_EMPTY_RENEGOTIATION_INFO_SCSV",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    for kind in STORES:
        prefix = f"listener.name.{kind.lower()}."
        found |= _stores(files, kind, "broker", prefix) | {f"{prefix}ssl.client.auth": "none"}
    for listener in ("sasl_ssl", "mutual"):
        found[f"listener.name.{listener}.plain.sasl.jaas.config"] = PLAIN_JAAS
    return found


@pytest.fixture(scope="module")
def tls_broker(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> Iterator[Broker]:
    listeners = ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS)
    broker = ThreadBroker(tmp_path_factory.mktemp("tls"), {**settings, "listeners": listeners})
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(scope="module")
def tls_kafka(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]):
    with running_kafka(tmp_path_factory.mktemp("tls-kafka"), settings, PROTOCOLS) as running:
        yield running


@pytest.fixture(params=["aclbroker", pytest.param("kafka-4.3.0", marks=pytest.mark.thorough)])
def listeners(request: pytest.FixtureRequest) -> dict[str, str]:
    """The addresses of our broker, then of a real Kafka."""
    ours = request.param == "aclbroker"
    found: dict[str, str] = request.getfixturevalue("tls_broker" if ours else "tls_kafka").listeners
    return found


@pytest.fixture(scope="module")
def acl_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("acl-commands") / "stderr")
    yield commands
    commands.close()


CONNECTED = "connected"


def _lists(commands: Commands, directory: Path, address: str, config: Mapping[str, str]) -> str:
    """Whether `kafka-acls.sh --list` connects: `CONNECTED`, or the name of the error."""
    outcome = _outcome(commands, directory, address, config)
    # Who is known, and may not list, is connected.
    return CONNECTED if outcome in ("", "ClusterAuthorizationException") else outcome


def _outcome(commands: Commands, directory: Path, address: str, config: Mapping[str, str]) -> str:
    """What comes of `kafka-acls.sh --list`: nothing, or the name of the error."""
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    options = ("--bootstrap-server", address, "--command-config", str(file))
    printed = commands.run(*options, "--list")
    if (printed.out, printed.status) == ("", 0):
        return ""
    error = re.search(r"org\.apache\.kafka\.common\.errors\.(\w+)", printed.out)
    assert error is not None, printed.out
    return error[1]


def _login(user: str, password: str | None = None) -> dict[str, str]:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{login} username="{user}" password="{password or PASSWORDS[user]}";',
    }


SSL = {"security.protocol": "SSL"}


@pytest.mark.parametrize("kind", STORES)
def test_stores_of_each_format_serve_kafka_acls_with_a_trust_store_of_that_format(
    listeners: dict[str, str], files: Files, acl_commands: Commands, tmp_path: Path, kind: str
) -> None:
    config = {**SSL, **_stores(files, kind, None)}
    assert _lists(acl_commands, tmp_path, listeners[kind], config) == CONNECTED
    config = {**SSL, **_stores(files, kind, "alice")}
    assert _lists(acl_commands, tmp_path, listeners["REQUIRED"], config) == CONNECTED


@pytest.mark.parametrize(
    "version", [pytest.param("TLSv1.2", marks=pytest.mark.thorough), "TLSv1.3"]
)
@pytest.mark.parametrize(
    ("listener", "shown", "expected"),
    [
        ("PEM", None, CONNECTED),
        ("PEM", "other", CONNECTED),
        ("REQUESTED", None, CONNECTED),
        ("REQUESTED", "alice", CONNECTED),
        ("REQUESTED", "expired", "SslAuthenticationException"),
        ("REQUIRED", None, "SslAuthenticationException"),
        ("REQUIRED", "alice", CONNECTED),
        ("REQUIRED", "other", "SslAuthenticationException"),
        ("REQUIRED", "expired", "SslAuthenticationException"),
    ],
)
def test_client_certificates_decide_as_with_a_real_kafka(
    listeners: dict[str, str],
    files: Files,
    acl_commands: Commands,
    tmp_path: Path,
    version: str,
    listener: str,
    shown: str | None,
    expected: str,
) -> None:
    config = {**SSL, **_stores(files, "PEM", shown), "ssl.enabled.protocols": version}
    assert _lists(acl_commands, tmp_path, listeners[listener], config) == expected


@pytest.mark.parametrize(
    ("listener", "shown", "expected"),
    [
        # User:admin is a super user, User:CN=admin is not.
        ("REQUIRED", "admin", ""),
        ("REQUIRED", "alice", "ClusterAuthorizationException"),
        ("REQUESTED", "admin", "ClusterAuthorizationException"),
        ("REQUESTED", None, ""),
    ],
)
def test_the_certificates_name_after_the_mapping_rules_is_the_principal(
    listeners: dict[str, str],
    files: Files,
    acl_commands: Commands,
    tmp_path: Path,
    listener: str,
    shown: str | None,
    expected: str,
) -> None:
    config = {**SSL, **_stores(files, "PEM", shown)}
    assert _outcome(acl_commands, tmp_path, listeners[listener], config) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, CONNECTED),
        ({"ssl.cipher.suites": SUITE}, CONNECTED),
        (
            {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
            "SslAuthenticationException",
        ),
        # Of TLS 1.3 the listener has no suite, and so it does not speak it.
        ({"ssl.enabled.protocols": "TLSv1.3"}, "SslAuthenticationException"),
    ],
)
def test_cipher_suites_decide_as_with_a_real_kafka(
    listeners: dict[str, str],
    files: Files,
    acl_commands: Commands,
    tmp_path: Path,
    asked: dict[str, str],
    expected: str,
) -> None:
    config = {**SSL, **_stores(files, "PEM", None), **asked}
    assert _lists(acl_commands, tmp_path, listeners["SUITES"], config) == expected


@pytest.mark.parametrize("listener", ["REQUESTED", "REQUIRED"])
def test_a_certificate_of_an_unknown_authority_is_refused_where_it_is_only_requested_too(
    listeners: dict[str, str], files: Files, listener: str
) -> None:
    context = client_tls(files.authority)
    context.load_cert_chain(files.identity("other"))
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        Client(listeners[listener], tls=context) as client,
    ):
        client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


@pytest.mark.thorough
def test_difference_clients_are_not_told_which_authorities_are_trusted(
    tls_broker: Broker,
    tls_kafka: Kafka,
    files: Files,
    acl_commands: Commands,
    tmp_path: Path,
) -> None:
    """A Java client that is told keeps the certificate of another authority to itself."""
    config = {**SSL, **_stores(files, "PEM", "other")}
    found = [
        _lists(acl_commands, tmp_path, server.listeners["REQUESTED"], config)
        for server in (tls_broker, tls_kafka)
    ]
    assert found == ["SslAuthenticationException", CONNECTED]


@pytest.mark.parametrize(
    ("listener", "shown", "password", "expected"),
    [
        # The setting without prefix requires certificates, and is for SSL listeners alone.
        ("SASL_SSL", None, None, CONNECTED),
        ("SASL_SSL", "other", None, CONNECTED),
        ("SASL_SSL", None, "guessed", "SaslAuthenticationException"),
        ("MUTUAL", "alice", None, CONNECTED),
        ("MUTUAL", "alice", "guessed", "SaslAuthenticationException"),
        ("MUTUAL", None, None, "SslAuthenticationException"),
        ("MUTUAL", "other", None, "SslAuthenticationException"),
    ],
)
def test_a_sasl_ssl_listener_wants_a_password_and_a_certificate_only_if_its_own_setting_says_so(
    listeners: dict[str, str],
    files: Files,
    acl_commands: Commands,
    tmp_path: Path,
    listener: str,
    shown: str | None,
    password: str | None,
    expected: str,
) -> None:
    config = {**_login("admin", password), **_stores(files, "PEM", shown)}
    assert _lists(acl_commands, tmp_path, listeners[listener], config) == expected


@pytest.mark.broker_process
def test_the_documented_example_works(
    start_broker: StartBroker, acl_commands: Commands, tmp_path: Path
) -> None:
    text = DOCUMENTATION.read_text().partition("\n## TLS\n")[2].partition("\n## ")[0]
    [console] = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = re.sub(r"^\$ ", "", console, flags=re.MULTILINE)
    require("openssl")
    run(["sh", "-ec", commands], cwd=tmp_path)
    server, client = (
        javaproperties.loads(block)
        for block in re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    )
    ports = {
        name: server[name].replace("9093", "0").replace("9094", "0")
        for name in ("listeners", "advertised.listeners")
    }
    # Paths in the examples are those of the working directory.
    client["ssl.truststore.location"] = str(tmp_path / client["ssl.truststore.location"])
    broker = start_broker({**server, **ports})
    address = "localhost:" + broker.listeners["SASL_SSL"].rpartition(":")[2]
    assert _lists(acl_commands, tmp_path, address, client) == CONNECTED


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_lists_acls_through_tls(
    listeners: dict[str, str], files: Files, driver_of: DriverOf, client: str
) -> None:
    driver = driver_of(client)
    ca = str(files.directory / "trust.pem")
    assert driver.step("tls", ca) == Answer(None)
    assert driver.step("connect", listeners["PEM"], "-", "-") == Answer(None)
    assert driver.step("list", EVERYTHING) == Answer([])
    assert driver.step("connect", listeners["SASL_SSL"], "admin", PASSWORDS["admin"]) == (
        Answer(None)
    )
    assert driver.step("list", EVERYTHING) == Answer([])
    assert driver.step("tls", ca, str(files.identity("alice"))) == Answer(None)
    assert driver.step("connect", listeners["MUTUAL"], "admin", PASSWORDS["admin"]) == (
        Answer(None)
    )
    assert driver.step("list", EVERYTHING) == Answer([])


async def test_aiokafka_connects_through_tls(listeners: dict[str, str], files: Files) -> None:
    shown = client_tls(files.authority)
    shown.load_cert_chain(files.identity("alice"))
    for listener, context, user in (
        ("PEM", client_tls(files.authority), None),
        ("REQUIRED", shown, None),
        ("MUTUAL", shown, "admin"),
    ):
        admin = AIOKafkaAdminClient(**_aiokafka(listeners[listener], context, user))
        await admin.start()
        try:
            cluster = await admin.describe_cluster()
        finally:
            await admin.close()
        [broker] = cluster["brokers"]
        assert f"{broker['host']}:{broker['port']}" == listeners[listener]
    refused = AIOKafkaAdminClient(
        **_aiokafka(listeners["REQUIRED"], client_tls(files.authority), None)
    )
    with pytest.raises(KafkaConnectionError):
        await refused.start()
    await refused.close()


def _aiokafka(address: str, context, user: str | None) -> dict[str, object]:
    found = {"bootstrap_servers": address, "ssl_context": context, "security_protocol": "SSL"}
    if user is not None:
        found |= {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": PASSWORDS[user],
        }
    return found
