"""The settings of OAUTHBEARER."""

import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from aclbroker.broker.auth.sasl.access_token import TokenRules
from aclbroker.broker.config.oauthbearer import OAuthBearerSettings
from tests.config.conftest import LoadError, LoadText
from tests.support.certificates import PASSWORD, Authority, pkcs12_truststore

SASL = "listeners=SASL_PLAINTEXT://127.0.0.1:9092,EXTERNAL://127.0.0.1:9093"
MAP = "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,EXTERNAL:SASL_PLAINTEXT"
MECHANISM = "sasl.enabled.mechanisms=OAUTHBEARER"
JWKS = "sasl.oauthbearer.jwks.endpoint.url=file:///etc/kafka/jwks.json"
LISTENERS = (SASL, MAP, MECHANISM, "super.users=User:admin")
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def settings(load_text: LoadText, *lines: str) -> list[OAuthBearerSettings]:
    config = load_text(*LISTENERS, *lines)
    assert config.warnings == ()
    return [listener.mechanisms["OAUTHBEARER"] for listener in config.listeners]


def test_the_defaults_are_kafkas(load_text: LoadText):
    default = OAuthBearerSettings(
        TokenRules(None, frozenset(), 30, "sub", "scope"),
        "file:///etc/kafka/jwks.json",
        3_600_000,
        100,
        10_000,
    )
    assert settings(load_text, JWKS) == [default, default]


def test_the_section_of_a_real_brokers_file_works_unchanged(load_text: LoadText):
    own = "listener.name.external."
    [others, external] = settings(
        load_text,
        JWKS,
        f"{own}oauthbearer.sasl.jaas.config={MODULE} required;",
        f"{own}oauthbearer.sasl.server.callback.handler.class={HANDLER}",
        f"{own}sasl.oauthbearer.jwks.endpoint.url=https://issuer.example/jwks",
        f"{own}sasl.oauthbearer.jwks.endpoint.refresh.ms=60000",
        f"{own}sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=5",
        f"{own}sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=5",
        f"{own}sasl.oauthbearer.expected.issuer=https://issuer.example",
        f"{own}sasl.oauthbearer.expected.audience=kafka, brokers",
        f"{own}sasl.oauthbearer.clock.skew.seconds=0",
        f"{own}sasl.oauthbearer.sub.claim.name=email",
        f"{own}sasl.oauthbearer.scope.claim.name=scp",
    )
    assert others.jwks_url == "file:///etc/kafka/jwks.json"
    assert others.rules.expected_issuer is None
    assert external == OAuthBearerSettings(
        TokenRules("https://issuer.example", frozenset({"kafka", "brokers"}), 0, "email", "scp"),
        "https://issuer.example/jwks",
        60_000,
        5,
        5,
    )


def test_a_setting_for_the_mechanism_of_a_listener_counts_before_the_listeners(
    load_text: LoadText,
):
    [_, external] = settings(
        load_text,
        JWKS,
        "sasl.oauthbearer.expected.issuer=a",
        "listener.name.external.sasl.oauthbearer.expected.issuer=b",
        "listener.name.external.oauthbearer.sasl.oauthbearer.expected.issuer=c",
    )
    assert external.rules.expected_issuer == "c"


