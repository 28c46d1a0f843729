"""Policy files: a set of ACLs as YAML that a person can read, change and review (docs/policy.md).

`yaml_events` reads them, so that every text is taken as it stands. Writing needs no library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.files import policy_lines
from aclbroker.acl.files.policy_lines import OPERATIONS, PATTERNS, PERMISSIONS, TYPES, VERSION
from aclbroker.acl.files.yaml_events import Mark, YamlError, YamlReader

_RULE_KEYS: Final = (*TYPES, "pattern", "host", "allow", "deny")


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
    plain = policy_lines.read(text)
    return _PolicyParser(text, source).policy() if plain is None else Policy(*plain)


def write_policy(policy: Policy, path: Path) -> None:
    """Write a policy file, sorted: equal sets are equal files. Raises OSError, ValueError."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        dump_policy(policy, file)


def dump_policy(policy: Policy, file: IO[str]) -> None:
    """Write a policy as text. Raises ValueError for an ACL that no broker would create."""
    file.writelines(policy_text(*policy))


def policy_text(acls: Iterable[AclBinding], cluster: str | None = None) -> Iterator[str]:
    """Yield the lines of a policy file, for sets that are too large to be one text.

    Raises ValueError for an ACL that no broker would create, before the first line.
    """
    return policy_lines.written(acls, cluster)


def policy_text_in_order(
    by_principal: Iterable[tuple[str, Iterable[AclBinding]]], cluster: str | None = None
) -> Iterator[str]:
    """Yield the same for principals that come in order, each with ACLs that a broker would create.

    No more is held than the ACLs of one of them.
    """
    return policy_lines.written_in_order(by_principal, cluster)


class _Rule(NamedTuple):
    """The ACLs of a rule, without their principal, and where it begins."""

    begin: Mark
    resource: tuple[ResourceType, str]
    pattern: PatternType
    host: str
    operations: list[tuple[AclOperation, AclPermission]]


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
            begin = self.mark
            principal = None
            rules: list[_Rule] | None = None
            for key in self.mapping("an entry of 'acls'", ("principal", "rules")):
                if key == "principal":
                    principal = self.text(key)
                else:
                    rules = [self._rule() for _ in self.sequence(key)]
            if principal is None or rules is None:
                self.fail("an entry of 'acls' needs 'principal' and 'rules'", begin)
            for begin, (kind, name), pattern, host, operations in rules:
                for operation, permission in operations:
                    acl = AclBinding(kind, name, pattern, principal, host, operation, permission)
                    reason = invalid_reason(acl)
                    if reason is not None:
                        self.fail(reason, begin)
                    yield acl

    def _rule(self) -> _Rule:
        begin = self.mark
        resource: tuple[ResourceType, str] | None = None
        pattern, host = PatternType.LITERAL, WILDCARD
        operations: list[tuple[AclOperation, AclPermission]] = []
        for key in self.mapping("a rule", _RULE_KEYS):
            if key in PERMISSIONS:
                permission = PERMISSIONS[key]
                operations += [(each, permission) for each in self._operations(key)]
            elif key == "pattern":
                at = self.mark
                pattern = self._one_of(key, PATTERNS, self.text(key), str.lower, at)
            elif key == "host":
                host = self.text(key)
            elif resource is None:
                resource = TYPES[key], self.text(key)
            else:
                self.fail(f"a rule is about one resource; '{key}' is a second")
        if resource is None:
            self.fail(f"a rule names its resource by one of {', '.join(TYPES)}", begin)
        if not operations:
            self.fail("a rule needs operations: 'allow', 'deny' or both", begin)
        return _Rule(begin, resource, pattern, host, operations)

    def _operations(self, key: str) -> list[AclOperation]:
        begin = self.mark
        found = [
            OPERATIONS.get(text) or self._one_of(key, OPERATIONS, text, str.upper, at)
            for text, at in self.texts(key)
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
        at: Mark,
    ) -> Any:
        value = values.get(form(text))
        if value is None:
            self.fail(f"'{key}' must be of {', '.join(values)}; {text!r} is not", at)
        return value
