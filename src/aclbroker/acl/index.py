"""All ACLs, indexed so that the cost of a question does not grow with their number.

The ACLs of a resource type can be reached in two ways. Decisions go from the principal and host
that an ACL names to the bits of what is allowed and denied on each pattern
(`acl.permissions`). Lists go from a pattern to those who have ACLs of it
(`acl.patterns`). There is no object per ACL; bindings are made when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from aclbroker.acl.authorizer import Peer
from aclbroker.acl.bindings import (
    LITERAL,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from aclbroker.acl.listing import AclListing, listed
from aclbroker.acl.near_misses import Decisive, decisive, near_misses, near_misses_of_any
from aclbroker.acl.operations import (
    ALLOWED_BITS,
    BITS,
    DENIED_SHIFT,
    bit,
    pairs,
    shared,
)
from aclbroker.acl.patterns import Patterns
from aclbroker.acl.permissions import Permissions, Principals
from aclbroker.acl.reasons import NearMiss
from aclbroker.acl.rights import PeerRights, RightsByPeer

Masks = tuple[int, int, bool]
"""What ACLs say of some principals at an address and a resource: (allowed, denied, found).

``allowed`` and ``denied`` have bit *n* set if an ACL allows or denies operation number *n*, with
ALL a bit like the others and nothing implied. ``found`` tells whether any ACL, for whomever, has a
pattern that matches the resource.
"""


class _OfType:
    """The ACLs of one resource type."""

    __slots__ = ("patterns", "principals", "rights")

    def __init__(self, resource_type: ResourceType, cidr: bool) -> None:
        self.patterns = Patterns(resource_type)
        self.principals = Principals(cidr)
        self.rights = RightsByPeer(self.principals, self.patterns.lengths)


class AclIndex:
    """A set of valid ACL bindings (see `invalid_reason`), which changes in place.

    With ``cidr``, hosts in CIDR notation match the addresses in them (KIP-252). Addresses are given
    to all methods in canonical form (`acl.hosts`). An iterator must be used up before the
    index changes.
    """

    def __init__(self, bindings: Iterable[AclBinding] = (), *, cidr: bool = False) -> None:
        self._types = [_OfType(resource_type, cidr) for resource_type in ResourceType]
        self._size = 0
        self._changes = 0
        self.add_all(bindings)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self.find(AclFilter()))

    def __contains__(self, binding: AclBinding) -> bool:
        resource_type, name, pattern_type, principal, host, operation, permission = binding
        permissions = self._types[resource_type].principals.get(principal, host)
        if permissions is None:
            return False
        return bool(permissions.of_type(pattern_type).get(name, 0) & bit(operation, permission))

    def add(self, binding: AclBinding) -> bool:
        """Add an ACL; return whether it is new. Raises ValueError for an empty resource name."""
        resource_type, name, pattern_type, principal, host, operation, permission = binding
        if not name:
            raise ValueError("an ACL must name a resource: an empty prefix would match everything")
        of_type = self._types[resource_type]
        permissions = of_type.principals.get_or_add(principal, host)
        bits = BITS[permission][operation]
        if name not in of_type.patterns.of_type(pattern_type):
            permissions.add_new(pattern_type, name, bits)
            of_type.patterns.add_new(pattern_type, name, permissions)
        elif not self._add_to_pattern(of_type, pattern_type, name, permissions, bits):
            return False
        if of_type.rights:
            of_type.rights.changed(principal)
        self._size += 1
        self._changes += 1
        return True

    def add_all(self, bindings: Iterable[AclBinding]) -> None:
        """Add ACLs as `add` does one by one, in two thirds of the time. Raises as that does."""
        types, added = self._types, 0
        try:
            for binding in bindings:
                resource_type, name, pattern_type, principal, host, operation, permission = binding
                of_type = types[resource_type]
                literal = of_type.patterns.literal
                if pattern_type != LITERAL or name in literal or not name or of_type.rights:
                    self.add(binding)
                    continue
                # Most are of a new name. Each call of a method would take a tenth of all this.
                permissions = of_type.principals.get_or_add(principal, host)
                bits = BITS[permission][operation]
                permissions.ever |= bits
                if permissions.literal is None:
                    permissions.literal = {name: bits}
                else:
                    permissions.literal[name] = bits
                literal[name] = permissions
                added += 1
        finally:
            self._size += added
            self._changes += added

    def _add_to_pattern(
        self,
        of_type: _OfType,
        pattern_type: PatternType,
        name: str,
        permissions: Permissions,
        bits: int,
    ) -> bool:
        # It has an ACL, if only this one: so neither it nor the principal stays without one.
        pattern = of_type.patterns.get(pattern_type, name)
        # The pattern's own name, so that all its permissions share one text.
        before = permissions.add(pattern_type, pattern.name, bits)
        if before is None:
            return False
        if not before:
            pattern.add(permissions)
        pattern.memo = None
        return True

    def remove(self, binding: AclBinding) -> bool:
        """Remove an ACL; return whether it was there."""
        resource_type, name, pattern_type, principal, host, operation, permission = binding
        of_type = self._types[resource_type]
        permissions = of_type.principals.get(principal, host)
        before = permissions.of_type(pattern_type).get(name, 0) if permissions else 0
        after = before & ~bit(operation, permission)
        if permissions is None or after == before:
            return False
        permissions.set(pattern_type, name, shared(after))
        pattern = of_type.patterns.get(pattern_type, name)
        pattern.memo = None
        if not after:
            if not pattern.discard(permissions):
                of_type.patterns.discard(pattern_type, name)
            if permissions.is_empty:
                of_type.principals.discard(permissions)
        of_type.rights.changed(principal)
        self._size -= 1
        self._changes += 1
        return True

    def withhold(self, pattern: ResourcePattern) -> None:
        """Deny everybody what matches a pattern whose ACLs are not known, until `release`.

        It is as if there were an ACL that denies ALL to ``User:*``, but it is in no list, it is not
        counted, and it cannot be removed.
        """
        resource_type, pattern_type, name = pattern
        of_type = self._types[resource_type]
        if of_type.principals.withhold(pattern_type, name):
            of_type.patterns.withhold(pattern_type, name)
        of_type.rights.forget_all()

    def release(self, pattern: ResourcePattern) -> None:
        """Let the ACLs alone decide on a pattern again."""
        resource_type, pattern_type, name = pattern
        of_type = self._types[resource_type]
        if of_type.principals.release(pattern_type, name):
            of_type.patterns.release(pattern_type, name)
        of_type.rights.forget_all()

    @property
    def withheld(self) -> set[ResourcePattern]:
        """The patterns that are withheld."""
        return {
            ResourcePattern(resource_type, pattern_type, name)
            for resource_type in ResourceType
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            for name in self._types[resource_type].principals.withheld.of_type(pattern_type)
        }

    def rights(self, peer: Peer, resource_type: ResourceType) -> PeerRights:
        """Return what the ACLs of a type say to a peer; to be asked anew after each change."""
        return self._types[resource_type].rights[peer]

    def forget_answers(self) -> None:
        """Forget what callers have worked out from the rights of peers and kept with them."""
        for of_type in self._types:
            of_type.rights.forget_all()

    def has_match(self, resource_type: ResourceType, name: str) -> bool:
        """Tell whether any ACL, for whomever, has a pattern that matches the resource."""
        return self._types[resource_type].patterns.match(name)

    def masks(self, peer: Peer, resource_type: ResourceType, name: str) -> Masks:
        """Return what all ACLs together say to a peer of a resource."""
        found = self.rights(peer, resource_type).bits(name)
        has_match = self.has_match(resource_type, name)
        return found & ALLOWED_BITS, found >> DENIED_SHIFT, has_match

    def bindings_for(
        self, peer: Peer, resource_type: ResourceType, name: str
    ) -> Iterator[AclBinding]:
        """Return the ACLs behind `masks`: of the name, of its prefixes, longest first, of ``*``."""
        rights = self.rights(peer, resource_type)
        patterns = self._types[resource_type].patterns
        for pattern_type, each in patterns.candidates(PatternType.MATCH, name):
            for permissions in rights.permissions:
                for pair in pairs(permissions.of_type(pattern_type).get(each, 0)):
                    who = permissions.principal, permissions.host
                    yield AclBinding(resource_type, each, pattern_type, *who, *pair)

    def near_misses(
        self, peer: Peer, operation: AclOperation, resource_type: ResourceType, name: str | None
    ) -> list[NearMiss]:
        """Return the ACLs that nearly allow an operation: see `acl.near_misses`.

        A name of None stands for any resource of the type.
        """
        of_type = self._types[resource_type]
        if name is None:
            return near_misses_of_any(of_type.principals, peer, operation, resource_type)
        lengths = of_type.patterns.lengths
        return near_misses(of_type.principals, peer, lengths, operation, (resource_type, name))

    def decisive(
        self, peer: Peer, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decisive | None:
        """Return what decides an operation, in bounded time: see `acl.near_misses`."""
        of_type = self._types[resource_type]
        lengths = of_type.patterns.lengths
        return decisive(of_type.principals, peer, lengths, operation, (resource_type, name))

    def find(self, acl_filter: AclFilter) -> AclListing:
        """Return all bindings that a filter selects, those of one resource pattern together."""
        asked = acl_filter.resource_type
        types = self._types if asked == ResourceType.ANY else (self._types[asked],)
        changes = self._changes
        return AclListing(
            chain.from_iterable(
                listed(of_type.patterns, of_type.principals, acl_filter)
                for of_type in types
                if of_type.principals
            ),
            lambda: changes == self._changes,
        )

    def hosts(self) -> set[str]:
        """Return all hosts that ACLs name, as they are written."""
        return {permissions.host for of_type in self._types for permissions in of_type.principals}
