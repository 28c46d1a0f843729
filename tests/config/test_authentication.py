"""SASL settings, and settings that ask for protection that does not exist here."""

import pytest

from aclbroker.broker.config import shown_settings
from tests.config.conftest import JAAS, LoadError, LoadText, super_users

SASL = "listeners=SASL_PLAINTEXT://127.0.0.1:9092"
PLAIN = "sasl.enabled.mechanisms=PLAIN"
DEFAULT_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


def test_the_security_section_of_a_real_brokers_file_works_unchanged(load_text: LoadText):
    config = load_text(
        SASL,
        "security.inter.broker.protocol=SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        PLAIN,
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        f"principal.builder.class={DEFAULT_BUILDER}",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required \\",
        '    username="admin" password="top-secret-1" \\',
        '    user_admin="top-secret-1" user_alice="top-secret-2";',
        "super.users=User:admin; User:CN=kafka,OU=x",
    )
    [listener] = config.listeners
    assert list(listener.mechanisms) == ["PLAIN"]
    assert listener.mechanisms["PLAIN"] == {"admin": "top-secret-1", "alice": "top-secret-2"}
    assert super_users(config) == {"User:admin", "User:CN=kafka,OU=x"}
    assert config.warnings == ()


def test_a_sasl_listener_without_mechanisms_is_told_that_it_has_kafkas_default(
    load_error: LoadError,
):
    [problem] = load_error(SASL, JAAS).problems
    assert problem.startswith(
        "s.properties:1: listener SASL_PLAINTEXT needs "
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config, "
        "because sasl.enabled.mechanisms is GSSAPI unless it is set; allowed: "
    )


def test_a_sasl_listener_with_unknown_mechanisms_alone_is_told_which_there_are(
    load_error: LoadError,
):
    error = load_error(SASL, "sasl.enabled.mechanisms=DIGEST-MD5", JAAS)
    assert "s.properties:2: sasl.enabled.mechanisms='DIGEST-MD5'" in str(error)
    assert "allowed: PLAIN, " in str(error)


def test_unsupported_mechanisms_are_left_out_with_a_warning(load_text: LoadText):
    config = load_text(SASL, "sasl.enabled.mechanisms=DIGEST-MD5,PLAIN", JAAS, "super.users=User:a")
    assert list(config.listeners[0].mechanisms) == ["PLAIN"]
    assert config.warnings == (
        "s.properties:2: listener SASL_PLAINTEXT offers PLAIN only; no support of DIGEST-MD5",
    )


SCRAM_JAAS = "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_scram_needs_no_users_in_the_file(load_text: LoadText):
    config = load_text(
        SASL,
        "sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN,SCRAM-SHA-256",
        JAAS,
        "super.users=User:a",
    )
    names = ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
    assert list(config.listeners[0].mechanisms) == names
    assert config.warnings == ()


def test_the_scram_section_of_a_real_brokers_file_works_unchanged(load_text: LoadText):
    config = load_text(
        SASL,
        "sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512",
        "sasl.enabled.mechanisms=SCRAM-SHA-512",
        f"{SCRAM_JAAS}={SCRAM_MODULE} required \\",
        '    username="admin" password="top-secret-1";',
        "super.users=User:admin",
    )
    assert list(config.listeners[0].mechanisms) == ["SCRAM-SHA-512"]
    assert config.warnings == ()
    assert "top-secret" not in repr(config)


def test_users_in_the_jaas_text_of_scram_are_told_to_have_no_effect(load_text: LoadText):
    config = load_text(
        SASL,
        "sasl.enabled.mechanisms=SCRAM-SHA-512",
        f'{SCRAM_JAAS}={SCRAM_MODULE} required user_alice="top-secret";',
        "super.users=User:a",
    )
    [warning] = config.warnings
    assert warning.startswith(f"s.properties:3: {SCRAM_JAAS}: user_NAME has no effect")
    assert "top-secret" not in warning


def test_an_error_in_the_jaas_text_of_scram_shows_none_of_it(load_error: LoadError):
    line = f'{SCRAM_JAAS}={SCRAM_MODULE} required password="top-secret'
    error = load_error(SASL, "sasl.enabled.mechanisms=SCRAM-SHA-512", line)
    assert f"s.properties:3: {SCRAM_JAAS}: at character" in str(error)
    assert "top-secret" not in str(error)


def test_another_source_of_scram_credentials_is_refused(load_error: LoadError):
    name = "listener.name.sasl_plaintext.scram-sha-512.sasl.server.callback.handler.class"
    error = load_error(SASL, "sasl.enabled.mechanisms=SCRAM-SHA-512", f"{name}=org.example.Vault")
    assert f"s.properties:3: {name}='org.example.Vault'" in str(error)


def test_settings_of_delegation_tokens(load_text: LoadText):
    config = load_text(
        "listeners=PLAINTEXT://127.0.0.1:9092",
        "super.users=User:a",
        "delegation.token.secret.key=top-secret",
        "delegation.token.max.lifetime.ms=3",
        "delegation.token.expiry.time.ms=2",
        "delegation.token.expiry.check.interval.ms=1",
    )
    assert config.delegation_token_secret_key == "top-secret"
    assert config.delegation_token_max_lifetime_ms == 3
    assert config.delegation_token_expiry_time_ms == 2
    assert config.delegation_token_expiry_check_interval_ms == 1
    assert config.warnings == ()
    assert "top-secret" not in repr(config)
    assert "delegation.token.secret.key" not in shown_settings(config.properties)


