"""Statements about access as sentences: ``nobody but User:payments may WRITE topics pii-*``.

    nobody [but PRINCIPAL, ...] may OPERATION, ... RESOURCE [from HOST]
    PRINCIPAL may OPERATION, ... [every|some] RESOURCE [from HOST]
    no ALLOW for PRINCIPAL on RESOURCE|anything
    whoever may OPERATION, ... RESOURCE may OPERATION, ... [every|some] RESOURCE [from HOST]

A RESOURCE is ``the cluster``, or a type and a name, or a type and the beginning of names with a
``*``. What holds a blank or a comma stands in double quotes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple, NoReturn

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.reasoning.invariants import (
    Invariant,
    May,
    NoAllow,
    NobodyBut,
    Resources,
    WhoeverMay,
)
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT
from aclbroker.acl.reasoning.rules import operations_of

_WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|(,)|([^\s,"]+)')
_TYPES: Final = {
    each.name.lower().replace("_", "-"): each for each in ResourceType if each > ResourceType.ANY
}
_PLURALS: Final = {f"{name}s": each for name, each in _TYPES.items()}
_OPERATIONS: Final = {each.name: each for each in AclOperation if each > AclOperation.ALL}


class SentenceError(ValueError):
    """A text that is no statement; ``offset`` is where in it the mistake begins, from 0."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(problem)
        self.offset = offset


class _Word(NamedTuple):
    text: str
    offset: int
    is_quoted: bool


def parse_sentence(text: str) -> Invariant:
    """Return the statement that a sentence makes. Raises SentenceError."""
    return _Sentence(text).invariant()


class _Sentence:
    def __init__(self, text: str) -> None:
        self._words: list[_Word] = []
        self._end = len(text)
        at = 0
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            match = _WORD.match(text, at)
            if match is None:
                raise SentenceError("a quotation mark is not closed", at)
            quoted, comma, plain = match.groups()
            found = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else comma or plain
            self._words.append(_Word(found, at, quoted is not None))
            at = match.end()
        self._next = 0

    def invariant(self) -> Invariant:
        """Return the statement of the whole text."""
        found = self._statement()
        if self._next < len(self._words):
            self._fail(f"{self._words[self._next].text!r} is too much")
        return found

    def _statement(self) -> Invariant:
        if self._takes("nobody"):
            principals = self._principals() if self._takes("but") else ()
            self._expect("may")
            operations, resources = self._what()
            return NobodyBut(principals, operations, resources, self._host())
        if self._takes("no"):
            self._expect("ALLOW")
            self._expect("for")
            principal = self._principal()
            self._expect("on")
            return NoAllow(principal, None if self._takes("anything") else self._resources())
        if self._takes("whoever"):
            self._expect("may")
            operations, resources = self._what()
            implied = self._may("")
            return WhoeverMay(operations, resources, implied, self._host())
        may = self._may(self._principal())
        return replace(may, host=self._host())

    def _may(self, principal: str) -> May:
        self._expect("may")
        at = self._next
        operations = self._operations()
        on_every = not self._takes("some")
        if on_every:
            self._takes("every")
        resources = self._resources()
        self._check(operations, resources, at)
        return May(principal, operations, resources, on_every)

    def _what(self) -> tuple[tuple[AclOperation, ...], Resources]:
        at = self._next
        operations = self._operations()
        resources = self._resources()
        self._check(operations, resources, at)
        return operations, resources

    def _check(self, operations: tuple[AclOperation, ...], resources: Resources, at: int) -> None:
        known = operations_of(resources.resource_type)
        for each in operations:
            if each not in known:
                allowed = ", ".join(one.name for one in known)
                kind = resources.resource_type.name
                self._fail(f"a {kind} has no operation {each.name}, only {allowed}", at)

    def _principals(self) -> tuple[str, ...]:
        found = [self._principal()]
        while self._takes(",") or self._takes("and"):
            found.append(self._principal())
        return tuple(found)

    def _principal(self) -> str:
        at = self._next
        word = self._word("a principal")
        if ":" not in word:
            self._fail(f"{word!r} is no principal; write Type:name, such as User:alice", at)
        return word

    def _operations(self) -> tuple[AclOperation, ...]:
        found = [self._operation()]
        while self._takes(",") or self._takes("or") or self._takes("and"):
            found.append(self._operation())
        return tuple(found)

    def _operation(self) -> AclOperation:
        at = self._next
        word = self._word("an operation")
        operation = _OPERATIONS.get(word.upper())
        if operation is None:
            self._fail(f"{word!r} is no operation; there are {', '.join(_OPERATIONS)}", at)
        return operation

    def _resources(self) -> Resources:
        self._takes("on")
        if self._takes("the"):
            self._expect("cluster")
            return Resources(ResourceType.CLUSTER, ROOT)
        at = self._next
        word = self._word("a resource type").lower().replace("_", "-")
        kind = _TYPES.get(word) or _PLURALS.get(word)
        if kind is None:
            self._fail(f"{word!r} is no resource type; there are {', '.join(_TYPES)}", at)
        if kind is ResourceType.CLUSTER:
            return Resources(kind, ROOT)
        name = self._word("a name")
        is_quoted = self._words[self._next - 1].is_quoted
        if name.endswith("*") and not is_quoted:
            return Resources(kind, (name[:-1], PREFIX))
        return Resources(kind, (name, LITERAL))

    def _host(self) -> str | None:
        return self._word("a host") if self._takes("from") else None

    def _takes(self, word: str) -> bool:
        if self._next < len(self._words):
            found = self._words[self._next]
            if found.text == word and not found.is_quoted:
                self._next += 1
                return True
        return False

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            self._fail(f"expected {word!r} here")

    def _word(self, what: str) -> str:
        if self._next == len(self._words) or self._words[self._next].text == ",":
            self._fail(f"expected {what} here")
        self._next += 1
        return self._words[self._next - 1].text

    def _fail(self, problem: str, number: int | None = None) -> NoReturn:
        at = self._next if number is None else number
        offset = self._words[at].offset if at < len(self._words) else self._end
        raise SentenceError(problem, offset)
