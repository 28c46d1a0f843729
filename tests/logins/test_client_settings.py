"""Each mechanism of the broker is one of the command line's client, set as Kafka's clients are."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from aclbroker.broker.client.acls import describe_acls
from aclbroker.broker.client.errors import (
    AuthenticationRefused,
    ClientConfigError,
    ClientError,
    RequestRefused,
    TlsFailed,
    Unreachable,
)
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.conftest import StartBroker
from tests.logins.conftest import (
    KERBEROS_MODULE,
    OAUTHBEARER_MODULE,
    RSA,
    kerberos_login,
)
from tests.support.access_tokens import claims, token
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.certificates import PASSWORD, Authority, pem
from tests.support.kafka import Kafka, free_ports
from tests.support.kdc import Kdc, require_gssapi
from tests.support.keytool import key_store, trust_store
from tests.support.tables import check_each

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule"
SCRAM = f"{SECURITY}.scram.ScramLoginModule"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

Lists = Callable[..., None]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker to which no test of this module adds ACLs."""
    running = Broker(tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.terminate()


@pytest.fixture
def lists(tmp_path: Path) -> Lists:
    """Lists all ACLs of a broker as who the settings say; raises what `open_session` raises."""

    def listed(address: str, properties: Mapping[str, str]) -> None:
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        with open_session(read_addresses(address), read_settings(str(file))) as session:
            assert describe_acls(session) == []

    return listed


def sasl(mechanism: str, jaas: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{jaas};",
    }


def user(module: str, name: str, password: str, more: str = "") -> str:
    return f'{module} required username="{name}" password="{password}"{more}'


@pytest.mark.parametrize("server", ["broker", "kafka"])
def test_plain_logs_in_and_a_wrong_password_is_told(
    server: str, lists: Lists, request: pytest.FixtureRequest
) -> None:
    target: Broker | Kafka = request.getfixturevalue(server)
    address = target.listeners["SASL_PLAINTEXT"]
    admin = sasl("PLAIN", user(PLAIN, "admin", PASSWORDS["admin"]))
    if server == "broker":
        lists(address, admin)
    with pytest.raises(AuthenticationRefused, match="Invalid username or password"):
        lists(address, sasl("PLAIN", user(PLAIN, "admin", "guessed")))
    with pytest.raises(RequestRefused, match=r"DESCRIBE|denied") as refused:
        lists(address, sasl("PLAIN", user(PLAIN, "alice", PASSWORDS["alice"])))
    assert refused.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_mechanism_that_the_broker_has_not_is_told_with_those_that_it_has(
    broker: Broker, lists: Lists
) -> None:
    login = sasl("SCRAM-SHA-256", user(SCRAM, "admin", "secret"))
    with pytest.raises(RequestRefused, match=r"enabled mechanisms are \[PLAIN\]"):
        lists(broker.listeners["SASL_PLAINTEXT"], login)


@pytest.fixture
def scram_broker(start_broker: StartBroker, tmp_path: Path) -> Broker:
    return start_broker(
        {
            "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
            "super.users": "User:admin;User:ANONYMOUS;User:s=cr,am",
            "delegation.token.secret.key": "the secret key of all tokens",
        }
    )


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_scram_logs_in_users_and_delegation_tokens(
    mechanism: str, scram_broker: Broker, lists: Lists, tmp_path: Path
) -> None:
    from aclbroker.broker.credentials.scram_users import upsertion_of
    from aclbroker.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
    )

    with open_session(
        read_addresses(scram_broker.listeners["PLAINTEXT"]), read_settings(None)
    ) as session:
        change = upsertion_of("s=cr,am", "sécret", mechanism, 4096)
        request = AlterUserScramCredentialsRequest([], [change])
        [result] = session.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request).results
        assert result.error_code == 0
    address = scram_broker.listeners["SASL_PLAINTEXT"]
    lists(address, sasl(mechanism, user(SCRAM, "s=cr,am", r"s\u00e9cret")))
    with pytest.raises(AuthenticationRefused, match="SASL mechanism SCRAM"):
        lists(address, sasl(mechanism, user(SCRAM, "s=cr,am", "guessed")))

    file = tmp_path / "admin.properties"
    admin = sasl("PLAIN", user(PLAIN, "admin", PASSWORDS["admin"]))
    file.write_text("".join(f"{name}={value}\n" for name, value in admin.items()))
    with open_session(read_addresses(address), read_settings(str(file))) as session:
        answer = session.ask(
            ApiKey.CREATE_DELEGATION_TOKEN,
            CreateDelegationTokenRequest(None, None, [], -1),
        )
    secret = b64encode(answer.hmac).decode()
    lists(address, sasl(mechanism, user(SCRAM, answer.token_id, secret, " tokenauth=true")))
    with pytest.raises(AuthenticationRefused):
        lists(address, sasl(mechanism, user(SCRAM, answer.token_id, secret)))


