"""An issuer of tokens, and the brokers that trust it: ours and a real Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import tokens
from tests.support.broker import Broker
from tests.support.kafka import QUICK_TO_START, Kafka

RSA, OTHER_RSA = tokens.rsa_key("rsa"), tokens.rsa_key("other-rsa")
ONLY_RS256 = tokens.rsa_key("only-rs256")
P256, P384, P521 = tokens.ec_key("p256"), tokens.ec_key("p384", 384), tokens.ec_key("p521", 521)
ED25519 = tokens.ed25519_key("ed25519")
SHORT_RSA = tokens.rsa_key("short-rsa", 1024)
FOR_ENCRYPTION = tokens.rsa_key("for-encryption")
HMAC_SECRET = b"a secret of thirty-two bytes, no less"

JWKS = tokens.jwks(
    RSA,
    OTHER_RSA,
    ONLY_RS256.jwk(alg="RS256", use="sig"),
    P256,
    P384,
    P521,
    ED25519,
    SHORT_RSA,
    FOR_ENCRYPTION.jwk(use="enc"),
    {"kty": "oct", "kid": "hmac", "k": tokens.encoded(HMAC_SECRET)},
    {"kty": "unheard-of", "kid": "new"},
)

CLOCK_SKEW = 3600
"""Seconds; long, so that the tokens' times mean the same however late a test runs."""

PREFIX = "listener.name.sasl_plaintext."
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

OF_BOTH = {
    "connection.failed.authentication.delay.ms": "0",
    "super.users": "User:alice;User:ANONYMOUS",
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
        f"{PREFIX}sasl.oauthbearer.expected.issuer": tokens.ISSUER,
        f"{PREFIX}sasl.oauthbearer.expected.audience": f"elsewhere,{tokens.AUDIENCE}",
        f"{PREFIX}sasl.oauthbearer.clock.skew.seconds": str(CLOCK_SKEW),
    }


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
    """A real Kafka for bearers of tokens."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks_url}"
    directory = tmp_path_factory.mktemp("kafka")
    with started_kafka(directory, token_properties(jwks_url), allowed) as kafka:
        yield kafka