@pytest.mark.parametrize("key", ["", "delegation.token.secret.key="])
def test_without_a_secret_key_there_are_no_delegation_tokens(load_text: LoadText, key: str):
    config = load_text("listeners=PLAINTEXT://127.0.0.1:9092", "super.users=User:a", key)
    assert config.delegation_token_secret_key is None
    assert config.delegation_token_max_lifetime_ms == 7 * 24 * 60 * 60 * 1000
    assert config.delegation_token_expiry_time_ms == 24 * 60 * 60 * 1000
    assert config.delegation_token_expiry_check_interval_ms == 60 * 60 * 1000


@pytest.mark.parametrize("value", ["0", "-1", "x", str(2**63)])
def test_life_times_of_tokens_are_positive(load_error: LoadError, value: str):
    name = "delegation.token.max.lifetime.ms"
    error = load_error("listeners=PLAINTEXT://127.0.0.1:9092", f"{name}={value}")
    assert f"s.properties:2: {name}='{value}'" in str(error)


def test_a_sasl_listener_needs_users_of_its_own(load_error: LoadError):
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b";'
    missing = "s.properties:1: listener SASL_PLAINTEXT needs"
    for line in ["", f"plain.sasl.jaas.config={users}", f"sasl.jaas.config={users}"]:
        error = load_error(SASL, PLAIN, line)
        assert f"{missing} listener.name.sasl_plaintext.plain.sasl.jaas.config" in str(error)
        hints = [warning for warning in error.warnings if "no effect, as in Kafka" in warning]
        assert len(hints) == bool(line)


def test_a_listener_that_nobody_can_log_in_to_is_warned_of(load_text: LoadText):
    module = JAAS.partition(" user_admin")[0]
    config = load_text(SASL, PLAIN, f"{module};", "super.users=User:a")
    [warning] = config.warnings
    assert "has no user_NAME entry, so nobody can log in" in warning


@pytest.mark.parametrize(
    "jaas",
    [
        'com.example.LoginModule required user_a="top-secret";',
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="top-secret"',
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="top-secret;',
        'org.apache.kafka.common.security.plain.PlainLoginModule top-secret user_a="a";',
        "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=1top-secret;",
    ],
)
def test_an_error_in_a_jaas_value_shows_none_of_it(load_error: LoadError, jaas: str):
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    error = load_error(SASL, PLAIN, f"{name}={jaas}")
    assert str(error).startswith(f"s.properties:3: {name}: ")
    assert "top-secret" not in str(error) + repr(error)


def test_no_representation_of_a_configuration_shows_a_password(load_text: LoadText):
    config = load_text(
        SASL, PLAIN, JAAS, "listener.name.sasl_plaintext.ssl.key.password=top-secret"
    )
    assert "top-secret" not in repr(config) + str(config)
    assert config.properties["sasl.enabled.mechanisms"] == "PLAIN"


def test_a_password_that_is_read_as_a_name_is_not_shown(load_text: LoadText):
    config = load_text("node.id=1", '"top-secret;"')
    assert "s.properties:2: (not the name of a setting): unknown setting" in config.warnings


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("principal.builder.class=com.example.Groups", "not a class"),
        ("listener.name.sasl_plaintext.principal.builder.class=com.example.G", "not a class"),
        ("listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class=x.Ldap", "another"),
        ("listener.name.sasl_plaintext.ssl.client.auth=required", "has no SSL"),
        ("ssl.client.auth=maybe", "unknown; allowed: none, requested, required"),
        ("authorizer.class.name=io.confluent.Authorizer", "not a class that can be loaded here"),
    ],
)
def test_what_would_silently_be_weaker_than_asked_for_is_refused(
    load_error: LoadError, line: str, reason: str
):
    error = load_error(SASL, PLAIN, JAAS, line)
    name, _, value = line.partition("=")
    [problem] = error.problems
    assert problem.startswith(f"s.properties:4: {name}={value!r}: ")
    assert reason in problem


def test_client_certificates_without_an_ssl_listener_are_warned_of_once(load_text: LoadText):
    config = load_text(
        "listeners=SASL_PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093",
        PLAIN,
        JAAS,
        "ssl.client.auth=required",
        "super.users=User:a",
    )
    assert config.warnings == (
        "s.properties:4: ssl.client.auth='required' has no effect, because no listener has SSL",
    )


def test_a_reference_to_a_config_provider_is_not_taken_for_a_password(load_error: LoadError):
    error = load_error(
        SASL,
        PLAIN,
        "config.providers=file,vault",
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider",
        JAAS.replace("top-secret-2", "${vault:/secrets:alice}"),
    )
    [problem] = error.problems
    assert problem.startswith(
        "s.properties:5: 'listener.name.sasl_plaintext.plain.sasl.jaas.config'"
    )
    assert "config.providers.vault.class='' is not supported; allowed: org.apache" in problem
    assert "top-secret" not in problem
