"""All ACLs, indexed so that the cost of a decision does not grow with their number.

A resource pattern has one dict from `Identity` to the bits of what is allowed and denied to it
(`broker.acl.operations`), so that there is no object per ACL; bindings are made when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker.acl.bindings import AclBinding, AclFilter, PatternType, ResourceType
from broker.acl.identities import Identities, Identity
from broker.acl.operations import ALLOWED_BITS, DENIED_SHIFT, bit, bits, pairs, shared
from broker.acl.patterns import Entries, Pattern, Patterns

Masks = tuple[int, int, bool]
"""What ACLs say of some principals at an address and a resource: (allowed, denied, found).

``allowed`` and ``denied`` have bit *n* set if an ACL allows or denies operation number *n*, with
ALL a bit like the others and nothing implied. ``found`` tells whether any ACL, for whomever, has a
pattern that matches the resource.
"""


class AclIndex:
    """A set of valid ACL bindings (see `invalid_reason`), which changes in place.

    With ``cidr``, hosts in CIDR notation match the addresses in them (KIP-252). Addresses are given
    to all methods in canonical form (`broker.acl.hosts`). An iterator must be used up before the
    index changes.
    """

    def __init__(self, bindings: Iterable[AclBinding] = (), *, cidr: bool = False) -> None:
        self._types = [Patterns() for _ in ResourceType]
        self._identities = Identities(cidr)
        self._size = 0
        for binding in bindings:
            self.add(binding)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AclBinding]:
        return self.find(AclFilter())

    def __contains__(self, binding: AclBinding) -> bool:
        entries = self._types[binding.resource_type].of_type(binding.pattern_type)
        identity = self._identities.get(binding.principal, binding.host)
        if identity is None:
            return False
        found = entries.get(binding.resource_name, {}).get(identity, 0)
        return bool(found & bit(binding.operation, binding.permission))

    def add(self, binding: AclBinding) -> bool:
        """Add an ACL; return whether it is new. Raises ValueError for an empty resource name."""
        resource_type, name, pattern_type, principal, host, operation, permission = binding
        if not name:
            raise ValueError("an ACL must name a resource: an empty prefix would match everything")
        entries = self._types[resource_type].get_or_add(pattern_type, name)
        identity = self._identities.get_or_add(principal, host)
        before = entries.get(identity, 0)
        after = before | bit(operation, permission)
        if after == before:
            return False
        entries[identity] = shared(after)
        identity.uses += not before
        self._size += 1
        return True

    def remove(self, binding: AclBinding) -> bool:
        """Remove an ACL; return whether it was there."""
        if binding not in self:
            return False
        resource_type, name, pattern_type, principal, host, operation, permission = binding
        patterns = self._types[resource_type]
        entries = patterns.of_type(pattern_type)[name]
        identity = self._identities.get_or_add(principal, host)
        after = entries[identity] & ~bit(operation, permission)
        if after:
            entries[identity] = shared(after)
        else:
            del entries[identity]
            identity.uses -= 1
            if not identity.uses:
                self._identities.discard(identity)
        if not entries:
            patterns.discard(pattern_type, name)
        self._size -= 1
        return True

    def masks(
        self, principals: tuple[str, ...], address: str, resource_type: ResourceType, name: str
    ) -> Masks:
        """Return what all ACLs together say of the principals at an address and a resource."""
        matching = self._types[resource_type].matching(name)
        if not matching:
            return 0, 0, False
        identities = self._identities.matching(principals, address)
        found = 0
        for entries in matching:
            for identity in identities:
                if identity in entries:
                    found |= entries[identity]
        return found & ALLOWED_BITS, found >> DENIED_SHIFT, True

    def patterns(
        self, principals: tuple[str, ...], address: str, resource_type: ResourceType
    ) -> Iterator[tuple[Pattern, Masks]]:
        """Return all patterns of a type with an ACL for any of the principals, and what it says."""
        identities = self._identities.matching(principals, address)
        if not identities:
            return
        patterns = self._types[resource_type]
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            for name, entries in patterns.of_type(pattern_type).items():
                found = 0
                for identity in identities:
                    if identity in entries:
                        found |= entries[identity]
                if found:
                    masks = found & ALLOWED_BITS, found >> DENIED_SHIFT, True
                    yield (pattern_type, name), masks

    def bindings_for(
        self, principals: tuple[str, ...], address: str, resource_type: ResourceType, name: str
    ) -> Iterator[AclBinding]:
        """Return the ACLs behind `masks`: of the name, of its prefixes, longest first, of ``*``."""
        identities = self._identities.matching(principals, address)
        patterns = self._types[resource_type]
        for pattern in patterns.selected(PatternType.MATCH, name):
            entries = patterns.of_type(pattern[0])[pattern[1]]
            for identity in identities:
                yield from _bindings(resource_type, pattern, identity, entries.get(identity, 0))

    def find(self, acl_filter: AclFilter) -> Iterator[AclBinding]:
        """Return all bindings that a filter selects, those of one resource pattern together."""
        mask = bits(acl_filter.operation, acl_filter.permission)
        wanted = self._wanted(acl_filter.principal, acl_filter.host)
        if wanted is not None and not wanted:
            return
        for resource_type in ResourceType:
            if acl_filter.resource_type not in (ResourceType.ANY, resource_type):
                continue
            patterns = self._types[resource_type]
            for pattern in patterns.selected(acl_filter.pattern_type, acl_filter.resource_name):
                entries = patterns.of_type(pattern[0])[pattern[1]]
                for identity in entries if wanted is None else _common(wanted, entries):
                    yield from _bindings(resource_type, pattern, identity, entries[identity] & mask)

    def hosts(self) -> set[str]:
        """Return all hosts that ACLs name, as they are written."""
        return {identity.host for identity in self._identities}

    def _wanted(self, principal: str | None, host: str | None) -> set[Identity] | None:
        if principal is None and host is None:
            return None
        if principal is not None and host is not None:
            identity = self._identities.get(principal, host)
            return set() if identity is None else {identity}
        return {
            identity
            for identity in self._identities
            if principal in (None, identity.principal) and host in (None, identity.host)
        }


def _common(wanted: set[Identity], entries: Entries) -> Iterable[Identity]:
    if len(wanted) < len(entries):
        return [identity for identity in wanted if identity in entries]
    return [identity for identity in entries if identity in wanted]


def _bindings(
    resource_type: ResourceType, pattern: Pattern, identity: Identity, found: int
) -> Iterator[AclBinding]:
    pattern_type, name = pattern
    principal, host = identity.principal, identity.host
    for operation, permission in pairs(found):
        yield AclBinding(resource_type, name, pattern_type, principal, host, operation, permission)
