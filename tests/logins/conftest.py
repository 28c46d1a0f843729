"""An issuer of tokens, a KDC, and the brokers that trust them: ours and a real Kafka for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import access_tokens
from tests.support.broker import Broker
from tests.support.kafka import QUICK_TO_START, Kafka
from tests.support.kdc import REALM, Kdc, require_gssapi, running

RSA, OTHER_RSA = access_tokens.rsa_key("rsa"), access_tokens.rsa_key("other-rsa")
ONLY_RS256 = access_tokens.rsa_key("only-rs256")
P256, P384, P521 = (
    access_tokens.ec_key("p256"),
    access_tokens.ec_key("p384", 384),
    access_tokens.ec_key("p521", 521),
)
ED25519 = access_tokens.ed25519_key("ed25519")
SHORT_RSA = access_tokens.rsa_key("short-rsa", 1024)
FOR_ENCRYPTION = access_tokens.rsa_key("for-encryption")
HMAC_SECRET = b"a secret of thirty-two bytes, no less"

JWKS = access_tokens.jwks(
    RSA,
    OTHER_RSA,
    ONLY_RS256.jwk(alg="RS256", use="sig"),
    P256,
    P384,
    P521,
    ED25519,
    SHORT_RSA,
    FOR_ENCRYPTION.jwk(use="enc"),
    {"kty": "oct", "kid": "hmac", "k": access_tokens.encoded(HMAC_SECRET)},
    {"kty": "unheard-of", "kid": "new"},
)

CLOCK_SKEW = 3600
"""Seconds; long, so that the tokens' times mean the same however late a test runs."""

PREFIX = "listener.name.sasl_plaintext."
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = "kafka/localhost"

OF_BOTH = {
    "connection.failed.authentication.delay.ms": "0",
    "super.users": "User:alice;User:ops-of-carol;User:ANONYMOUS",
}


def token_properties(jwks_url: str) -> dict[str, str]:
    """The part of server.properties that lets in who has a token of the issuer."""
    return {
        **OF_BOTH,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{PREFIX}oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url": jwks_url,
        f"{PREFIX}sasl.oauthbearer.expected.issuer": access_tokens.ISSUER,
        f"{PREFIX}sasl.oauthbearer.expected.audience": f"elsewhere,{access_tokens.AUDIENCE}",
        f"{PREFIX}sasl.oauthbearer.clock.skew.seconds": str(CLOCK_SKEW),
    }


def kerberos_properties(keytab: Path) -> dict[str, str]:
    """The part of server.properties that lets in who has a ticket of the KDC."""
    return {
        **OF_BOTH,
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": (
            f"RULE:[2:$2-of-$1@$0](ops-of-.*@{REALM})s/@.*//,DEFAULT"
        ),
        f"{PREFIX}gssapi.sasl.jaas.config": kerberos_login(keytab, SERVICE),
    }


def kerberos_login(keytab: Path, principal: str) -> str:
    """The value of a sasl.jaas.config for a principal of the realm."""
    return (
        f"{KERBEROS_MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{keytab}" principal="{principal}@{REALM}";'
    )


@contextmanager
def started_kafka(directory: Path, overrides: dict[str, str], *flags: str) -> Iterator[Kafka]:
    """A real Kafka 4.3.0 with some flags of the JVM."""
    kafka = Kafka(directory, flags=(*QUICK_TO_START, *flags), overrides=overrides)
    try:
        kafka.start()
        yield kafka
    finally:
        if kafka.process is not None:
            kafka.kill()


@pytest.fixture(scope="session")
def jwks_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the keys of the issuer are."""
    file = tmp_path_factory.mktemp("issuer") / "jwks.json"
    file.write_text(JWKS)
    return file.as_uri()


@pytest.fixture(scope="session")
def token_broker(jwks_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Our broker for bearers of tokens, which no test gives ACLs."""
    broker = Broker(tmp_path_factory.mktemp("broker"), token_properties(jwks_url))
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def token_kafka(jwks_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A real Kafka for bearers of access_tokens."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks_url}"
    directory = tmp_path_factory.mktemp("kafka")
    with started_kafka(directory, token_properties(jwks_url), allowed) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC with no principals but those that tests make."""
    with running(Kdc(tmp_path_factory.mktemp("kdc"))) as kdc:
        yield kdc


@pytest.fixture(scope="session")
def keytab(kdc: Kdc) -> Path:
    """The keys of the service that both brokers are."""
    return kdc.keytab(SERVICE)


@pytest.fixture(scope="session")
def kerberos_broker(
    kdc: Kdc, keytab: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Our broker for holders of tickets, which no test gives ACLs."""
    require_gssapi()
    listeners = {"listeners": "PLAINTEXT://localhost:0,SASL_PLAINTEXT://localhost:0"}
    properties = {**listeners, **kerberos_properties(keytab)}
    broker = Broker(tmp_path_factory.mktemp("broker"), properties, kdc.environment)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(scope="session")
def kerberos_kafka(
    kdc: Kdc, keytab: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kafka]:
    """A real Kafka for holders of tickets."""
    krb5_conf = f"-Djava.security.krb5.conf={kdc.krb5_conf}"
    directory = tmp_path_factory.mktemp("kafka")
    with started_kafka(directory, kerberos_properties(keytab), krb5_conf) as kafka:
        yield kafka
