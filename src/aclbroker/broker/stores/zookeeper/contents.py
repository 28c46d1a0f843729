"""What a store in ZooKeeper is known to have: ACLs by pattern, records by kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from aclbroker.acl.bindings import AclBinding, ResourcePattern
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.zookeeper.layout import (
    NodeAcls,
    UnreadableNode,
    bindings_of,
    node_path,
)

log = get_logger()

_CHUNK: Final = 2000
_NOTHING: Final = NodeAcls()


class Contents:
    """ACLs, records, and the patterns whose nodes cannot be read, with the reasons."""

    def __init__(self) -> None:
        self.acls: dict[ResourcePattern, NodeAcls] = {}
        self.unreadable: dict[ResourcePattern, str] = {}
        self.records: dict[str, dict[str, str]] = {}

    def of(self, pattern: ResourcePattern) -> NodeAcls:
        """Return what a pattern has."""
        return self.acls.get(pattern, _NOTHING)

    def difference(
        self, pattern: ResourcePattern, new: NodeAcls | UnreadableNode
    ) -> tuple[list[AclBinding], list[AclBinding]]:
        """Return which ACLs are new, and which are gone, when a pattern has this.

        One that cannot be read has none.
        """
        before = self.of(pattern).entries
        after = _NOTHING.entries if isinstance(new, UnreadableNode) else new.entries
        return (
            list(bindings_of(pattern, after - before)),
            list(bindings_of(pattern, before - after)),
        )

    def take(self, pattern: ResourcePattern, new: NodeAcls | UnreadableNode) -> None:
        """Take what a pattern has now."""
        if isinstance(new, UnreadableNode):
            self._tell(pattern, str(new))
            self.unreadable[pattern] = str(new)
            new = _NOTHING
        elif self.unreadable.pop(pattern, None) is not None:
            log.warning("ACLs in ZooKeeper can be read again", path=node_path(pattern))
        if new.is_empty:
            self.acls.pop(pattern, None)
        else:
            self.acls[pattern] = new

    def _tell(self, pattern: ResourcePattern, reason: str) -> None:
        if self.unreadable.get(pattern) != reason:
            log.error(
                "ACLs in ZooKeeper cannot be read: until its node is put right nobody but super "
                "users may use what they are about",
                path=node_path(pattern),
                reason=reason,
            )

    def take_records(self, values: Mapping[tuple[str, str], str | None]) -> None:
        """Take the values that some records have now, None for one that is gone."""
        for (kind, name), value in values.items():
            of_kind = self.records.setdefault(kind, {})
            if value is None:
                of_kind.pop(name, None)
            else:
                of_kind[name] = value

    async def bindings(self) -> list[AclBinding]:
        """Return all ACLs of this moment; others have their turns meanwhile."""
        found: list[AclBinding] = []
        for chunk in self.chunks():
            found += chunk
            await asyncio.sleep(0)
        return found

    def chunks(self) -> Iterator[list[AclBinding]]:
        """Return all ACLs of the moment when it begins, in lists of a few thousand."""
        now = self.acls.copy()
        every = (binding for pattern, acls in now.items() for binding in acls.bindings(pattern))
        return _chunks(every)


def _chunks(bindings: Iterable[AclBinding]) -> Iterator[list[AclBinding]]:
    each = iter(bindings)
    while chunk := list(islice(each, _CHUNK)):
        yield chunk
