"""Whether a principal may do an operation on *any* resource of a type (KIP-679).

The rule is that of the default method in Kafka's Authorizer interface, after its first step, which
asks about one arbitrary name. Only ACLs that name the operation or ALL count; operations that imply
it do not.
"""

from __future__ import annotations

from typing import Final

from aclbroker.broker.acl.bindings import WILDCARD, AclOperation, PatternType
from aclbroker.broker.acl.operations import DENIED_SHIFT, NAMED_BY
from aclbroker.broker.acl.rights import PeerRights

_EVERYTHING: Final = (PatternType.LITERAL, WILDCARD)


def deciding_pattern(
    rights: PeerRights, operation: AclOperation
) -> tuple[bool, tuple[PatternType, str] | None]:
    """Return whether the operation is allowed on any resource, and the pattern that decides.

    A denial on ``*`` decides first, then an allowance on ``*``. After these, an allowance counts
    if no denial dominates it: one on the same literal name, or one on a prefix of its name. With no
    such allowance the answer is no, and no pattern decides.
    """
    allowing = NAMED_BY[operation]
    denying = allowing << DENIED_SHIFT
    everywhere = rights.bits_of(*_EVERYTHING)
    if everywhere & (allowing | denying):
        return not everywhere & denying, _EVERYTHING
    for pattern in rights.patterns(allowing):
        dominating = rights.bits_of_prefixes(pattern[1])
        if pattern[0] == PatternType.LITERAL:
            dominating |= rights.bits_of(*pattern)
        if not dominating & denying:
            return True, pattern
    return False, None
