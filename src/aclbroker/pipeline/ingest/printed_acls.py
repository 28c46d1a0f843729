"""Finds the ACLs that Kafka printed into a text, in one pass over the text.

The text may hold names of clients. A regular expression with several ``.*`` is too slow for such a
text, because its time grows with a power of the text's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_START: Final = r"StandardAcl[(\[]resourceType=(?P<type>\w+), resourceName="
_PATTERN: Final = r", patternType=(?P<pattern>\w+), principal="
_HOST: Final = ", host="
_ALLOW: Final = _HOST + r"[^,]*, operation=\w+, permissionType=ALLOW"

_RULE_START: Final = re.compile("acl=" + _START)
_RULE_PATTERN: Final = re.compile(_PATTERN)
_PARTS: Final = re.compile(rf"(?P<start>{_START})|{_PATTERN}|(?P<allow>{_ALLOW})|\n")
"""Matches the fixed parts of an ALLOW, and the end of a line. No two of them overlap."""


class PrintedAcl(NamedTuple):
    """The fields of an ACL as Kafka prints them, without the host and what follows it."""

    resource_type: str
    name: str
    pattern: str
    principal: str


def allows_in(text: str) -> Iterator[PrintedAcl]:
    """Yield the ALLOWs in a text. Names end where they first can, and have no line break."""
    start = pattern = None
    for part in _PARTS.finditer(text):
        if part["start"]:
            start = start or part
        elif part["pattern"]:
            pattern = pattern or (part if start else None)
        elif part["allow"] and start and pattern:
            name = text[start.end() : pattern.start()]
            principal = text[pattern.end() : part.start()]
            yield PrintedAcl(start["type"], name, pattern["pattern"], principal)
            start = pattern = None
        elif "\n" in part[0]:
            start = pattern = None


def rule_acl(rule: str) -> PrintedAcl | None:
    """Return the first ACL in the text of a rule; None if there is none.

    Its names end where they last can.
    """
    start = _RULE_START.search(rule)
    host = rule.rfind(_HOST)
    if start is None or host < start.end():
        return None
    patterns = list(_RULE_PATTERN.finditer(rule, start.end(), host))
    if not patterns:
        return None
    pattern = patterns[-1]
    name, principal = rule[start.end() : pattern.start()], rule[pattern.end() : host]
    return PrintedAcl(start["type"], name, pattern["pattern"], principal)
