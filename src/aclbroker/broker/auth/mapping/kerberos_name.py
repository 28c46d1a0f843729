r"""`sasl.kerberos.principal.to.local.rules`: which principal a Kerberos name stands for.

    RULE:[n:string](regexp)s/pattern/replacement/g/[LU], RULE:..., DEFAULT

Rules after Kafka's KerberosShortNamer, which are MIT's auth_to_local with L and U. A rule is for
names of n components (user@REALM has one, service/host@REALM two). In `string`, $0 is the realm, $1
and $2 the components. If regexp, a Java regular expression, matches all of what comes out, the
first match of pattern in it (with g every match) is replaced. DEFAULT takes the first component of
a name of the default realm. The first rule that gives something counts; it must be free of / and @.
As in Kafka commas separate rules, so a rule has none itself; a regexp has no closing parenthesis.

Stricter than Kafka, which would fail when a name comes: $ in a string without the number of a
component, a replacement that can never be made, and expressions that have no equal here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aclbroker.broker.auth.mapping.java_regex import (
    JavaRegex,
    RegexError,
    Replacement,
    UndecidableError,
)
from aclbroker.broker.auth.mapping.mapping_rules import (
    CASES,
    INT_MAX,
    JAVA_BLANKS,
    MappingFailed,
    RuleError,
    shown,
)

DEFAULT_RULES = "DEFAULT"

_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_RULE = re.compile(
    r"""
    RULE: \[ (?P<components> [0-9]* ) : (?P<format> [^]]* ) \]
    (?: \( (?P<match> [^)]* ) \) )?
    (?: s/ (?P<pattern> [^/]* ) / (?P<replacement> [^/]* ) / (?P<every> g )? )?
    /? (?P<case> [LU] )?
    """,
    re.VERBOSE,
)
_PARAMETER = re.compile(r"\$([0-9]*)")
_FORMS = "DEFAULT or RULE:[n:string](regexp)s/pattern/replacement/g/[LU], without commas inside"
_NOT_SIMPLE = re.compile(r"[/@]")


class KerberosName(NamedTuple):
    """The parts of service/host@REALM; host and realm None where there is none."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> KerberosName:
        """After Kafka's class of that name; raises MappingFailed."""
        match = _NAME.fullmatch(text)
        if match is not None:
            return cls(match[1], match[2], match[3])
        if "@" in text:
            raise MappingFailed(f"{shown(text)} is no Kerberos name")
        return cls(text, None, None)


class _Substitution(NamedTuple):
    regex: JavaRegex
    replacement: Replacement
    every: bool

    def apply(self, text: str) -> str:
        return self.regex.replace(text, self.replacement, first_only=not self.every)


class KerberosRule(NamedTuple):
    """One rule, or DEFAULT if `components` is None.

    `format` has texts and numbers of parameters.
    """

    text: str
    components: int | None = None
    format: Sequence[str | int] = ()
    match: JavaRegex | None = None
    substitution: _Substitution | None = None
    case: str = ""

    def apply(self, parameters: Sequence[str], default_realm: str) -> str | None:
        """The short name; None if the rule is not for the name of this realm and components."""
        if self.components is None:
            name = parameters[1] if parameters[0] == default_realm else None
        elif len(parameters) - 1 == self.components:
            name = self._substituted(parameters)
        else:
            name = None
        if name is not None and _NOT_SIMPLE.search(name):
            raise MappingFailed(
                f"rule {shown(self.text)} gives {shown(name)}, which is no short name"
            )
        return None if name is None else CASES[self.case](name)

    def _substituted(self, parameters: Sequence[str]) -> str | None:
        name = "".join(part if isinstance(part, str) else parameters[part] for part in self.format)
        if self.match is not None and not self.match.matches(name):
            return None
        return name if self.substitution is None else self.substitution.apply(name)


class KerberosShortNamer:
    """Rules with the realm that DEFAULT is about (see `broker.auth.mapping.krb5_conf`)."""

    def __init__(self, rules: Sequence[KerberosRule], default_realm: str) -> None:
        self._rules = rules
        self._default_realm = default_realm

    def short_name(self, name: str) -> str:
        """The principal's name; raises MappingFailed for a malformed name or if no rule matches.

        What has neither a realm nor a host is a short name already, as in Kafka.
        """
        service, host, realm = KerberosName.parse(name)
        if realm is None:
            return service
        parameters = (realm, service) if host is None else (realm, service, host)
        for rule in self._rules:
            try:
                short_name = rule.apply(parameters, self._default_realm)
            except UndecidableError as error:
                raise MappingFailed(f"{shown(name)}: {error}") from None
            if short_name is not None:
                return short_name
        raise MappingFailed(f"no rule of sasl.kerberos.principal.to.local.rules for {shown(name)}")


def parse_kerberos_rules(setting: str) -> tuple[KerberosRule, ...]:
    """The rules of a setting; raises RuleError, a ValueError, for one that does not parse."""
    text = setting.rstrip(JAVA_BLANKS)
    position = len(text) - len(text.lstrip(JAVA_BLANKS))
    rules: list[KerberosRule] = []
    while position < len(text):
        comma = _COMMA.search(text, position)
        rule = text[position : comma.start() if comma else len(text)]
        if not rule or (comma and comma.end() == len(text)):
            raise RuleError(text, position, "expected a rule, and no comma without one")
        rules.append(KerberosRule(rule) if rule == DEFAULT_RULES else _rule(rule, position))
        position = comma.end() if comma else len(text)
    return tuple(rules)


def _rule(text: str, start: int) -> KerberosRule:
    rule = _RULE.fullmatch(text)
    if rule is None:
        raise RuleError(text, start, f"expected {_FORMS}")
    part = "components"
    try:
        components = _components(rule[part])
        part = "format"
        parameters = tuple(_format(rule[part], components))
        part = "match"
        match = None if rule[part] is None else JavaRegex(rule[part])
        part = "pattern"
        regex = None if rule[part] is None else JavaRegex(rule[part])
        part = "replacement"
        substitution = None
        if regex is not None:
            replacement = regex.replacement(rule[part])
            substitution = _Substitution(regex, replacement, rule["every"] is not None)
    except RegexError as error:
        raise RuleError(text, start + rule.start(part) + error.position, error.reason) from None
    return KerberosRule(text, components, parameters, match, substitution, rule["case"] or "")


def _components(text: str) -> int:
    if not text or int(text) > INT_MAX:
        raise RegexError(0, "expected a number of components")
    return int(text)


def _format(text: str, components: int) -> Iterator[str | int]:
    end = 0
    for parameter in _PARAMETER.finditer(text):
        if not parameter[1] or int(parameter[1]) > components:
            raise RegexError(parameter.start(), f"expected $ and a number from 0 to {components}")
        yield text[end : parameter.start()]
        yield int(parameter[1])
        end = parameter.end()
    yield text[end:]
