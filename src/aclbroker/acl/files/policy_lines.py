"""Policies in one plain form, line by line: how they are written, and read back fast.

YAML takes 12 microseconds for an ACL, which shows where a file has 100,000. So files whose every
line is as the program writes it, or a comment, are read by what stands here; any other file is left
to the reader of YAML, which reads the same, and knows what is wrong and where. Tests hold both to
one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)

VERSION: Final = "1"

TYPES: Final = {
    each.name.lower().replace("_", "-"): each for each in ResourceType if each > ResourceType.ANY
}
PATTERNS: Final = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}
PERMISSIONS: Final = {"allow": AclPermission.ALLOW, "deny": AclPermission.DENY}
OPERATIONS: Final = {each.name: each for each in AclOperation if each > AclOperation.ANY}
"""By the words of policy files, as the three above."""

_TYPE_KEYS: Final = {each: key for key, each in TYPES.items()}

# What YAML reads as text in every version, and as nothing else.
_PLAIN_TEXT: Final = (
    r"[A-Za-z][A-Za-z0-9_./-]*(?:[:@+=][A-Za-z0-9_./-]+)*|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+"
)
_PLAIN: Final = re.compile(_PLAIN_TEXT)
_WORDS: Final = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}

# Between quotes: ASCII that can be seen, without quotes and backslashes, and letters of any script.
_TEXT: Final = rf'(?:{_PLAIN_TEXT}|"[ !#-\[\]-~\w]*")'
_COMMENTS: Final = r"(?:(?: *#[ -~]*)?\n)*"
_SOME: Final = r"[A-Z_]+(?:, [A-Z_]+)*"
_HEAD: Final = re.compile(
    rf"{_COMMENTS}version: {VERSION}\n(?:cluster: ({_TEXT})\n)?acls:\n{_COMMENTS}(?=- )"
)
# Each principal has a rule, and each rule an operation: the lists of both end with a bracket.
_ITEM: Final = re.compile(
    rf"(?:- principal: ({_TEXT})\n  rules:\n{_COMMENTS}(?=  - )"
    rf"|  - ({'|'.join(TYPES)}): ({_TEXT})\n"
    rf"(?:    pattern: ({'|'.join(PATTERNS)})\n)?"
    rf"(?:    host: ({_TEXT})\n)?"
    rf"(?:    allow: \[({_SOME})\]\n)?"
    rf"(?:    deny: \[({_SOME})\]\n)?(?<=\]\n){_COMMENTS})"
)


class _OtherFormError(Exception):
    """Some line is not as the program writes it."""


def written(acls: Iterable[AclBinding], cluster: str | None) -> Iterator[str]:
    """Yield the lines of a policy.

    Raises ValueError for an ACL that no broker would create, before the first line.
    """
    by_principal: dict[str, list[AclBinding]] = {}
    for acl in acls:
        reason = invalid_reason(acl)
        if reason is not None:
            raise ValueError(reason)
        by_principal.setdefault(acl.principal, []).append(acl)
    in_order = ((each, by_principal[each]) for each in sorted(by_principal))
    yield from written_in_order(in_order, cluster)


def written_in_order(
    by_principal: Iterable[tuple[str, Iterable[AclBinding]]], cluster: str | None
) -> Iterator[str]:
    """Yield the lines of a policy, of principals that come in order, with ACLs that can be created.

    No more is held than one principal's ACLs.
    """
    yield f"version: {VERSION}\n"
    if cluster is not None:
        yield f"cluster: {_scalar(cluster)}\n"
    is_empty = True
    # One principal's at a time: the keys to sort by take more memory than the ACLs.
    for principal, acls in by_principal:
        theirs = sorted(set(acls), key=_order)
        if theirs and is_empty:
            yield "acls:\n"
            is_empty = False
        if theirs:
            yield f"- principal: {_scalar(principal)}\n  rules:\n"
        for _, rule in groupby(theirs, key=_rule_of):
            yield from _rule_lines(list(rule))
    if is_empty:
        yield "acls: []\n"


def _order(acl: AclBinding) -> tuple[Any, ...]:
    return *_rule_of(acl), -acl.permission, acl.operation


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
    for key, permission in PERMISSIONS.items():
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


def read(content: str | bytes) -> tuple[list[AclBinding], str | None] | None:
    """Return the ACLs, each once, and the cluster of a policy; None for any other form of file.

    That is so for whatever is wrong with it, too.
    """
    try:
        return _read(content if isinstance(content, str) else content.decode())
    except (UnicodeDecodeError, _OtherFormError):
        return None


def _read(text: str) -> tuple[list[AclBinding], str | None]:
    head = _HEAD.match(text)
    if head is None:
        raise _OtherFormError
    acls: dict[AclBinding, None] = {}
    principal, end = "", head.end()
    for item in _ITEM.finditer(text, end):
        if item.start() != end:
            raise _OtherFormError
        end = item.end()
        who, *rule = item.groups()
        if who is not None:
            principal = _read_text(who)
            continue
        for acl in _acls(principal, *rule):
            acls[acl] = None
    if end != len(text):
        raise _OtherFormError
    return list(acls), None if head[1] is None else _read_text(head[1])


def _acls(
    principal: str,
    kind: str,
    name: str,
    pattern: str | None,
    host: str | None,
    allowed: str | None,
    denied: str | None,
) -> Iterator[AclBinding]:
    """Yield the ACLs of a rule, from its words."""
    resource = TYPES[kind], _read_text(name), PATTERNS[pattern or "literal"]
    at = WILDCARD if host is None else _read_text(host)
    for operation, permission in _operations(allowed, denied):
        acl = AclBinding(*resource, principal, at, operation, permission)
        if invalid_reason(acl) is not None:
            raise _OtherFormError
        yield acl


def _read_text(written: str) -> str:
    return written[1:-1] if written[0] == '"' else written


@lru_cache(maxsize=1024)
def _operations(
    allowed: str | None, denied: str | None
) -> tuple[tuple[AclOperation, AclPermission], ...]:
    """Return what the lists of a rule stand for."""
    found = []
    for listed, permission in zip((allowed, denied), PERMISSIONS.values(), strict=True):
        for word in listed.split(", ") if listed else ():
            if word not in OPERATIONS:
                raise _OtherFormError
            found.append((OPERATIONS[word], permission))
    return tuple(found)
