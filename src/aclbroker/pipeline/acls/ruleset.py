"""What decides on a cluster: its ACLs, and the settings of brokers that decide beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import BrokerUsers, StandardAuthorizerData
from aclbroker.acl.index import AclIndex


@dataclass(frozen=True, slots=True)
class Ruleset:
    """All that an authorizer goes by.

    ``acls`` are in order and each is there once (see `ruleset`). ``super_users`` are principals;
    ``broker_users`` those that may do everything on one listener. ``cidr`` tells that hosts in CIDR
    notation are subnets, as on our broker; to Kafka they are texts that match nobody.
    """

    acls: tuple[AclBinding, ...] = ()
    super_users: frozenset[str] = frozenset()
    broker_users: BrokerUsers = field(default_factory=BrokerUsers)
    allow_everyone_if_no_acl_found: bool = False
    cidr: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers get the ACLs as columns: as 100,000 objects they take three times as long.
        columns = tuple(zip(*self.acls, strict=True))
        numbers = {place: bytes(columns[place]) for place in _ENUMS} if columns else {}
        texts = tuple(None if place in numbers else each for place, each in enumerate(columns))
        settings = tuple(getattr(self, each.name) for each in fields(self)[1:])
        return _of_columns, (texts, numbers, settings)

    def with_acls(self, acls: Iterable[AclBinding]) -> Ruleset:
        """Return the same settings with other ACLs."""
        return replace(self, acls=ordered(acls))

    def authorizer(self) -> StandardAuthorizerData:
        """Return the broker's own authorizer of these rules."""
        return StandardAuthorizerData(
            AclIndex(self.acls, cidr=self.cidr),
            self.super_users,
            self.allow_everyone_if_no_acl_found,
            self.broker_users,
        )


_ENUMS: Final = {0: ResourceType, 2: PatternType, 5: AclOperation, 6: AclPermission}
"""The fields of an `AclBinding` that are numbers from 0 to 255, by their places."""


def _of_columns(
    texts: Sequence[Sequence[str] | None], numbers: Mapping[int, bytes], settings: tuple[Any, ...]
) -> Ruleset:
    columns: list[Iterable[Any]] = []
    for place, each in enumerate(texts):
        if each is None:
            members = {int(member): member for member in _ENUMS[place]}
            columns.append(map(members.__getitem__, numbers[place]))
        else:
            columns.append(each)
    return Ruleset(tuple(map(AclBinding._make, zip(*columns, strict=True))), *settings)


def ordered(acls: Iterable[AclBinding]) -> tuple[AclBinding, ...]:
    """Return each ACL once, in an order that depends on nothing else than the set."""
    # In the order given, which is nearly this one where a policy file was read, to sort is fast.
    return tuple(sorted(dict.fromkeys(acls)))


Change = Literal["kept", "added", "removed"]


def changes(
    before: Sequence[AclBinding], after: Sequence[AclBinding]
) -> Iterator[tuple[AclBinding, Change]]:
    """Yield every ACL of two sets in order, and what becomes of it. Both are `ordered`."""
    # Side by side, since sets of them take as much memory again.
    left = iter(before)
    old = next(left, None)
    for acl in after:
        while old is not None and old < acl:
            yield old, "removed"
            old = next(left, None)
        if old == acl:
            yield acl, "kept"
            old = next(left, None)
        else:
            yield acl, "added"
    if old is not None:
        yield old, "removed"
    yield from ((each, "removed") for each in left)


def acl_id(acl: AclBinding) -> str:
    """Return what an ACL is called in tables: 16 hexadecimal digits that depend on it alone."""
    text = json.dumps(acl, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