def test_without_keys_the_start_is_refused_and_not_everybody_let_in(load_error: LoadError):
    problems = load_error(*LISTENERS).problems
    assert problems[0] == (
        "s.properties:1: listener SASL_PLAINTEXT needs "
        "listener.name.sasl_plaintext.sasl.oauthbearer.jwks.endpoint.url: "
        "nothing else tells a token of the issuer from one that anybody has made"
    )
    assert len(problems) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("sasl.oauthbearer.jwks.endpoint.url=ftp://issuer.example/", "not a file:, http: or"),
        ("sasl.oauthbearer.jwks.endpoint.url=/etc/jwks.json", "not a file:, http: or"),
        ("sasl.oauthbearer.jwks.endpoint.url=file:jwks.json", "not the absolute path"),
        ("sasl.oauthbearer.jwks.endpoint.url=file://host/jwks.json", "not the absolute path"),
        ("sasl.oauthbearer.jwks.endpoint.url=https:///jwks", "no host"),
        ("sasl.oauthbearer.jwks.endpoint.url=https://[::1/jwks", "Invalid IPv6 URL"),
        ("sasl.oauthbearer.jwks.endpoint.url=https://me@issuer.example/", "a user or a password"),
        ("sasl.oauthbearer.jwks.endpoint.refresh.ms=0", "out of range"),
        ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=99", "less than"),
        ("sasl.oauthbearer.clock.skew.seconds=-1", "out of range"),
        ("sasl.oauthbearer.sub.claim.name=", "empty"),
        ("sasl.oauthbearer.jwt.validator.class=com.example.Validator", "unknown"),
        (
            "listener.name.external.oauthbearer.sasl.server.callback.handler.class=com.example.H",
            "unknown",
        ),
        ("listener.name.external.oauthbearer.sasl.oauthbearer.clock.skew.seconds=x", "not an int"),
    ],
)
def test_what_cannot_be_is_refused(load_error: LoadError, line: str, reason: str):
    lines = () if line.startswith("sasl.oauthbearer.jwks.endpoint.url") else (JWKS,)
    error = load_error(*LISTENERS, line, *lines)
    name, _, value = line.partition("=")
    shown = value.replace("me@", "***@")  # what may be a login is not repeated
    assert error.problems[0].startswith(f"s.properties:5: {name}={shown!r}: ")
    assert reason in error.problems[0]


JAAS = "listener.name.external.oauthbearer.sasl.jaas.config"


def test_an_https_endpoint_may_be_known_by_a_trust_store(load_text: LoadText, tmp_path: Path):
    authority = Authority()
    store = tmp_path / "trust.p12"
    store.write_bytes(pkcs12_truststore(authority.certificate))
    options = f'ssl.truststore.location="{store}" ssl.truststore.password="{PASSWORD}"'
    [others, external] = settings(
        load_text,
        "sasl.oauthbearer.jwks.endpoint.url=https://issuer.example/jwks",
        f"{JAAS}={MODULE} required {options};",
    )
    assert external.trusted == authority.certificate.public_bytes(Encoding.DER)
    assert others.trusted is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("ssl.truststore.location=/nowhere", "ssl.truststore.location: cannot be read: No such"),
        ("ssl.truststore.type=BKS", "ssl.truststore.type is not JKS, PKCS12 or PEM"),
        ("ssl.truststore.password=top-secret", "ssl.truststore.password: it needs ssl.trust"),
        ("ssl.truststore.type=PEM", "ssl.truststore: there is no certificate in it"),
        ("ssl.keystore.location=/etc/kafka/client.p12", "the option ssl.keystore.location is not"),
        (
            'ssl.endpoint.identification.algorithm=""',
            "the option ssl.endpoint.identification.algorithm is not supported",
        ),
    ],
)
def test_tls_with_the_endpoint_is_never_weaker_than_asked_for(
    load_error: LoadError, options: str, reason: str
):
    quoted = re.sub(r"=([^\"].*)", r'="\1"', options)
    [problem] = load_error(*LISTENERS, JWKS, f"{JAAS}={MODULE} required {quoted};").problems
    assert problem.startswith(f"s.properties:6: {JAAS}: {reason}")
    assert "top-secret" not in problem


@pytest.mark.parametrize("jaas", ["x.Y required a=top-secret;", f"{MODULE} required a=top-secret"])
def test_a_jaas_value_of_another_kind_is_refused_and_not_shown(load_error: LoadError, jaas: str):
    name = "listener.name.external.oauthbearer.sasl.jaas.config"
    error = load_error(*LISTENERS, JWKS, f"{name}={jaas}")
    [problem] = error.problems
    assert problem.startswith(f"s.properties:6: {name}: ")
    assert "top-secret" not in str(error)
