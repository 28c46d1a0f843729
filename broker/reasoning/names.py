"""All names that a resource can have, cut into regions by the patterns of ACLs.

A literal is a point. A prefix is all names that begin so, without the longer prefixes and the
literals in it. What is left is any other name. Of two patterns one holds the other or they have no
name in common, so the patterns are the nodes of trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import CLUSTER_NAME, WILDCARD, PatternType, ResourceType
from aclbroker.broker.reasoning.by_host import Rights

PREFIX: Final = 0
LITERAL: Final = 1

Key = tuple[str, int]
"""A pattern: its name, and PREFIX or LITERAL. In order, each stands before those that it holds."""

ROOT: Final[Key] = ("", PREFIX)
"""Any name: the LITERAL ``*``, which is the empty prefix."""

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LONGEST: Final = 249
_ALPHABET: Final = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def is_topic_name(name: str) -> bool:
    """Tell whether a topic can have that name."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def key_of(pattern_type: PatternType, name: str) -> Key:
    """Return the key of a LITERAL or PREFIXED pattern."""
    if pattern_type == PatternType.PREFIXED:
        return name, PREFIX
    return ROOT if name == WILDCARD else (name, LITERAL)


class NamePattern(NamedTuple):
    """A resource pattern as ACLs have it."""

    pattern_type: PatternType
    name: str

    def __str__(self) -> str:
        return f"{self.name}*" if self.pattern_type is PatternType.PREFIXED else self.name


def pattern_of(key: Key) -> NamePattern:
    """Return the pattern of a key."""
    if key == ROOT:
        return NamePattern(PatternType.LITERAL, WILDCARD)
    return NamePattern(PatternType.LITERAL if key[1] else PatternType.PREFIXED, key[0])


@dataclass(frozen=True, slots=True)
class NameRegion:
    """The resources that a pattern matches, without those that the exceptions match."""

    resource_type: ResourceType
    key: Key
    excepted: tuple[Key, ...] = ()

    @property
    def pattern(self) -> NamePattern:
        """The pattern; that of the cluster is its only name."""
        if self.resource_type is ResourceType.CLUSTER:
            return NamePattern(PatternType.LITERAL, CLUSTER_NAME)
        return pattern_of(self.key)

    @property
    def exceptions(self) -> tuple[NamePattern, ...]:
        """The patterns that are not of the region, though they lie in it."""
        return tuple(map(pattern_of, self.excepted))

    def __contains__(self, name: object) -> bool:
        """Tell whether a resource's name is in the region."""
        return (
            isinstance(name, str)
            and _holds(self.key, name)
            and not any(_holds(key, name) for key in self.excepted)
        )

    def example(self) -> str | None:
        """Return a name of the region, a topic's where one is possible; None if there is none.

        There is none if more than a million exceptions leave no character to go on with.
        """
        if self.resource_type is ResourceType.CLUSTER:
            return CLUSTER_NAME
        name, kind = self.key
        if kind == LITERAL:
            return name
        taken = set(self.excepted)
        ends = ("example", "x", "") if name else ("example", "x")
        for end in ends:
            if len(name + end) <= _LONGEST and _is_free(name + end, len(name), taken):
                return name + end
        return _free_name(name, sorted(self.excepted))

    def __str__(self) -> str:
        without = ", ".join(map(str, self.exceptions))
        text = f"{self.resource_type.name} {self.pattern}"
        return f"{text} but {without}" if without else text


def _holds(key: Key, name: str) -> bool:
    return name == key[0] if key[1] else name.startswith(key[0])


def _is_free(name: str, above: int, taken: set[Key]) -> bool:
    """Tell whether none of the patterns that lie in a prefix of so many characters has the name."""
    if (name, LITERAL) in taken:
        return False
    return all((name[:size], PREFIX) not in taken for size in range(above + 1, len(name) + 1))


def _free_name(prefix: str, taken: Sequence[Key]) -> str | None:
    """Return a name that begins so and that no pattern has; ``taken`` are in order, all in it."""
    if prefix and (prefix, LITERAL) not in taken[:2]:
        return prefix
    below = [key for key in taken if len(key[0]) > len(prefix)]
    size = len(prefix)
    used = {first: list(keys) for first, keys in groupby(below, key=lambda key: key[0][size])}
    for first in _characters():
        if first not in used:
            return prefix + first
    inner = (
        _free_name(prefix + first, keys)
        for first, keys in used.items()
        if (prefix + first, PREFIX) not in keys
    )
    return next((name for name in inner if name is not None), None)


def _characters() -> Iterator[str]:
    yield from _ALPHABET
    for code in range(1, _LAST_CHARACTER + 1):
        if code not in _SURROGATES:
            yield chr(code)


def parents_of(keys: Sequence[Key]) -> list[int]:
    """Return for each key the number of the innermost one that holds it, -1 if none does.

    The keys are in order, each once.
    """
    parents: list[int] = []
    stack: list[int] = []
    for number, (name, kind) in enumerate(keys):
        while stack and not name.startswith(keys[stack[-1]][0]):
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        if kind == PREFIX:
            stack.append(number)
    return parents


class Component(NamedTuple):
    """Neighbours in a tree that have the same value, as a key without others that lie in it."""

    key: Key
    value: Rights
    excepted: list[Key]


def components(
    keys: Sequence[Key], parents: Sequence[int], values: Sequence[Rights]
) -> tuple[list[Component], list[int]]:
    """Join each key with the one that holds it if both have the same value.

    Returns the components, outer ones first, and for each key the number of its component, -1 for
    value 0 where nothing is around it.
    """
    found: list[Component] = []
    numbers: list[int] = []
    for key, parent, value in zip(keys, parents, values, strict=True):
        outer = numbers[parent] if parent >= 0 else -1
        # A node that has its parent's value is of the parent's component.
        if value == (values[parent] if parent >= 0 else 0):
            numbers.append(outer)
            continue
        if outer >= 0:
            found[outer].excepted.append(key)
        numbers.append(len(found))
        found.append(Component(key, value, []))
    return found, numbers
