"""Find the ALLOWs that quarantined lines may have used, so that no proposal removes them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Final

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.pipeline.usage.doubt import Doubt

_MOST_LOOKUPS: Final = 1_000_000
"""With more lookups every ALLOW counts as doubted, because clients choose the doubtful texts."""

_Pattern = tuple[str, bool]
"""The name of an ACL's resource, and whether it is a prefix."""


def doubted(acls: Sequence[AclBinding], doubts: Iterable[Doubt]) -> set[int]:
    """Return the positions of the ALLOWs that may have allowed one of the doubtful requests.

    Hosts are ignored, because a doubtful request may have come from any host.
    """
    allows = _Allows(acls)
    lookups = 0
    found: set[int] = set()
    for doubt in set(doubts):
        principals = allows.principals(doubt)
        for bucket in allows.buckets(doubt):
            lookups += 1
            if lookups > _MOST_LOOKUPS or len(found) == len(allows.positions):
                return set(allows.positions)
            for first, end in principals:
                some = slice(bisect_left(bucket, first), bisect_left(bucket, end))
                found.update(allows.positions[at] for at in bucket[some])
                del bucket[some]
    return found


class _Allows:
    """Indexes the ALLOWs by what a doubt names, sorted by their principals.

    ``positions`` are the positions of the ALLOWs in that order. A bucket holds indexes of it.
    """

    def __init__(self, acls: Sequence[AclBinding]) -> None:
        allows = [at for at, acl in enumerate(acls) if acl.permission is AclPermission.ALLOW]
        self.positions = sorted(allows, key=lambda at: acls[at].principal)
        self._acls = [acls[at] for at in self.positions]
        self._principals = [acl.principal for acl in self._acls]
        self._patterns: list[_Pattern] = sorted({_pattern(acl) for acl in self._acls})
        self._names = [name for name, _ in self._patterns]
        self._known = frozenset(self._patterns)
        self._sizes = sorted({len(name) for name, is_prefix in self._patterns if is_prefix})
        self._by_shape: dict[tuple[bool, ...], dict[Hashable, list[int]]] = {}

    def principals(self, doubt: Doubt) -> list[tuple[int, int]]:
        """Return the ranges of ALLOWs that a doubt's principal may have used."""
        if doubt.principal is None:
            return [(0, len(self.positions))]
        found = [_range(self._principals, doubt.principal, doubt.is_longer)]
        return [*found, _range(self._principals, WILDCARD_PRINCIPAL, is_longer=False)]

    def buckets(self, doubt: Doubt) -> Iterator[list[int]]:
        """Yield the ALLOWs that a doubt's operation and resource fit, by buckets.

        The caller may remove indexes from a bucket, so that no other doubt finds them there.
        """
        kinds = [ResourceType[doubt.resource_type]] if doubt.resource_type else [None]
        operations = _granting(doubt.operation) if doubt.operation else [None]
        patterns = [None] if doubt.resource_name is None else self._fitting(doubt)
        shape = tuple(each is not None for each in doubt[2:5])
        if shape not in self._by_shape:
            self._by_shape[shape] = self._indexed(*shape)
        index = self._by_shape[shape]
        for key in product(kinds, operations, patterns):
            yield index.get(key, [])

    def _indexed(
        self, has_operation: bool, has_type: bool, has_name: bool
    ) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = {}
        for at, acl in enumerate(self._acls):
            key = (
                acl.resource_type if has_type else None,
                acl.operation if has_operation else None,
                _pattern(acl) if has_name else None,
            )
            found.setdefault(key, []).append(at)
        return found

    def _fitting(self, doubt: Doubt) -> Collection[_Pattern]:
        """Return the patterns that match a doubt's resource, or one whose name goes on."""
        name = doubt.resource_name or ""
        prefixes = [(name[:size], True) for size in self._sizes if size <= len(name)]
        found = self._known.intersection([(WILDCARD, False), (name, False), *prefixes])
        if not doubt.has_longer_name:
            return found
        first, end = _range(self._names, name, is_longer=True)
        return {*found, *self._patterns[first:end]}


def _pattern(acl: AclBinding) -> _Pattern:
    return acl.resource_name, acl.pattern_type is PatternType.PREFIXED


def _granting(operation: str) -> list[AclOperation]:
    granted_by = GRANTED_BY[AclOperation[operation]]
    return [each for each in AclOperation if granted_by >> each & 1]


def _range(texts: Sequence[str], text: str, is_longer: bool) -> tuple[int, int]:
    """Return the range of sorted texts that equal a text, or begin with it if ``is_longer``."""
    first = bisect_left(texts, text)
    if is_longer:
        return first, bisect_right(texts, text, first, key=lambda each: each[: len(text)])
    return first, bisect_right(texts, text, first)
