r"""`ssl.principal.mapping.rules`: which principal a certificate's distinguished name stands for.

    RULE:pattern/replacement/[LU], RULE:..., DEFAULT

Rules after Kafka's SslPrincipalMapper (KIP-371). The first one whose pattern, a Java regular
expression, matches the whole name gives the principal: every match of the pattern in the name is
replaced, then L or U sets the case. DEFAULT gives the name as it is. A slash inside of a rule is
written \/. An empty list maps nobody.

Stricter than Kafka, which would fail when a name comes: a replacement that can never be made, text
between rules that Kafka skips because of a line break in it, and expressions without an equal here.
"""

from __future__ import annotations

import re
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

# A dot in Java does not match any of these.
_RULE = re.compile(
    r"""
    (?: (?P<default> DEFAULT )
      | RULE: (?P<pattern> (?: \\[^\n\r\x85\u2028\u2029] | [^\\/] )* )
            / (?P<replacement> (?: \\[^\n\r\x85\u2028\u2029] | [^\\/] )* )
            / (?P<case> [LU]? )
    )?
    \s* (?: , \s* | \Z )
    """,
    re.VERBOSE | re.ASCII,
)
_REFERENCE = re.compile(r"\$([0-9]+)")
_FORMS = (
    r"DEFAULT, RULE:pattern/replacement/ or RULE:pattern/replacement/[LU] (with \/ for a slash)"
)


class _Rule(NamedTuple):
    regex: JavaRegex
    replacement: Replacement
    case: str

    def apply(self, name: str) -> str | None:
        if not self.regex.matches(name):
            return None
        return CASES[self.case](self.regex.replace(name, self.replacement))


class SslPrincipalMapper:
    """The rules of a setting; raises RuleError, a ValueError, for one that does not parse."""

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        self._rules = _parse(rules)

    def name(self, distinguished_name: str) -> str:
        """The name of the principal; raises MappingFailed if no rule matches."""
        for rule in self._rules:
            try:
                name = distinguished_name if rule is None else rule.apply(distinguished_name)
            except UndecidableError as error:
                raise MappingFailed(f"{shown(distinguished_name)}: {error}") from None
            if name is not None:
                return name
        raise MappingFailed(
            f"no rule of ssl.principal.mapping.rules for {shown(distinguished_name)}"
        )


def _parse(setting: str) -> tuple[_Rule | None, ...]:
    """The rules in order, None for DEFAULT."""
    text = setting.rstrip(JAVA_BLANKS)
    position = len(text) - len(text.lstrip(JAVA_BLANKS))
    rules: list[_Rule | None] = []
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise RuleError(text[position:], position, f"expected {_FORMS}")
        if match["default"]:
            rules.append(None)
        elif match["pattern"] is not None:
            rules.append(_compiled(match))
        position = match.end()
    return tuple(rules)


def _compiled(rule: re.Match[str]) -> _Rule:
    part = "pattern"
    try:
        regex = JavaRegex(rule[part])
        part = "replacement"
        replacement = regex.replacement(_with_literal_references(rule[part], regex.groups))
    except RegexError as error:
        text = f"RULE:{rule['pattern']}/{rule['replacement']}/{rule['case']}"
        raise RuleError(text, rule.start(part) + error.position, error.reason) from None
    return _Rule(regex, replacement, rule["case"])


def _with_literal_references(replacement: str, groups: int) -> str:
    """The replacement with a backslash before references to groups that do not exist.

    Kafka puts it where the reference stood before it inserted others: of two such references the
    second one is not made literal. Then the replacement is invalid, in Kafka as here.
    """
    escaped = replacement
    for match in _REFERENCE.finditer(replacement) if groups else ():
        if match[1].startswith("0"):
            continue
        number = int(match[1])
        if number > INT_MAX:
            raise RegexError(match.start(), f"{match[0]} is too big a number")
        while number > groups and number >= 10:
            number //= 10
        if number > groups:
            escaped = f"{escaped[: match.start()]}\\{escaped[match.start() :]}"
    return escaped
