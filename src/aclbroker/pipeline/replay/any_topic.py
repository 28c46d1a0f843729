"""Which ACLs are behind a decision on any topic (KIP-679), as idempotent producers ask for.

The rule is that of `StandardAuthorizerData.authorize_by_resource_type`. Each ALLOW that no DENY
takes back suffices, whatever others there are. All of them are told, as one may stand for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from aclbroker.acl.authorizer import Peer
from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import ANY_NAME
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import DENIED_SHIFT, GRANTED_BY, NAMED_BY, pairs
from aclbroker.pipeline.replay.reasons import Reasons, only_one

_TOPIC: Final = ResourceType.TOPIC
_LITERAL: Final = PatternType.LITERAL


def reasons_on_any_topic(
    index: AclIndex,
    positions: Mapping[AclBinding, int],
    peer: Peer,
    operation: AclOperation,
    *,
    is_open: bool,
) -> Reasons:
    """Return what is behind the decision for a peer, who is no super user.

    ``is_open`` tells that resources without ACLs are open to everyone. If it is allowed, ``allows``
    are all ALLOWs of which each one suffices. If it is denied, they are those that would if it were
    not for ``denies``.
    """
    on_resource = None
    if is_open:
        named = index.find(AclFilter(_TOPIC, ANY_NAME, PatternType.MATCH))
        on_resource = sorted(positions[acl] for acl in named)
        if not on_resource:
            return Reasons([], [], on_resource, [])
    acls = _AclsOfPeer(index, peer, operation)
    only = only_one(on_resource)
    allows = sorted({positions[acl] for acl in acls.sufficient()})
    if allows:
        # Without the last ACL on the name that is asked about first, that name is open.
        alone = allows if len(allows) == 1 and only != allows[0] else []
        return Reasons(allows, [], on_resource, alone)
    denied = dict(acls.denied())
    in_the_way = [way for ways in denied.values() for way in ways]
    deciding = {positions[acl] for way in in_the_way if len(way) == 1 for acl in way}
    everywhere = acls.denying(_LITERAL, WILDCARD)
    return Reasons(
        sorted(positions[acl] for acl in denied),
        sorted({positions[acl] for acl in everywhere.union(*in_the_way)}),
        on_resource,
        sorted(deciding if only is None else {*deciding, only}),
    )


class _AclsOfPeer:
    """The ACLs on topics that hold for a peer and an operation."""

    def __init__(self, index: AclIndex, peer: Peer, operation: AclOperation) -> None:
        self._index = index
        self._peer = peer
        self._rights = index.rights(peer, _TOPIC)
        self._naming = NAMED_BY[operation]
        self._granting = GRANTED_BY[operation]
        self._denying = self._naming << DENIED_SHIFT

    def sufficient(self) -> Iterator[AclBinding]:
        """Yield the ALLOWs by which alone, beside the DENYs, it would be allowed."""
        rights, denying = self._rights, self._denying
        if not any(permissions.ever & denying for permissions in rights.permissions):
            yield from self._granted()
            return
        if rights.bits_of(_LITERAL, WILDCARD) & denying:
            return
        is_first_denied = bool(rights.bits(ANY_NAME) & denying)
        for acl in self._granted():
            by_first = not is_first_denied and _holds(acl, ANY_NAME)
            if by_first or (self._names(acl) and not self._is_dominated(acl)):
                yield acl

    def denied(self) -> Iterator[tuple[AclBinding, list[frozenset[AclBinding]]]]:
        """Yield all ALLOWs, and for each way in which it could suffice the DENYs in that way."""
        for acl in self._granted():
            ways = []
            if _holds(acl, ANY_NAME):
                ways.append(self.denying(_LITERAL, ANY_NAME))
            if self._names(acl):
                ways.append(self.denying(acl.pattern_type, acl.resource_name))
            yield acl, ways

    def denying(self, pattern_type: PatternType, name: str) -> frozenset[AclBinding]:
        """Return the DENYs that take back an ALLOW of a pattern entirely."""
        is_all = (pattern_type, name) == (_LITERAL, WILDCARD)
        return frozenset(
            acl
            for acl in self._index.bindings_for(self._peer, _TOPIC, name)
            if acl.permission is AclPermission.DENY
            and self._naming >> acl.operation & 1
            and (_is_everything(acl) or (not is_all and _is_around(acl, pattern_type)))
        )

    def _granted(self) -> Iterator[AclBinding]:
        """Yield the ALLOWs that count: of operations that imply it, only on the first name."""
        # A session may name one principal twice, and its permissions are then there twice.
        for permissions in dict.fromkeys(self._rights.permissions):
            if not permissions.ever & self._granting:
                continue
            who = permissions.principal, permissions.host
            for pattern_type in (_LITERAL, PatternType.PREFIXED):
                for name, bits in permissions.of_type(pattern_type).items():
                    for pair in pairs(bits & self._granting):
                        acl = AclBinding(_TOPIC, name, pattern_type, *who, *pair)
                        if self._names(acl) or _holds(acl, ANY_NAME):
                            yield acl

    def _names(self, acl: AclBinding) -> bool:
        return bool(self._naming >> acl.operation & 1)

    def _is_dominated(self, acl: AclBinding) -> bool:
        if _is_everything(acl):
            return False
        found = self._rights.bits_of_prefixes(acl.resource_name)
        if acl.pattern_type == _LITERAL:
            found |= self._rights.bits_of(_LITERAL, acl.resource_name)
        return bool(found & self._denying)


def _is_everything(acl: AclBinding) -> bool:
    return acl.pattern_type == _LITERAL and acl.resource_name == WILDCARD


def _is_around(acl: AclBinding, pattern_type: PatternType) -> bool:
    """Tell of an ACL that matches a pattern's name whether it is of all names of the pattern."""
    return acl.pattern_type == PatternType.PREFIXED or pattern_type == _LITERAL


def _holds(acl: AclBinding, name: str) -> bool:
    """Tell whether a name is one of an ACL's pattern."""
    if acl.pattern_type == _LITERAL:
        return acl.resource_name in (name, WILDCARD)
    return name.startswith(acl.resource_name)
