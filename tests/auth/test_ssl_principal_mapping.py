"""`ssl.principal.mapping.rules`: Kafka's documented examples, and Kafka's class as the oracle."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest

from aclbroker.broker.auth.mapping.mapping_rules import MappingFailed
from aclbroker.broker.auth.mapping.ssl_principal_mapping import SslPrincipalMapper
from tests.auth.java_names import JavaNames
from tests.auth.mapping_outcomes import NAMED, NOBODY, agree, of_kafka, of_ours

DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "DEFAULT"
)
SERVICE_USER = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
ADMIN_USER = "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
WRITE_USER = "CN=writeuser,OU=Unknown,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"


@pytest.mark.parametrize("separator", [",", ",\n", " , "])
def test_the_documented_rules_give_the_documented_names(separator: str):
    rules = SslPrincipalMapper(DOCUMENTED.replace(",RULE", separator + "RULE"))
    assert rules.name(SERVICE_USER) == "serviceuser"
    assert rules.name(ADMIN_USER) == "adminuser@admin"
    assert rules.name("CN=other") == "CN=other"


HOSTILE = "CN=a" + ",OU=a" * 40 + ",O=a" * 49 + ",L=a" * 49 + ",ST=a" * 39 + ",Q=a" * 40


def test_a_name_made_to_be_matched_in_too_many_ways_is_refused_at_once():
    """Each way is one that the engine would try: a minute for this name, which ends with no C."""
    assert len(HOSTILE) < 1000
    for rules in (DOCUMENTED, DOCUMENTED.partition("/$1/,")[2]):
        with pytest.raises(MappingFailed, match="too many ways to match it"):
            SslPrincipalMapper(rules).name(HOSTILE)


@pytest.mark.parametrize("length", [10, 100, 900])
def test_a_long_name_with_several_units_is_none_of_those(length: int):
    units = ",".join(f"OU=unit{number}" for number in range(8))
    rest = f"{units},O=Example\\, Inc.,L=Berlin,ST=Berlin,C=DE"
    name = SslPrincipalMapper(DOCUMENTED).name(f"CN={'x' * (length - len(rest))},{rest}")
    assert name == f"{'x' * (length - len(rest))}@{units.removeprefix('OU=').lower()}"


def test_by_default_the_name_is_the_distinguished_name():
    assert SslPrincipalMapper().name(WRITE_USER) == WRITE_USER
    assert SslPrincipalMapper("DEFAULT").name("") == ""


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("RULE:^cn=(.*?),ou=(.*?)$/$1@$2/U", "cn=a,ou=b", "A@B"),
        ("RULE:^(.*)\\/(.*)$/$1\\/x/,DEFAULT", "a/b", "a/x"),
        ("RULE:a,b/c/ ,\tRULE:d/e/", "a,b", "c"),
        ("RULE:a,b/c/ ,\tRULE:d/e/", "d", "e"),
        ("RULE:CN=(.*?)/$1/", "CN=duke,OU=x", "duke,OU=x"),
        ("RULE:(.*)/<$1>/", "a", "<a><>"),
        ("RULE:(a)(b)/$2$3$1/", "ab", "b$3a"),
        ("RULE:(a)(b)/$12/", "ab", "a2"),
        ("RULE:(a)|b/[$1]/", "b", "[]"),
        ("RULE:(a)/$09/", "a", "a9"),
        ("RULE:/nobody/,DEFAULT", "", "nobody"),
        (" \n DEFAULT ,, ", "a", "a"),
        (",RULE:a/b/", "a", "b"),
    ],
)
def test_rules_are_applied_as_in_kafka(java: JavaNames, rules: str, name: str, expected: str):
    assert SslPrincipalMapper(rules).name(name) == expected
    assert java.ask("ssl", rules, name) == ["parsed", expected]


@pytest.mark.parametrize("rules", ["", "  ", ",", "RULE:a/b/", "RULE:CN=a/b/L"])
def test_a_name_that_no_rule_matches_has_no_principal(java: JavaNames, rules: str):
    with pytest.raises(
        MappingFailed, match=r"no rule of ssl\.principal\.mapping\.rules for 'CN=b'"
    ):
        SslPrincipalMapper(rules).name("CN=b")
    assert java.ask("ssl", rules, "CN=b") == ["parsed", "!NoMatchingRule"]


@pytest.mark.parametrize(
    ("rules", "rule", "position", "reason"),
    [
        ("default", "default", 1, "expected DEFAULT, RULE:pattern/replacement/ or"),
        ("DEFAULTS", "DEFAULTS", 1, "expected DEFAULT"),
        ("DEFAULT, foo", "foo", 10, "expected DEFAULT"),
        ("DEFAULT DEFAULT", "DEFAULT DEFAULT", 1, "expected DEFAULT"),
        ("DEFAULT,RULE:a/b", "RULE:a/b", 9, "expected DEFAULT"),
        ("RULE:a/b/X", "RULE:a/b/X", 1, "expected DEFAULT"),
        ("RULE:a/b/LU", "RULE:a/b/LU", 1, "expected DEFAULT"),
        ("RULE:a/b/c/", "RULE:a/b/c/", 1, "expected DEFAULT"),
        ("rule:a/b/", "rule:a/b/", 1, "expected DEFAULT"),
        ("foo\nDEFAULT", "foo\\nDEFAULT", 1, "expected DEFAULT"),
        ("DEFAULT,RULE:CN=(.*/$1/", "RULE:CN=(.*/$1/", 17, "a group that is not closed"),
        ("  RULE:\\ba/b/", "RULE:\\\\ba/b/", 8, "\\b is not supported"),
        ("RULE:a/b/,RULE:(a)/x$/L", "RULE:(a)/x$/L", 21, "neither $n"),
        ("RULE:a/$1/", "RULE:a/$1/", 8, "$1 is no group of the pattern"),
        ("RULE:(a)/$99999999999/", "RULE:(a)/$99999999999/", 10, "is too big a number"),
    ],
)
def test_a_rule_that_does_not_parse_is_named_with_the_position(
    rules: str, rule: str, position: int, reason: str
):
    with pytest.raises(ValueError, match="is no rule: at character") as error:
        SslPrincipalMapper(rules)
    assert str(error.value).startswith(f"'{rule}' is no rule: at character {position}: ")
    assert reason in str(error.value)


def test_a_long_rule_is_not_shown_in_full():
    with pytest.raises(ValueError, match=r"^'RULE:a{195}\.\.\.' is no rule: at character 1: "):
        SslPrincipalMapper("RULE:" + "a" * 1000)


def test_a_name_that_python_and_java_may_see_differently_has_no_principal():
    with pytest.raises(MappingFailed, match="beyond U"):
        SslPrincipalMapper("RULE:.*?/x/").name("CN=\U0001f600")
    with pytest.raises(MappingFailed, match=r"^'CN=a{197}\.\.\.': longer than 1000 characters"):
        SslPrincipalMapper("RULE:.*/x/").name("CN=" + "a" * 1000)
    with pytest.raises(MappingFailed, match="lower case"):
        SslPrincipalMapper("RULE:(.*?)$/$1/L").name("CN=A.\N{GREEK CAPITAL LETTER SIGMA}")


def mapped(rules: str, name: str) -> str:
    return SslPrincipalMapper(rules).name(name)


@pytest.mark.parametrize("seed", range(4))
def test_kafkas_own_class_gives_the_same_names(java: JavaNames, seed: int):
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for _ in range(600):
        rules = ",".join(_rule(chance) for _ in range(chance.choice([1, 1, 1, 2, 3])))
        name = _distinguished_name(chance)
        ours = of_ours(partial(mapped, rules, name))
        kafka = of_kafka(java.ask("ssl", rules, name))
        assert agree(ours, kafka), (rules, name, ours, kafka)
        outcomes[ours.kind] += 1
    assert outcomes[NAMED] > 100
    assert outcomes[NOBODY] > 50


_PATTERNS = [
    "^CN=(.*?),OU=ServiceUsers.*$",
    "^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$",
    ".*CN=(.*?),.*",
    "CN=([^,]+).*",
    "^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$",
    "(.*)",
    ".*?",
    "",
    "CN=(.*?)",
    "CN=(\\w+),(OU|O)=([^,+]*)(,.*)?",
    "(?i)cn=(?<who>[^,]*).*",
    "CN=([^,\\\\]|\\\\.)*.*",
    "CN=((?:[^,\\\\]|\\\\.)*).*",
    "^CN=(.*),O=\\/x\\/(.*)$",
    "CN=a\\,b.*",
    "(CN)=(([^,]*))(,(.*))?",
    "(?:CN|OU)=(.*?)(?=,|$).*",
    ".*?CN=(?:host\\/)?([^,/]*).*",
    "\\p{Alpha}+=([\\p{Alnum}.]+).*",
    "CN=(a|b",
    "[",
]
_REPLACEMENTS = ["$1", "$1", "$1@$2", "", "x", "$0", "$2", "$10", "$12", "$4@$5", "$7$8$9", "\\$1"]
_ODD_REPLACEMENTS = ["a\\/b", "${who}", "$", "\\\\", "$1\\", "${who", "$99999999999", "$01", "$a"]
_ODD_RULES = [
    *("DEFAULT", " DEFAULT ", "DEFAULT", "default", "DEFAULTx", "", "foo", " \t", "RULE:", "RULE"),
    *("RULE:a", "RULE:a/b", "RULE:a/b/X", "RULE:a/b/LU", "RULE:a/b/L x", "RULE: a/b /L"),
]
_KEYS = ["CN", "OU", "O", "L", "ST", "C"]
_VALUES = [
    *("a", "serviceuser", "adminUser", "Duke", "ServiceUsers", "Admin", "a.b", "host/x", "a b", ""),
    *("\\,x", "Unknown", "\xe9", "\xdf", "\u0130", "\u039d\u0399\u039a\u039f\u03a3"),
]


def _rule(chance: random.Random) -> str:
    if chance.random() < 0.08:
        return chance.choice(_ODD_RULES)
    replacements = _REPLACEMENTS if chance.random() < 0.9 else _ODD_REPLACEMENTS
    rule = f"RULE:{chance.choice(_PATTERNS)}/{chance.choice(replacements)}/"
    before, after = chance.choice(["", "", " "]), chance.choice(["", "", " ", "\n"])
    return before + rule + chance.choice(["", "", "L", "U"]) + after


def _distinguished_name(chance: random.Random) -> str:
    keys = chance.choice([_KEYS, _KEYS, ["CN"], ["CN", "O"], ["cn", "ou"], ["OU", "CN", "DC"], []])
    values = chance.choices(_VALUES, k=len(keys))
    return ",".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
