"""Whether a principal may do an operation on *any* resource of a type (KIP-679).

The rule is the one of the default method of Kafka's Authorizer interface, behind its first step. It
counts only ACLs that name the operation or ALL; what other operations imply does not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.acl.bindings import WILDCARD, AclOperation, PatternType
from broker.acl.index import Masks
from broker.acl.operations import NAMED_BY
from broker.acl.patterns import Pattern

_EVERYTHING: Pattern = (PatternType.LITERAL, WILDCARD)


def deciding_pattern(
    patterns: Iterable[tuple[Pattern, Masks]], operation: AclOperation
) -> tuple[bool, Pattern | None]:
    """Return whether the operation is allowed on any resource, and the pattern that decides.

    A denial on ``*`` decides first, then an allowance on ``*``. After these, an allowance counts
    if no denial dominates it: one on the same literal name, or one on a prefix of its name. With no
    such allowance the answer is no, and no pattern decides.
    """
    named = NAMED_BY[operation]
    allowed: list[Pattern] = []
    denied: set[Pattern] = set()
    for pattern, (allowed_bits, denied_bits, _) in patterns:
        if denied_bits & named:
            denied.add(pattern)
        if allowed_bits & named:
            allowed.append(pattern)
    if _EVERYTHING in denied:
        return False, _EVERYTHING
    if _EVERYTHING in allowed:
        return True, _EVERYTHING
    for pattern in allowed:
        if not _is_dominated(pattern, denied):
            return True, pattern
    return False, None


def _is_dominated(allowed: Pattern, denied: set[Pattern]) -> bool:
    name = allowed[1]
    return allowed in denied or any(
        (PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1)
    )
