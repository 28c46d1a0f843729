"""`sasl.kerberos.principal.to.local.rules`: what Kafka documents, and its class as the oracle."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest

from aclbroker.broker.auth.mapping.kerberos_name import KerberosShortNamer, parse_kerberos_rules
from aclbroker.broker.auth.mapping.mapping_rules import MappingFailed
from tests.auth.java_names import JavaNames
from tests.auth.mapping_outcomes import NAMED, NOBODY, agree, of_kafka, of_ours

DOCUMENTED = "RULE:[1:$1@$0](.*@MYDOMAIN.COM)s/@.*//,DEFAULT"


def short_name(rules: str, name: str, realm: str = "REALM") -> str:
    return KerberosShortNamer(parse_kerberos_rules(rules), realm).short_name(name)


def test_the_documented_rule_keeps_the_default_one_in_place():
    assert short_name(DOCUMENTED, "user@MYDOMAIN.COM") == "user"
    assert short_name(DOCUMENTED, "user@REALM") == "user"
    assert short_name(DOCUMENTED, "kafka/host.example.com@REALM") == "kafka"
    with pytest.raises(MappingFailed, match="no rule of sasl"):
        short_name(DOCUMENTED, "user@OTHER.COM")


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "alice@REALM", "alice"),
        ("DEFAULT", "alice", "alice"),
        ("", "alice", "alice"),
        ("DEFAULT", "a/b", "a/b"),
        ("DEFAULT", "@REALM", ""),
        ("RULE:[1:$1]", "App.service-name@X.Y", "App.service-name"),
        ("RULE:[2:$1]", "App.service-name/h@X.Y", "App.service-name"),
        ("RULE:[2:$2;$1;$0]", "a/h@R", "h;a;R"),
        ("RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g/L", "App.Service@R", "service"),
        ("RULE:[1:$1]/U", "alice@R", "ALICE"),
        ("RULE:[1:$1]L", "ALICE@R", "alice"),
        ("RULE:[1:$1]s/a/b/", "aaa@R", "baa"),
        ("RULE:[1:$1]s/a/b/g", "aaa@R", "bbb"),
        ("RULE:[1:$1]s/x*/-/g", "axb@R", "-a--b-"),
        ("RULE:[1:]", "a@R", ""),
        ("RULE:[1:$01]", "a@R", "a"),
        ("RULE:[2:$1], RULE:[1:x$1] ,DEFAULT", "a@R", "xa"),
        ("DEFAULT,DEFAULT,RULE:[1:$1]", "a@R", "a"),
    ],
)
def test_rules_are_applied_as_in_kafka(java: JavaNames, rules: str, name: str, expected: str):
    assert short_name(rules, name) == expected
    assert java.ask("kerberos", "REALM", rules, name) == ["parsed", expected]


@pytest.mark.parametrize(
    ("rules", "name", "exception"),
    [
        ("", "a@R", "!NoMatchingRule"),
        ("DEFAULT", "a@R", "!NoMatchingRule"),
        ("RULE:[2:$1]", "a@R", "!NoMatchingRule"),
        ("RULE:[1:$1](b)", "a@R", "!NoMatchingRule"),
        ("RULE:[3:$1]", "a/b@R", "!NoMatchingRule"),
        ("RULE:[1:$1@$0],RULE:[1:$1]", "a@R", "!NoMatchingRule"),
        ("RULE:[2:$1/$2]", "a/b@R", "!NoMatchingRule"),
        ("RULE:[1:$1]", "a/b/c@R", "!IllegalArgumentException"),
        ("RULE:[1:$1]", "a@b@R", "!IllegalArgumentException"),
    ],
)
def test_other_names_have_no_principal(java: JavaNames, rules: str, name: str, exception: str):
    with pytest.raises(MappingFailed):
        short_name(rules, name)
    assert java.ask("kerberos", "REALM", rules, name) == ["parsed", exception]


@pytest.mark.parametrize(
    ("rules", "rule", "position", "reason"),
    [
        ("default", "default", 1, "expected DEFAULT or RULE:[n:string]"),
        ("DEFAULT, foo", "foo", 10, "expected DEFAULT"),
        ("DEFAULT,", "DEFAULT,", 1, "expected a rule, and no comma without one"),
        ("DEFAULT,,DEFAULT", "DEFAULT,,DEFAULT", 9, "expected a rule, and no comma without one"),
        ("RULE:[1:$1", "RULE:[1:$1", 1, "expected DEFAULT"),
        ("RULE:[1:$1](a{1,2})", "RULE:[1:$1](a{1", 1, "expected DEFAULT"),
        ("RULE:[1:$1]s/a/b", "RULE:[1:$1]s/a/b", 1, "expected DEFAULT"),
        ("RULE:[1:$1]LU", "RULE:[1:$1]LU", 1, "expected DEFAULT"),
        ("RULE:[:$1]", "RULE:[:$1]", 7, "expected a number of components"),
        ("RULE:[2147483648:$1]", "RULE:[2147483648:$1]", 7, "expected a number of components"),
        ("DEFAULT,RULE:[1:x$2]", "RULE:[1:x$2]", 18, "expected $ and a number from 0 to 1"),
        ("RULE:[2:$]", "RULE:[2:$]", 9, "expected $ and a number from 0 to 2"),
        ("RULE:[1:$1](a()", "RULE:[1:$1](a()", 14, "a group that is not closed"),
        ("RULE:[1:$1](\\ba)", "RULE:[1:$1](\\\\ba)", 13, "\\b is not supported"),
        ("RULE:[1:$1]s/*//", "RULE:[1:$1]s/*//", 14, "'*' has nothing to repeat"),
        ("RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$1/", 16, "$1 is no group of the pattern"),
    ],
)
def test_a_rule_that_does_not_parse_is_named_with_the_position(
    rules: str, rule: str, position: int, reason: str
):
    with pytest.raises(ValueError, match="is no rule: at character") as error:
        parse_kerberos_rules(rules)
    assert str(error.value).startswith(f"'{rule}' is no rule: at character {position}: ")
    assert reason in str(error.value)


def test_a_name_that_python_and_java_may_see_differently_has_no_principal():
    with pytest.raises(MappingFailed, match="beyond U"):
        short_name("RULE:[1:$1]s/.*?/x/g", "\U0001f600@R")


@pytest.mark.parametrize("seed", range(4))
def test_kafkas_own_class_gives_the_same_names(java: JavaNames, seed: int):
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(800):
        rules = ",".join(_rule(chance) for _ in range(chance.choice([1, 1, 2, 3])))
        name, realm = _name(chance), chance.choice(["FOO.COM", "REALM", ""])
        ours = of_ours(partial(short_name, rules, name, realm))
        kafka = of_kafka(java.ask("kerberos", realm, rules, name))
        assert agree(ours, kafka), (realm, rules, name, ours, kafka)
        outcomes[ours.kind] += 1
    assert outcomes[NAMED] > 100
    assert outcomes[NOBODY] > 50


_ODD_RULES = [
    *("DEFAULT", "DEFAULT", "default", "DEFAULTL", "", "RULE:", "RULE:[1:$1", "RULE:[:$1]"),
    *("RULE:[a:$1]", "RULE:[99999999999:$1]", "RULE:[1:$1]x", "RULE:[1:$1]s/a/b"),
    *("RULE:[1:$1](a)s/a/b/gL", "RULE:[1:$1]//L", "RULE:[1:$1]LU"),
]
_FORMATS = ["$1", "$1", "$1", "$1@$0", "$1.$0", "x$1", "App.$1", "", "$01"]
_FORMATS_OF_TWO = [*_FORMATS, "$2", "$1/$2@$0", "$2@$0", "$1;$2"]
_ODD_FORMATS = ["$", "$3", "$1$"]
_MATCHES = [
    *(".*@MYDOMAIN.COM", ".*", ".*", ".*\\.COM", "App\\..*", "[^@]*@FOO.COM", "\\w+@.*"),
    *("", "(x", "hdfs@.*", "(?:a|b)@.*", "[a-z&&[^x]]+"),
]
_PATTERNS = [
    "@.*",
    "a",
    "",
    "/.*$",
    "^(.*)$",
    "(.)",
    "[a-z]",
    "([A-Za-z]+)@.*$",
    "x*",
    "\\..*",
    "$",
]
_REPLACEMENTS = ["", "", "$0", "x", "$0$0", "\\$1", "$1", "$", "a@b", "${n}"]


def _rule(chance: random.Random) -> str:
    if chance.random() < 0.08:
        return chance.choice(_ODD_RULES)
    components = chance.choice("11122203")
    formats = _FORMATS if components in "01" else _FORMATS_OF_TWO
    if chance.random() < 0.05:
        formats = _ODD_FORMATS
    rule = f"RULE:[{components}:{chance.choice(formats)}]"
    if chance.random() < 0.5:
        rule += f"({chance.choice(_MATCHES)})"
    if chance.random() < 0.5:
        rule += f"s/{chance.choice(_PATTERNS)}/{chance.choice(_REPLACEMENTS)}/"
        rule += chance.choice(["", "g"])
    return rule + chance.choice(["", "", "/L", "/U", "L", "/"])


def _name(chance: random.Random) -> str:
    service = chance.choice(["a", "Alice", "hdfs", "App.service-name", "xyz", "", "\xe9", "aab"])
    host = chance.choice(["host.example.com", "a", ""])
    realm = chance.choice(["MYDOMAIN.COM", "FOO.COM", "REALM", "", "foo.com"])
    usual = [f"{service}@{realm}", f"{service}/{host}@{realm}"]
    odd = [service, f"{service}/{host}", f"{service}/{host}/x@{realm}", f"{service}@{realm}@x"]
    return chance.choice([*usual, *usual, *usual, *odd])
