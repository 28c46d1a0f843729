"""How much of what a set of ACLs allows another set leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from broker.acl.operations import GRANTED_BY
from pipeline.analysis.least_privilege import operations_of


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
    kept = {grant for grant in old if next(new.around(grant), None) is not None}
    left = {wider for grant in new for wider in old.around(grant)}
    total = sum(1 for _ in old)
    narrowed = len(left - kept)
    return Reduction(len(kept), narrowed, total - len(kept) - narrowed)


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

    def __iter__(self) -> Iterator[_Grant]:
        for pattern, principals in self._bits.items():
            for principal, bits in principals.items():
                for operation in operations_of(bits):
                    yield pattern, principal, operation

    def around(self, grant: _Grant) -> Iterator[_Grant]:
        """Return the grants that allow all that another one allows."""
        own, principal, operation = grant
        for pattern in self._patterns_around(*own):
            principals = self._bits.get(pattern)
            if principals is not None:
                for each in {principal, WILDCARD_PRINCIPAL}:
                    for source in operations_of(principals.get(each, 0) & GRANTED_BY[operation]):
                        yield pattern, each, source

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
