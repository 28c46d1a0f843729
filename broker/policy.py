"""Policy files: a set of ACLs as YAML that a person can read, change and review (docs/policy.md).

PyYAML parses, since a person may write any YAML and errors have to name their line; only its events
are used. So every scalar is the text as it stands in the file: no name becomes a number, a date or
`false`, no tag makes an object, and no alias can blow up in memory. Writing needs no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, NoReturn

import yaml

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)

VERSION: Final = "1"

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

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


class PolicyError(ValueError):
    """A file that is no policy file; the message names the file, the line and what is wrong."""


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
    try:
        return _PolicyParser(text, source).policy()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The frequent mistake: a host or name * without quotes.
        hint = "; quote a text that begins with *" if "alias" in str(error.context) else ""
        line = f" line {mark.line + 1}:" if mark else ""
        raise PolicyError(f"{source}:{line} {error.problem or error.context}{hint}") from None
    except yaml.YAMLError as error:
        # A byte that is no UTF-8, or a control character: the reader knows no line.
        raise PolicyError(f"{source}: {error}") from None


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


class _PolicyParser:
    """Reads one document event by event, each method one level of the file."""

    def __init__(self, text: str | bytes, source: str) -> None:
        self._source = source
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=_Loader))
        self._next: Any = next(self._events)

    def policy(self) -> Policy:
        """Return the policy of the whole text."""
        self._take(yaml.StreamStartEvent)
        if isinstance(self._next, yaml.StreamEndEvent):
            self._fail("the file is empty; a policy begins with 'version: 1'")
        self._take(yaml.DocumentStartEvent)
        line = self._line
        acls: dict[AclBinding, None] = {}
        found: dict[str, str] = {}
        for key in self._mapping("the policy", ("version", "cluster", "acls")):
            if key == "acls":
                found[key] = ""
                acls.update(dict.fromkeys(self._principals()))
            else:
                at = self._line
                found[key] = self._text(key)
                if key == "version" and found[key] != VERSION:
                    self._fail(f"version {found[key]} is not known, only {VERSION}", at)
        for key in ("version", "acls"):
            if key not in found:
                self._fail(f"the policy has no '{key}'", line)
        self._take(yaml.DocumentEndEvent)
        if not isinstance(self._next, yaml.StreamEndEvent):
            self._fail("a policy file holds one document; here a second begins")
        return Policy(list(acls), found.get("cluster"))

    def _principals(self) -> Iterator[AclBinding]:
        for _ in self._sequence("acls"):
            line = self._line
            principal = None
            rules: list[tuple[int, AclBinding]] | None = None
            for key in self._mapping("an entry of 'acls'", ("principal", "rules")):
                if key == "principal":
                    principal = self._text(key)
                else:
                    rules = [rule for _ in self._sequence(key) for rule in self._rule()]
            if principal is None or rules is None:
                self._fail("an entry of 'acls' needs 'principal' and 'rules'", line)
            for at, acl in rules:
                acl = acl._replace(principal=principal)
                reason = invalid_reason(acl)
                if reason is not None:
                    self._fail(reason, at)
                yield acl

    def _rule(self) -> list[tuple[int, AclBinding]]:
        """Return the ACLs of a rule, without their principal, and its line."""
        line = self._line
        resource: tuple[ResourceType, str] | None = None
        pattern, host = PatternType.LITERAL, WILDCARD
        operations: list[tuple[AclOperation, AclPermission]] = []
        for key in self._mapping("a rule", _RULE_KEYS):
            if key in _PERMISSIONS:
                operations += [(each, _PERMISSIONS[key]) for each in self._operations(key)]
            elif key == "pattern":
                pattern = self._one_of(key, _PATTERNS, str.lower)
            elif key == "host":
                host = self._text(key)
            elif resource is None:
                resource = _TYPES[key], self._text(key)
            else:
                self._fail(f"a rule is about one resource; '{key}' is a second")
        if resource is None:
            self._fail(f"a rule names its resource by one of {', '.join(_TYPES)}", line)
        if not operations:
            self._fail("a rule needs operations: 'allow', 'deny' or both", line)
        return [
            (line, AclBinding(*resource, pattern, "", host, operation, permission))
            for operation, permission in operations
        ]

    def _operations(self, key: str) -> list[AclOperation]:
        if isinstance(self._next, yaml.ScalarEvent):
            return [self._one_of(key, _OPERATIONS, str.upper)]
        line = self._line
        found = [self._one_of(key, _OPERATIONS, str.upper) for _ in self._sequence(key)]
        if not found:
            self._fail(f"'{key}' names no operation", line)
        return found

    def _one_of(self, key: str, values: dict[str, Any], form: Callable[[str], str]) -> Any:
        line = self._line
        text = self._text(key)
        value = values.get(form(text))
        if value is None:
            self._fail(f"'{key}' must be of {', '.join(values)}; {text!r} is not", line)
        return value

    def _mapping(self, what: str, keys: Iterable[str]) -> Iterator[str]:
        """Yield each key of a mapping; its value must be taken before the next."""
        self._take(yaml.MappingStartEvent, f"{what} must be a mapping of keys to values")
        seen: set[str] = set()
        while not isinstance(self._next, yaml.MappingEndEvent):
            line = self._line
            key = self._text("a key")
            if key not in keys:
                self._fail(f"{what} has no key {key!r}, only {', '.join(keys)}", line)
            if key in seen:
                self._fail(f"'{key}' stands twice in {what}", line)
            seen.add(key)
            yield key
        self._take(yaml.MappingEndEvent)

    def _sequence(self, what: str) -> Iterator[None]:
        """Yield once before each entry of a list; the entry must be taken before the next."""
        self._take(yaml.SequenceStartEvent, f"'{what}' must be a list")
        while not isinstance(self._next, yaml.SequenceEndEvent):
            yield
        self._take(yaml.SequenceEndEvent)

    def _text(self, key: str) -> str:
        what = key if key == "a key" else f"'{key}'"
        event = self._next
        text = self._take(yaml.ScalarEvent, f"{what} must be one text").value
        # An empty plain scalar is YAML's null: somebody forgot to write the value.
        if not text and event.style in (None, ""):
            self._fail(f"{what} has no value", event.start_mark.line + 1)
        return str(text)

    def _take(self, kind: type[Any], otherwise: str = "the file is no policy") -> Any:
        event = self._next
        if not isinstance(event, kind):
            alias = isinstance(event, yaml.AliasEvent)
            self._fail("aliases (*) are not supported; quote the text" if alias else otherwise)
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            self._fail("anchors (&) and tags (!) are not supported; quote the text")
        self._next = next(self._events, None)
        return event

    @property
    def _line(self) -> int:
        return int(self._next.start_mark.line) + 1

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise PolicyError(f"{self._source}: line {line or self._line}: {problem}")