def oauth(options: str = "", **properties: str) -> dict[str, str]:
    names = {f"sasl.oauthbearer.{name.replace('_', '.')}": properties[name] for name in properties}
    return sasl("OAUTHBEARER", f"{OAUTHBEARER_MODULE} required {options}") | names


def test_an_access_token_comes_from_a_file(
    token_broker: Broker, lists: Lists, tmp_path: Path
) -> None:
    file = tmp_path / "a token"
    url = file.as_uri()
    file.write_text(token(RSA) + "\n")
    address = token_broker.listeners["SASL_PLAINTEXT"]
    lists(address, oauth(token_endpoint_url=url))
    lists(address, oauth('extension_traceId="123"', token_endpoint_url=url))
    file.write_text(token(RSA, claims("bob")))
    with pytest.raises(RequestRefused):
        lists(address, oauth(token_endpoint_url=url))
    file.write_text(token(RSA, claims(exp=1)))
    with pytest.raises(AuthenticationRefused, match=r"invalid_token"):
        lists(address, oauth(token_endpoint_url=url))
    file.unlink()
    with pytest.raises(AuthenticationRefused, match="No such file"):
        lists(address, oauth(token_endpoint_url=url))


@pytest.fixture
def token_endpoint() -> Iterator[str]:
    """The URL of an authorization server, which knows one client."""

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            basic = b64encode(b"the client:the secret").decode()
            known = self.headers["Authorization"] == f"Basic {basic}"
            asked = body == "grant_type=client_credentials&scope=acls"
            moved = self.path == "/moved"
            self.send_response(302 if moved else 200 if known and asked else 401)
            if moved:
                self.send_header("Location", "/token")
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": token(RSA)}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_an_access_token_comes_from_an_endpoint_for_a_client_and_its_secret(
    token_broker: Broker, lists: Lists, token_endpoint: str
) -> None:
    address = token_broker.listeners["SASL_PLAINTEXT"]
    client = {
        "client_credentials_client_id": "the client",
        "client_credentials_client_secret": "the secret",
        "scope": "acls",
    }
    lists(address, oauth(token_endpoint_url=token_endpoint, **client))
    options = 'clientId="the client" clientSecret="the secret" scope="acls"'
    lists(address, oauth(options, token_endpoint_url=token_endpoint))
    with pytest.raises(AuthenticationRefused, match="answered 401"):
        lists(address, oauth(token_endpoint_url=token_endpoint, **{**client, "scope": "other"}))
    moved = token_endpoint.replace("/token", "/moved")
    with pytest.raises(AuthenticationRefused, match=r"answered 302"):
        lists(address, oauth(token_endpoint_url=moved, **client))
    with pytest.raises(ClientConfigError, match=r"client\.id and .*secret"):
        lists(address, oauth(token_endpoint_url=token_endpoint))


def test_an_unsecured_token_is_sent_and_refused(token_broker: Broker, lists: Lists) -> None:
    address = token_broker.listeners["SASL_PLAINTEXT"]
    with pytest.raises(AuthenticationRefused, match=r"invalid_token"):
        lists(address, oauth('unsecuredLoginStringClaim_sub="alice"'))
    with pytest.raises(ClientConfigError, match="unsecuredLoginStringClaim_sub"):
        lists(address, oauth())


def test_kerberos_logs_in_with_a_key_tab(
    kdc: Kdc, kerberos_broker: Broker, lists: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_gssapi()
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)
    address = kerberos_broker.listeners["SASL_PLAINTEXT"].replace("127.0.0.1", "localhost")
    service = {"sasl.kerberos.service.name": "kafka"}

    def login(principal: str) -> dict[str, str]:
        jaas = kerberos_login(kdc.keytab(principal), principal).removesuffix(";")
        return {**sasl("GSSAPI", jaas), **service}

    lists(address, login("alice"))
    with pytest.raises(RequestRefused):
        lists(address, login("dora"))
    without_keys = sasl("GSSAPI", f"{KERBEROS_MODULE} required useTicketCache=true")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{kdc.directory}/nobody")
    with pytest.raises(AuthenticationRefused, match=r"(?i)credential"):
        lists(address, {**without_keys, **service})
    with pytest.raises(ClientConfigError, match=r"service\.name"):
        lists(address, without_keys)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls_broker(start_broker: StartBroker, tmp_path: Path, authority: Authority) -> Broker:
    own, trusted = tmp_path / "broker.pem", tmp_path / "trust.pem"
    own.write_text(authority.issue(names=("localhost",)).pem())
    trusted.write_text(pem(authority.certificate))
    return start_broker(
        {
            "listeners": "SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_JAAS,
        }
    )


