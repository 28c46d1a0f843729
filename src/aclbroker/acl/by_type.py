"""Whether a principal may do an operation on *any* resource of a type (KIP-679).

The rule is that of the default method in Kafka's Authorizer interface, after its first step, which
asks about one arbitrary name. Only ACLs that name the operation or ALL count; operations that imply
it do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from aclbroker.acl.bindings import LITERAL, WILDCARD, AclOperation, PatternType
from aclbroker.acl.operations import DENIED_SHIFT, NAMED_BY
from aclbroker.acl.rights import Entry, PeerRights
from aclbroker.turns import pause

_EVERYTHING: Final = (LITERAL, WILDCARD)

_AT_ONCE: Final = 100
"""How many patterns are looked at in one go. Mostly one of them decides; the rest is copied first,
which costs something for each of them.
"""

_BETWEEN_PAUSES: Final = 16


def deciding_pattern(
    rights: PeerRights, operation: AclOperation
) -> tuple[bool, tuple[PatternType, str] | None]:
    """Return whether the operation is allowed on any resource, and the pattern that decides.

    A denial on ``*`` decides first, then an allowance on ``*``. After these, an allowance counts
    if no denial dominates it: one on the same literal name, or one on a prefix of its name. With no
    such allowance the answer is no, and no pattern decides.

    Very many patterns are gone through in turns with others, who may change ACLs meanwhile. The
    answer is that of the moment of the call.
    """
    allowing = NAMED_BY[operation]
    denying = allowing << DENIED_SHIFT
    everywhere = rights.bits_of(*_EVERYTHING)
    if everywhere & (allowing | denying):
        return not everywhere & denying, _EVERYTHING
    found = _undominated(rights, islice(rights.entries(allowing), _AT_ONCE), allowing)
    if found is None and rights.size(allowing) > _AT_ONCE:
        copied = rights.copy()
        found = _undominated(copied, _in_turns(copied.entries(allowing)), allowing)
    return found is not None, found


def _undominated(
    rights: PeerRights, entries: Iterable[Entry], allowing: int
) -> tuple[PatternType, str] | None:
    """Return the first of the patterns that allow and that no denial dominates."""
    denying = allowing << DENIED_SHIFT
    for pattern_type, name, bits in entries:
        if bits & allowing:
            dominating = rights.bits_of_prefixes(name)
            if pattern_type == LITERAL:
                dominating |= rights.bits_of(pattern_type, name)
            if not dominating & denying:
                return pattern_type, name
    return None


def _in_turns(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Return the entries, with a `pause` now and then."""
    for number, entry in enumerate(entries):
        if not number % _BETWEEN_PAUSES:
            pause()
        yield entry
