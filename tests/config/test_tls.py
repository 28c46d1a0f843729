"""TLS settings of listeners: by listener, refused where they cannot be used, and never shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.conftest import JAAS, LoadError, LoadText
from tests.support.certificates import PASSWORD, Authority, pem

SSL = "listeners=SSL://127.0.0.1:9093"
ADMIN = "super.users=User:admin"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def stores(tmp_path: Path, authority: Authority) -> list[str]:
    """Lines that name a key store and a trust store, which are there."""
    identity = authority.issue()
    (tmp_path / "key.p12").write_bytes(identity.pkcs12())
    (tmp_path / "key.pem").write_text(identity.pem())
    (tmp_path / "trust.pem").write_text(pem(authority.certificate))
    return [
        "ssl.keystore.location=key.p12",
        f"ssl.keystore.password={PASSWORD}",
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=trust.pem",
    ]


def test_a_listener_has_its_own_settings_before_the_brokers_one_by_one(
    load_text: LoadText, stores: list[str]
) -> None:
    config = load_text(
        "listeners=SSL://127.0.0.1:9093,INTERNAL://127.0.0.1:9094,PLAINTEXT://127.0.0.1:9092",
        "listener.security.protocol.map=SSL:SSL,INTERNAL:SSL,PLAINTEXT:PLAINTEXT",
        *stores,
        "ssl.client.auth=required",
        "listener.name.internal.ssl.client.auth=requested",
        "listener.name.internal.ssl.enabled.protocols=TLSv1.3",
        ADMIN,
    )
    ssl, internal, plaintext = (listener.tls for listener in config.listeners)
    assert ssl is not None
    assert internal is not None
    assert plaintext is None
    assert (ssl.client_auth, internal.client_auth) == ("required", "requested")
    assert (ssl.enabled_protocols, internal.enabled_protocols) == (
        ("TLSv1.2", "TLSv1.3"),
        ("TLSv1.3",),
    )
    assert ssl.keystore_location == internal.keystore_location == "key.p12"
    assert config.warnings == ()
    assert PASSWORD not in repr(config)


def test_the_brokers_client_auth_is_not_for_sasl_ssl_listeners(
    load_text: LoadText, stores: list[str]
) -> None:
    lines = [
        "listeners=SASL_SSL://127.0.0.1:9093",
        "sasl.enabled.mechanisms=PLAIN",
        JAAS.replace("sasl_plaintext", "sasl_ssl"),
        *stores,
        ADMIN,
        "ssl.client.auth=required",
    ]
    config = load_text(*lines)
    [listener] = config.listeners
    assert listener.tls is not None
    assert listener.tls.client_auth == "none"
    [warning] = config.warnings
    assert warning.endswith(
        "ssl.client.auth='required' has no effect on the SASL_SSL listener SASL_SSL, as in Kafka; "
        "write listener.name.sasl_ssl.ssl.client.auth"
    )
    config = load_text(*lines, "listener.name.sasl_ssl.ssl.client.auth=required")
    [listener] = config.listeners
    assert listener.tls is not None
    assert listener.tls.client_auth == "required"
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "default: ssl.keystore.location='': listener SSL: a listener with TLS needs"),
        (
            ["ssl.keystore.location=missing.p12", "ssl.keystore.password=x"],
            "s.properties:2: ssl.keystore.location='missing.p12': listener SSL: cannot be read: "
            "No such file or directory",
        ),
        (
            ["ssl.keystore.location=key.p12", "listener.name.ssl.ssl.keystore.password=guessed"],
            "s.properties:3: listener.name.ssl.ssl.keystore.password: listener SSL: key.p12: "
            "the password does not open it",
        ),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.location=key.pem", "ssl.key.password=guessed"],
            "s.properties:4: ssl.key.password: listener SSL: key.pem: the private key is not "
            "encrypted",
        ),
        (
            ["ssl.keystore.type=BCFKS"],
            "s.properties:2: ssl.keystore.type='BCFKS': unknown; allowed: JKS, PKCS12, PEM",
        ),
        (
            ["ssl.enabled.protocols=TLSv1.2,TLSv1.1"],
            "s.properties:2: ssl.enabled.protocols='TLSv1.2,TLSv1.1': TLSv1.1 is broken, and must "
            "not be used any more (RFC 8996); allowed: TLSv1.2, TLSv1.3",
        ),
        (["ssl.enabled.protocols=TLS"], "'TLS' is no version of TLS that is spoken here"),
        (["ssl.protocol=SSLv3"], "ssl.protocol='SSLv3': unknown"),
        (["ssl.engine.factory.class=com.example.Vault"], "another factory is not supported"),
        (["ssl.trustmanager.algorithm=TrustAll"], "another way to trust certificates"),
        (
            [
                "ssl.keystore.type=PEM",
                "ssl.keystore.location=key.pem",
                "ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256",
            ],
            "s.properties:4: ssl.cipher.suites='TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
            "TLS_AES_128_GCM_SHA256': listener SSL: the suites of TLS 1.3 cannot be offered one",
        ),
        (
            [
                "ssl.keystore.type=PEM",
                "ssl.keystore.location=key.pem",
                "listener.name.ssl.ssl.client.auth=required",
            ],
            "s.properties:4: listener.name.ssl.ssl.client.auth='required': listener SSL: there is "
            "no certificate to trust",
        ),
    ],
)
def test_what_cannot_be_used_stops_the_start_and_names_setting_and_place(
    load_error: LoadError, stores: list[str], lines: list[str], problem: str
) -> None:
    assert stores
    error = load_error(SSL, *lines)
    assert problem in str(error)
    assert "guessed" not in str(error)


def test_what_an_operator_should_know_of_a_certificate_is_a_warning(
    load_text: LoadText, stores: list[str], authority: Authority
) -> None:
    Path("key.p12").write_bytes(authority.issue(days=-1).pkcs12())
    config = load_text(SSL, *stores, ADMIN)
    [warning] = config.warnings
    assert warning.startswith("listener SSL: the certificate of CN=localhost expired on ")


def test_tls_settings_of_a_listener_without_tls_are_warned_of(load_text: LoadText) -> None:
    config = load_text(
        "listeners=PLAINTEXT://127.0.0.1:9092",
        "listener.name.plaintext.ssl.keystore.location=key.p12",
        ADMIN,
    )
    assert config.warnings == (
        "s.properties:2: listener.name.plaintext.ssl.keystore.location: no effect, because "
        "listener PLAINTEXT has no SSL",
    )


@pytest.mark.parametrize(
    ("client_auth", "warned"), [("none", True), ("requested", True), ("required", False)]
)
def test_anonymous_super_users_are_warned_of_where_certificates_are_not_required(
    load_text: LoadText, stores: list[str], client_auth: str, warned: bool
) -> None:
    config = load_text(
        "listeners=SSL://:9093",
        *stores,
        f"ssl.client.auth={client_auth}",
        "super.users=User:ANONYMOUS",
    )
    found = [each for each in config.warnings if "whoever reaches listener SSL" in each]
    assert bool(found) is warned


def test_a_broker_without_tls_does_not_load_what_tls_needs() -> None:
    program = (
        "import sys, aclbroker.cli, aclbroker.broker.server.run;"
        "from aclbroker.broker.config import load; load();"
        "print([name for name in sys.modules if name.startswith('cryptography')])"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
