"""Sets of ACLs that are gone through one principal's after the other.

Of a fleet they are more than one process should hold as objects: what is only written, counted or
compared with another set needs one principal's at a time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Change, changes, ordered


class AclsByPrincipal(Protocol):
    """A set of ACLs. ``principals`` are those that they name."""

    @property
    def principals(self) -> Collection[str]:
        """Return the principals, in any order, each once."""

    def of(self, principal: str) -> Sequence[AclBinding]:
        """Return the ACLs of one in order, each once; none of who is not of the principals."""


class Grouped:
    """A set of ACLs that are in memory."""

    def __init__(self, acls: Iterable[AclBinding]) -> None:
        self._by_principal: dict[str, list[AclBinding]] = {}
        for acl in ordered(acls):
            self._by_principal.setdefault(acl.principal, []).append(acl)

    @property
    def principals(self) -> Collection[str]:
        """Return the principals."""
        return self._by_principal.keys()

    def of(self, principal: str) -> Sequence[AclBinding]:
        """Return the ACLs of one in order."""
        return self._by_principal.get(principal, ())


class Packed:
    """A set of ACLs as bytes, some ten for each: those of a principal are unpacked when needed.

    ``packed`` has for principals what `packed_acls` returns; ``beside`` are further ACLs.
    """

    def __init__(self, packed: Mapping[str, bytes], beside: Iterable[AclBinding] = ()) -> None:
        self._packed = packed
        self._beside = Grouped(beside)

    @property
    def principals(self) -> Collection[str]:
        """Return the principals."""
        return {*self._packed, *self._beside.principals}

    def of(self, principal: str) -> Sequence[AclBinding]:
        """Return the ACLs of one in order."""
        beside, packed = self._beside.of(principal), self._packed.get(principal)
        if packed is None:
            return beside
        found = unpacked_acls(principal, packed)
        return ordered([*found, *beside]) if beside else found


class Changed:
    """Those ACLs of two sets of which one thing becomes: added, removed or kept."""

    def __init__(self, before: AclsByPrincipal, after: AclsByPrincipal, change: Change) -> None:
        self._before = before
        self._after = after
        self._change = change

    @property
    def principals(self) -> Collection[str]:
        """Return the principals of both sets."""
        return {*self._before.principals, *self._after.principals}

    def of(self, principal: str) -> Sequence[AclBinding]:
        """Return the ACLs of one in order."""
        found = changes(self._before.of(principal), self._after.of(principal))
        return [acl for acl, change in found if change == self._change]


def every(acls: AclsByPrincipal) -> Iterator[AclBinding]:
    """Yield all ACLs, the principals in order."""
    for principal in sorted(acls.principals):
        yield from acls.of(principal)


def every_change(
    before: AclsByPrincipal, after: AclsByPrincipal
) -> Iterator[tuple[AclBinding, Change]]:
    """Yield every ACL of two sets, the principals in order, and what becomes of it."""
    for principal in sorted({*before.principals, *after.principals}):
        yield from changes(before.of(principal), after.of(principal))


_FIELDS: Final = (
    {int(each): each for each in ResourceType},
    None,
    {int(each): each for each in PatternType},
    None,
    {int(each): each for each in AclOperation},
    {int(each): each for each in AclPermission},
)
"""What the numbers of packed columns stand for; None where they are texts."""


def packed_acls(acls: Iterable[AclBinding]) -> bytes:
    """Return ACLs of one principal, in order, as bytes."""
    rows = [(acl[0], acl[1], acl[2], acl[4], acl[5], acl[6]) for acl in acls]
    text = json.dumps(list(zip(*rows, strict=True)), separators=(",", ":"))
    return zlib.compress(text.encode(), 1)


def unpacked_acls(principal: str, packed: bytes) -> list[AclBinding]:
    """Return what was packed, in its order."""
    columns = json.loads(zlib.decompress(packed))
    if not columns:
        return []
    values = [
        column if members is None else [members[each] for each in column]
        for column, members in zip(columns, _FIELDS, strict=True)
    ]
    types, names, patterns, hosts, operations, permissions = values
    return [
        AclBinding(kind, name, pattern, principal, host, operation, permission)
        for kind, name, pattern, host, operation, permission in zip(
            types, names, patterns, hosts, operations, permissions, strict=True
        )
    ]
