"""Names that a topic can have: which patterns match one, and which prefixes may have none left.

The names of groups, transactional ids and all else are free text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.reasoning.names import (
    LONGEST_TOPIC,
    PREFIX,
    TOPIC_CHARACTERS,
    Key,
    is_topic_name,
    is_topic_prefix,
    key_of,
    parents_of,
)
from aclbroker.acl.reasoning.rules import Rules


def is_possible(resource_type: ResourceType, key: Key) -> bool:
    """Tell whether a resource of the type can have a name of the pattern."""
    if resource_type != ResourceType.TOPIC:
        return True
    name, kind = key
    return is_topic_prefix(name) if kind == PREFIX else is_topic_name(name)


def possible_rules(rules: Rules) -> Rules:
    """Return rules that decide the same on all names that can be, without the ACLs on others."""
    acls = [acl for acl in rules.acls if is_possible(acl[0], key_of(acl[2], acl[1]))]
    return rules if len(acls) == len(rules.acls) else replace(rules, acls=acls)


class UsedUp:
    """Knows the prefixes of which patterns inside may leave no name that a topic can have.

    Then there is one for each character that may come next, or nothing may come next. ``keys`` are
    the patterns, in order.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        inside = Counter(parents_of(keys))
        least = len(TOPIC_CHARACTERS)
        self._prefixes = sorted(
            name
            for number, (name, kind) in enumerate(keys)
            if kind == PREFIX
            and (inside[number] >= least or len(name) >= LONGEST_TOPIC)
            and self._is_used_up(name)
        )

    def may_be_within(self, key: Key) -> bool:
        """Tell whether a prefix that may be used up is a pattern, or lies in it."""
        name, kind = key
        if kind != PREFIX:
            return False
        place = bisect_left(self._prefixes, name)
        is_there = place < len(self._prefixes) and self._prefixes[place].startswith(name)
        return is_there or self._is_used_up(name)

    def _is_used_up(self, prefix: str) -> bool:
        return len(prefix) >= LONGEST_TOPIC or all(
            self._begins(prefix + character) for character in TOPIC_CHARACTERS
        )

    def _begins(self, prefix: str) -> bool:
        """Tell whether the name of a pattern begins so."""
        place = bisect_left(self._keys, (prefix, PREFIX))
        return place < len(self._keys) and self._keys[place][0].startswith(prefix)