@pytest.mark.parametrize("kind", ["PEM", "JKS", "PKCS12"])
def test_a_client_certificate_logs_in_from_stores_of_each_kind(
    kind: str, tls_broker: Broker, authority: Authority, lists: Lists, tmp_path: Path
) -> None:
    admin = authority.issue("CN=admin", names=())
    own, trusted = tmp_path / f"own.{kind}", tmp_path / f"trust.{kind}"
    stores = {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
    if kind == "PEM":
        own.write_text(admin.pem())
        trusted.write_text(pem(authority.certificate))
    else:
        key_store(own, admin, kind)
        trust_store(trusted, authority, kind=kind)
        stores |= {"ssl.keystore.password": PASSWORD, "ssl.truststore.password": PASSWORD}
    stores |= {"ssl.keystore.location": str(own), "ssl.truststore.location": str(trusted)}
    address = tls_broker.listeners["SSL"].replace("127.0.0.1", "localhost")
    lists(address, {"security.protocol": "ssl", **stores})
    without_own = {name: stores[name] for name in stores if "keystore" not in name}
    with pytest.raises(TlsFailed, match=r"certificate required"):
        lists(address, {"security.protocol": "SSL", **without_own})


def test_the_brokers_certificate_must_be_trusted_and_have_the_hosts_name(
    tls_broker: Broker, authority: Authority, lists: Lists, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(pem(authority.certificate))
    login = sasl("PLAIN", user(PLAIN, "admin", PASSWORDS["admin"]), "SASL_SSL") | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
    }
    by_number = tls_broker.listeners["SASL_SSL"]
    by_name = by_number.replace("127.0.0.1", "localhost")
    lists(by_name, login)
    with pytest.raises(TlsFailed, match=r"(?i)ip address mismatch"):
        lists(by_number, login)
    lists(by_number, {**login, "ssl.endpoint.identification.algorithm": ""})
    trusted.write_text(pem(Authority("Other").certificate))
    with pytest.raises(TlsFailed, match="handshake failed"):
        lists(by_name, login)


def test_what_is_secret_may_stand_in_another_file(
    broker: Broker, lists: Lists, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"password={PASSWORDS['admin']}\n")
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    login = sasl("PLAIN", user(PLAIN, "admin", f"${{file:{secrets}:password}}"))
    providers = {"config.providers": "file", "config.providers.file.class": provider}
    lists(broker.listeners["SASL_PLAINTEXT"], {**providers, **login})


NOT_HONOURED: tuple[tuple[dict[str, str], str], ...] = (
    ({"security.protocol": "TLS"}, "allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.jaas.config is missing"),
    (sasl("PLAIN", f"{PLAIN} required username=a"), "there is no password"),
    (sasl("PLAIN", user(SCRAM, "a", "secret")), "the login module of PLAIN is Plain"),
    (sasl("DIGEST-MD5", user(PLAIN, "a", "secret")), "allowed: PLAIN, SCRAM-SHA-256"),
    ({"request.timeout.ms": "soon"}, "allowed: milliseconds"),
    ({"ssl.engine.factory.class": "org.example.Factory"}, "cannot do that"),
    (
        {"sasl.login.callback.handler.class": "org.example.Handler"},
        "OAuthBearerLoginCallbackHandler",
    ),
    ({"security.protocol": "SSL", "ssl.truststore.type": "BKS"}, "allowed: JKS, PEM, PKCS12"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "/none"}, "cannot be read"),
    ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "TLSv1.2, TLSv1.3"),
    (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"},
        "allowed: https, or empty",
    ),
    (oauth(token_endpoint_url="ftp://a/b"), "a URL of http, https or file"),
    (oauth('unsecuredLoginStringClaim_sub="a" extension_auth="x"'), "other than auth"),
)


def test_a_setting_that_cannot_be_honoured_is_refused_without_its_secrets(
    broker: Broker, lists: Lists
) -> None:
    def check(case: tuple[dict[str, str], str]) -> None:
        properties, said = case
        with pytest.raises(ClientConfigError) as refused:
            lists(broker.listeners["PLAINTEXT"], properties)
        assert said in str(refused.value)
        assert "secret" not in str(refused.value)

    check_each(NOT_HONOURED, check)


def test_a_name_that_no_client_of_kafkas_has_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechansim=PLAIN\nretries=3\n")
    [warning] = read_settings(str(file)).warnings
    assert "'sasl.mechansim' is no setting of Kafka's clients" in warning


def test_an_empty_file_is_a_client_without_a_login(broker: Broker, lists: Lists) -> None:
    lists(broker.listeners["PLAINTEXT"], {})


def test_of_several_addresses_the_first_that_answers_counts_and_else_each_has_its_reason(
    broker: Broker, lists: Lists
) -> None:
    nobody, nobody_else = (f"127.0.0.1:{port}" for port in free_ports(2))
    lists(f"{nobody}, {broker.listeners['PLAINTEXT']}", {})
    with pytest.raises(Unreachable) as refused:
        lists(f"{nobody},{nobody_else}", {})
    assert f"{nobody}: Connection refused; {nobody_else}: Connection refused" == str(refused.value)
    assert isinstance(refused.value, ClientError)
