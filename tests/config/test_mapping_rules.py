"""The settings that map names to principals: what they become, and what stops the start."""

import re
from pathlib import Path

import pytest

from aclbroker.broker.config.authentication import read_mapping_rules
from aclbroker.broker.config.reader import Reader, Report
from tests.config.conftest import JAAS, LoadError, LoadText

SASL = ("listeners=SASL_PLAINTEXT://127.0.0.1:9092", "sasl.enabled.mechanisms=PLAIN", JAAS)
SSL_RULES = "ssl.principal.mapping.rules"
KERBEROS_RULES = "sasl.kerberos.principal.to.local.rules"


def test_rules_are_the_listeners_own_before_the_brokers(load_text: LoadText):
    config = load_text(
        "listeners=A://127.0.0.1:9092,B://127.0.0.1:9093",
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
        f"{SSL_RULES}=RULE:^CN=(.*?),.*$/$1/, DEFAULT",
        f"listener.name.b.{SSL_RULES}=RULE:^CN=(.*?),.*$/$1/U",
        f"{KERBEROS_RULES}=RULE:[1:$1@$0](.*@MYDOMAIN.COM)s/@.*//,DEFAULT",
        f"listener.name.b.{KERBEROS_RULES}=RULE:[1:$1]",
        "super.users=User:a",
    )
    [warning] = config.warnings
    assert warning.endswith("no effect, because listener B has no SSL")
    first, second = config.listeners
    assert first.ssl_principal_mapping_rules is not None
    assert first.ssl_principal_mapping_rules.name("CN=a,O=b") == "a"
    assert second.ssl_principal_mapping_rules is not None
    assert second.ssl_principal_mapping_rules.name("CN=a,O=b") == "A"
    assert [rule.text for rule in first.sasl_kerberos_principal_to_local_rules or ()] == [
        "RULE:[1:$1@$0](.*@MYDOMAIN.COM)s/@.*//",
        "DEFAULT",
    ]
    assert [rule.text for rule in second.sasl_kerberos_principal_to_local_rules or ()] == [
        "RULE:[1:$1]"
    ]


def test_a_listener_that_needs_none_has_none_unless_they_are_set(load_text: LoadText):
    [listener] = load_text(*SASL).listeners
    assert listener.ssl_principal_mapping_rules is None
    assert listener.sasl_kerberos_principal_to_local_rules is None


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        (
            SSL_RULES,
            "DEFAULT,RULE:^CN=(.*/$1/L",
            "'RULE:^CN=(.*/$1/L' is no rule: at character 18: a group that is not closed; allowed: "
            "DEFAULT, RULE:pattern/replacement/",
        ),
        (
            KERBEROS_RULES,
            "DEFAULT, RULE:[1:$2]",
            "'RULE:[1:$2]' is no rule: at character 18: expected $ and a number from 0 to 1; "
            "allowed: DEFAULT, RULE:[n:string](regexp)s/pattern/replacement/g/[LU]",
        ),
    ],
)
@pytest.mark.parametrize("prefix", ["", "listener.name.sasl_plaintext."])
def test_a_rule_that_does_not_parse_stops_the_start(
    load_error: LoadError, prefix: str, setting: str, value: str, problem: str
):
    [told] = load_error(*SASL, f"{prefix}{setting}={value}").problems
    assert told.startswith(f"s.properties:4: {prefix}{setting}={value!r}: {problem}")


def test_a_listener_that_needs_rules_has_those_of_the_default():
    reader = Reader({}, Report())
    certificates = read_mapping_rules(reader, SSL_RULES, "SSL", needed=True)
    assert certificates.name("CN=a") == "CN=a"
    [kerberos] = read_mapping_rules(reader, KERBEROS_RULES, "SASL_SSL", needed=True)
    assert kerberos.apply(["REALM", "alice"], "REALM") == "alice"
    assert reader.report.problems == reader.report.warnings == []


def test_rules_that_name_nobody_are_warned_of(load_text: LoadText):
    config = load_text(*SASL, f"{SSL_RULES}=", "super.users=User:a")
    assert config.warnings == (
        "s.properties:4: ssl.principal.mapping.rules is empty, so nobody has a principal",
    )


def test_the_examples_of_the_documentation_do_what_it_says(load_text: LoadText):
    page = (Path(__file__).parents[2] / "docs" / "principals.md").read_text()
    examples = re.findall(r"```properties\n(.*?rules=.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    [listener] = load_text(*SASL, *examples).listeners
    assert listener.ssl_principal_mapping_rules is not None
    subject = "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
    assert listener.ssl_principal_mapping_rules.name(subject) == "adminuser@admin"
    assert len(listener.sasl_kerberos_principal_to_local_rules or ()) == 2
