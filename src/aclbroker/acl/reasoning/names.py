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

from aclbroker.acl.bindings import CLUSTER_NAME, WILDCARD, PatternType, ResourceType
from aclbroker.acl.reasoning.by_host import Rights

PREFIX: Final = 0
LITERAL: Final = 1

Key = tuple[str, int]
"""A pattern: its name, and PREFIX or LITERAL. In order, each stands before those that it holds."""

ROOT: Final[Key] = ("", PREFIX)
"""Any name: the LITERAL ``*``, which is the empty prefix."""

LONGEST_TOPIC: Final = 249
"""How many characters the name of a topic may have."""

TOPIC_CHARACTERS: Final = "xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
"""The characters that the name of a topic may have."""

_TOPIC: Final = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_TOPIC}}}")
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def is_topic_name(name: str) -> bool:
    """Tell whether a topic can have that name."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def is_topic_prefix(prefix: str) -> bool:
    """Tell whether the name of a topic can begin so."""
    return not prefix or _TOPIC.fullmatch(prefix) is not None


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
            and holds(self.key, name)
            and not any(holds(key, name) for key in self.excepted)
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
        is_of_topic = self.resource_type is ResourceType.TOPIC and is_topic_prefix(name)
        taken = set(self.excepted)
        for end in ("example", "x", "") if name else ("example", "x"):
            found = name + end
            fits = is_topic_name(found) if is_of_topic else len(found) <= LONGEST_TOPIC
            if fits and _is_free(found, len(name), taken):
                return found
        keys = sorted(self.excepted)
        possible = _free_topic(name, keys) if is_of_topic else None
        return _free_name(name, keys) if possible is None else possible

    @property
    def is_possible(self) -> bool:
        """Whether a resource can have a name of the region, which is a question of topics alone."""
        name, kind = self.key
        if self.resource_type is not ResourceType.TOPIC:
            return True
        if kind == LITERAL or not is_topic_prefix(name):
            return kind == LITERAL and is_topic_name(name)
        # Names are left if a character may follow, and no exception begins with it.
        if len(name) < LONGEST_TOPIC and len(self.excepted) < len(TOPIC_CHARACTERS):
            return True
        return _free_topic(name, sorted(self.excepted)) is not None

    def __str__(self) -> str:
        without = ", ".join(map(str, self.exceptions))
        text = f"{self.resource_type.name} {self.pattern}"
        return f"{text} but {without}" if without else text


def holds(key: Key, name: str) -> bool:
    """Tell whether a pattern matches a resource's name."""
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
    used = _by_next_character(prefix, taken)
    for first in _characters():
        if first not in used:
            return prefix + first
    inner = (
        _free_name(prefix + first, keys)
        for first, keys in used.items()
        if (prefix + first, PREFIX) not in keys
    )
    return next((name for name in inner if name is not None), None)


def _free_topic(prefix: str, taken: Sequence[Key]) -> str | None:
    """Return such a name that a topic can have, None if there is none; no other name begins so."""
    if is_topic_name(prefix) and (prefix, LITERAL) not in taken[:2]:
        return prefix
    if len(prefix) >= LONGEST_TOPIC:
        return None
    used = _by_next_character(prefix, taken)
    for first in TOPIC_CHARACTERS:
        if first not in used:
            name = prefix + first
            # "." and ".." are the names of no topic.
            return name if is_topic_name(name) else f"{name}x"
    inner = (
        _free_topic(prefix + first, used[first])
        for first in TOPIC_CHARACTERS
        if (prefix + first, PREFIX) not in used[first]
    )
    return next((name for name in inner if name is not None), None)


def _by_next_character(prefix: str, taken: Sequence[Key]) -> dict[str, list[Key]]:
    """Return the patterns that are longer than a prefix which all begin with, in order."""
    size = len(prefix)
    below = [key for key in taken if len(key[0]) > size]
    return {first: list(keys) for first, keys in groupby(below, key=lambda key: key[0][size])}


def _characters() -> Iterator[str]:
    yield from TOPIC_CHARACTERS
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
