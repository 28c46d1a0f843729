"""Policy files: a set of ACLs as YAML that a person can read, change and review (docs/policy.md).

`yaml_events` reads them, so that every text is taken as it stands. Writing needs no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.yaml_events import Position, YamlError, YamlReader

VERSION: Final = "1"

_TYPES: Final = {
    each.name.lower().replace("_", "-"): each for each in ResourceType if each > ResourceType.ANY
}
_TYPE_KEYS: Final = {each: key for key, each in _TYPES.items()}
_PATTERNS: Final = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}
_PERMISSIONS: Final = {"allow": AclPermission.ALLOW, "deny": AclPermission.DENY}
_OPERATIONS: Final = {each.name: each for each in AclOperation if each > AclOperation.ANY}
_RULE_KEYS: Final = (*_TYPES, "pattern", "host", "allow", "deny")

# What YAML reads as text in every version, and as nothing else.
_PLAIN: Final = re.compile(r"[A-Za-z][\w./-]*(?:[:@+=][\w./-]+)*|\d+\.\d+\.\d+\.\d+", re.ASCII)
_WORDS: Final = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class PolicyError(YamlError):
    """A file that is no policy file; the message names file, line, column and what is wrong."""


class Policy(NamedTuple):
    """A set of ACLs, in any order, and the id of the cluster they are of, if that is told."""

    acls: list[AclBinding]
    cluster: str | None = None


def read_policy(path: Path) -> Policy:
    """Read a policy file; an ACL that stands there twice comes once.

    Raises PolicyError for what is no policy, OSError if the file cannot be read.
    """
    with path.open("rb") as file:
        return parse_policy(file.read(), str(path))


def parse_policy(text: str | bytes, source: str = "policy") -> Policy:
    """Return the policy of a text. Raises PolicyError, which names ``source`` as the file."""
    return _PolicyParser(text, source).policy()


def write_policy(policy: Policy, path: Path) -> None:
    """Write a policy file, sorted: equal sets are equal files. Raises OSError, ValueError."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        dump_policy(policy, file)


def dump_policy(policy: Policy, file: IO[str]) -> None:
    """Write a policy as text. Raises ValueError for an ACL that no broker would create."""
    file.write(f"version: {VERSION}\n")
    if policy.cluster is not None:
        file.write(f"cluster: {_scalar(policy.cluster)}\n")
    acls = sorted(set(policy.acls), key=_order)
    file.write("acls:\n" if acls else "acls: []\n")
    for principal, theirs in groupby(acls, key=lambda acl: acl.principal):
        file.write(f"- principal: {_scalar(principal)}\n  rules:\n")
        for _, rule in groupby(theirs, key=_rule_of):
            file.writelines(_rule_lines(list(rule)))


def _order(acl: AclBinding) -> tuple[Any, ...]:
    reason = invalid_reason(acl)
    if reason is not None:
        raise ValueError(reason)
    return acl.principal, *_rule_of(acl), -acl.permission, acl.operation


def _rule_of(acl: AclBinding) -> tuple[Any, ...]:
    return acl.resource_type, acl.resource_name, acl.pattern_type, acl.host


def _rule_lines(acls: list[AclBinding]) -> Iterator[str]:
    """The lines of ACLs that differ in operation and permission alone."""
    first = acls[0]
    yield f"  - {_TYPE_KEYS[first.resource_type]}: {_scalar(first.resource_name)}\n"
    if first.pattern_type is not PatternType.LITERAL:
        yield "    pattern: prefixed\n"
    if first.host != WILDCARD:
        yield f"    host: {_scalar(first.host)}\n"
    for key, permission in _PERMISSIONS.items():
        operations = [acl.operation.name for acl in acls if acl.permission is permission]
        if operations:
            yield f"    {key}: [{', '.join(operations)}]\n"


def _scalar(text: str) -> str:
    """The text as YAML: as it stands if nothing could read it otherwise, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return f'"{"".join(_escaped(char) for char in text)}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _PolicyParser(YamlReader):
    """Reads one document, each method one level of the file."""

    def __init__(self, text: str | bytes, source: str) -> None:
        super().__init__(text, source, "policy", PolicyError)

    def policy(self) -> Policy:
        """Return the policy of the whole text."""
        acls: dict[AclBinding, None] = {}
        cluster = None
        for key in self.document(VERSION, ("cluster", "acls"), needed="acls"):
            if key == "acls":
                acls.update(dict.fromkeys(self._principals()))
            else:
                cluster = self.text(key)
        return Policy(list(acls), cluster)

    def _principals(self) -> Iterator[AclBinding]:
        for _ in self.sequence("acls"):
            begin = self.position
            principal = None
            rules: list[tuple[Position, AclBinding]] | None = None
            for key in self.mapping("an entry of 'acls'", ("principal", "rules")):
                if key == "principal":
                    principal = self.text(key)
                else:
                    rules = [rule for _ in self.sequence(key) for rule in self._rule()]
            if principal is None or rules is None:
                self.fail("an entry of 'acls' needs 'principal' and 'rules'", begin)
            for at, acl in rules:
                acl = acl._replace(principal=principal)
                reason = invalid_reason(acl)
                if reason is not None:
                    self.fail(reason, at)
                yield acl

    def _rule(self) -> list[tuple[Position, AclBinding]]:
        """Return the ACLs of a rule, without their principal, and where it begins."""
        begin = self.position
        resource: tuple[ResourceType, str] | None = None
        pattern, host = PatternType.LITERAL, WILDCARD
        operations: list[tuple[AclOperation, AclPermission]] = []
        for key in self.mapping("a rule", _RULE_KEYS):
            if key in _PERMISSIONS:
                operations += [(each, _PERMISSIONS[key]) for each in self._operations(key)]
            elif key == "pattern":
                at = self.position
                pattern = self._one_of(key, _PATTERNS, self.text(key), str.lower, at)
            elif key == "host":
                host = self.text(key)
            elif resource is None:
                resource = _TYPES[key], self.text(key)
            else:
                self.fail(f"a rule is about one resource; '{key}' is a second")
        if resource is None:
            self.fail(f"a rule names its resource by one of {', '.join(_TYPES)}", begin)
        if not operations:
            self.fail("a rule needs operations: 'allow', 'deny' or both", begin)
        return [
            (begin, AclBinding(*resource, pattern, "", host, operation, permission))
            for operation, permission in operations
        ]

    def _operations(self, key: str) -> list[AclOperation]:
        begin = self.position
        found = [
            self._one_of(key, _OPERATIONS, text, str.upper, at) for text, at in self.texts(key)
        ]
        if not found:
            self.fail(f"'{key}' names no operation", begin)
        return found

    def _one_of(
        self,
        key: str,
        values: dict[str, Any],
        text: str,
        form: Callable[[str], str],
        at: Position,
    ) -> Any:
        value = values.get(form(text))
        if value is None:
            self.fail(f"'{key}' must be of {', '.join(values)}; {text!r} is not", at)
        return value
