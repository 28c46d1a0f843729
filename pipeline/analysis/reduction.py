"""How much of what a set of ACLs allows another set leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.operations import GRANTED_BY
from aclbroker.pipeline.analysis.least_privilege import operations_of


class Reduction(NamedTuple):
    """What becomes of the grants of a set of ACLs: ALLOWs by principal, pattern and operation.

    ``kept``: the other set allows all of it. ``narrowed``: it allows a part. ``gone``: it allows
    nothing of it.
    """

    kept: int
    narrowed: int
    gone: int


def reduction(before: Iterable[AclBinding], after: Iterable[AclBinding]) -> Reduction:
    """Compare two sets of ACLs; hosts are left out of account, and DENYs too."""
    old, new = _Grants(before), _Grants(after)
    kept = {grant for grant, _ in new.enclosing(old)}
    left = {wider for _, wider in old.enclosing(new)}
    narrowed = len(left - kept)
    return Reduction(len(kept), narrowed, len(old) - len(kept) - narrowed)


_Pattern = tuple[ResourceType, PatternType, str]
_Grant = tuple[_Pattern, str, AclOperation]


class _Grants:
    """The grants of a set of ACLs: which there are, and which hold for all of another one."""

    def __init__(self, acls: Iterable[AclBinding]) -> None:
        self._bits: dict[_Pattern, dict[str, int]] = {}
        self._lengths: dict[ResourceType, set[int]] = {}
        for acl in acls:
            if acl.permission is not AclPermission.ALLOW:
                continue
            pattern = (acl.resource_type, acl.pattern_type, acl.resource_name)
            principals = self._bits.setdefault(pattern, {})
            principals[acl.principal] = principals.get(acl.principal, 0) | 1 << acl.operation
            if acl.pattern_type is PatternType.PREFIXED:
                self._lengths.setdefault(acl.resource_type, set()).add(len(acl.resource_name))

    def __len__(self) -> int:
        return sum(
            bits.bit_count() for principals in self._bits.values() for bits in principals.values()
        )

    def enclosing(self, others: _Grants) -> Iterator[tuple[_Grant, _Grant]]:
        """Return each of some other grants with each of these that allows all that it allows."""
        for own, principals in others._bits.items():
            for pattern in self._patterns_around(*own):
                here = self._bits.get(pattern)
                if here is not None:
                    for principal, bits in principals.items():
                        for operation, who, source in _sources(principal, bits, here):
                            yield (own, principal, operation), (pattern, who, source)

    def _patterns_around(
        self, resource_type: ResourceType, pattern_type: PatternType, name: str
    ) -> Iterator[_Pattern]:
        yield resource_type, PatternType.LITERAL, WILDCARD
        if pattern_type is PatternType.LITERAL:
            if name == WILDCARD:
                return
            yield resource_type, PatternType.LITERAL, name
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                yield resource_type, PatternType.PREFIXED, name[:length]


def _sources(
    principal: str, bits: int, here: Mapping[str, int]
) -> Iterator[tuple[AclOperation, str, AclOperation]]:
    """Return each operation of a principal with whom and what allows it on another pattern."""
    for who in {principal, WILDCARD_PRINCIPAL}:
        if who in here:
            for operation in operations_of(bits):
                for source in operations_of(here[who] & GRANTED_BY[operation]):
                    yield operation, who, source
