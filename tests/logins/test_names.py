"""The way into a listener: whom its settings make of certificates and Kerberos names."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.config import load
from aclbroker.broker.logins import listeners
from aclbroker.broker.logins.jwks_source import KeySources
from aclbroker.broker.logins.listeners import LoginServices
from tests.auth.certificates import UTF8, certificate, name

COMMON_NAME, ORGANIZATIONAL_UNIT = "2.5.4.3", "2.5.4.11"
CERTIFICATE = certificate(
    name([[(ORGANIZATIONAL_UNIT, UTF8, b"ServiceUsers")], [(COMMON_NAME, UTF8, b"Duke")]])
)
SSL_RULES = "ssl.principal.mapping.rules"
KERBEROS_RULES = "sasl.kerberos.principal.to.local.rules"


def login(settings: dict[str, str], **listener: Any) -> Login:
    """The way into the only listener of a configuration, with fields of it replaced."""
    config = load(None, settings)
    changed = dataclasses.replace(config.listeners[0], **listener)
    [made] = listeners.logins(
        dataclasses.replace(config, listeners=(changed,)), LoginServices(None, KeySources())
    ).values()
    return made


def test_a_certificate_is_named_by_the_listeners_rules():
    rules = {SSL_RULES: "RULE:^CN=(.*?),OU=ServiceUsers$/$1/L"}
    session = login(rules, security_protocol="SSL").session(
        "127.0.0.1", peer_certificate=CERTIFICATE
    )
    assert session.principals == ("User:duke",)


def test_a_certificate_that_no_rule_matches_is_refused():
    way = login({SSL_RULES: "RULE:^CN=Other$/other/"}, security_protocol="SSL")
    with pytest.raises(AuthenticationFailed) as error:
        way.session("127.0.0.1", peer_certificate=CERTIFICATE)
    assert "CN=Duke,OU=ServiceUsers" in error.value.reason
    assert "Duke" not in str(error.value)
    with pytest.raises(AuthenticationFailed):
        way.session("127.0.0.1", peer_certificate=CERTIFICATE[:100])


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A krb5.conf that Kerberos is told of; the mechanism itself is not what is tested."""
    file = tmp_path / "krb5.conf"
    file.write_text("[libdefaults]\ndefault_realm = EXAMPLE.COM\n")
    monkeypatch.setenv("KRB5_CONFIG", str(file))
    monkeypatch.setitem(listeners._MECHANISMS, "GSSAPI", lambda settings, credentials: lambda: None)
    return file


def kerberos_login() -> Login:
    settings = {KERBEROS_RULES: "RULE:[2:$2.$1@$0](.*@OTHER.COM)s/@.*//,DEFAULT"}
    return login(settings, security_protocol="SASL_PLAINTEXT", mechanisms={"GSSAPI": None})


def kerberos_principal(name: str) -> str:
    session = kerberos_login().session("127.0.0.1", mechanism="GSSAPI", identity=Identity(name))
    return session.principals[0]


@pytest.mark.usefixtures("realm")
def test_a_kerberos_name_is_shortened_by_the_listeners_rules_and_the_default_realm():
    assert kerberos_principal("kafka/host@OTHER.COM") == "User:host.kafka"
    assert kerberos_principal("alice@EXAMPLE.COM") == "User:alice"
    for nobody in ("alice@OTHER.COM", "a/b/c@EXAMPLE.COM"):
        with pytest.raises(AuthenticationFailed):
            kerberos_principal(nobody)


def test_a_krb5_conf_that_cannot_be_read_stops_the_start(realm: Path):
    realm.unlink()
    realm.mkdir()
    with pytest.raises(ValueError, match=r"the default realm of Kerberos cannot be read: .*krb5"):
        kerberos_login()


def test_without_kerberos_its_configuration_is_not_read(realm: Path):
    realm.unlink()
    realm.mkdir()
    assert login({KERBEROS_RULES: "DEFAULT"}).session("127.0.0.1").principals == ("User:ANONYMOUS",)
