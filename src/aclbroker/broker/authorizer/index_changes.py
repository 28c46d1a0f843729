"""Changes of the index of ACLs: never such that something is allowed in between, and in turns."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Collection, Iterable
from itertools import chain
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.acl.index import AclIndex
from aclbroker.broker.turns import Turns
from aclbroker.turns import in_turns

T = TypeVar("T")

_STAYING: Final = 10_000
"""After how many new ACLs the garbage collector is told to ignore the objects that exist.

It would look through the whole index each time that it has grown by a quarter: with a million ACLs
that stops the broker for a quarter of a second. Reference counting still frees all of them, since
nothing in the index refers to itself.
"""


class IndexChanges:
    """Changes an index for one task, which alone may do so; long changes take ``turns``."""

    def __init__(self, index: AclIndex, turns: Turns | None = None) -> None:
        self._index = index
        self._turns = turns or Turns()
        self._unfrozen = 0

    async def make(
        self, added: Collection[AclBinding] = (), removed: Collection[AclBinding] = ()
    ) -> None:
        """Add and remove ACLs.

        Between two turns other tasks decide, and must not be allowed what is allowed neither
        before nor after the change. So denials are added first, and removed last.
        """
        await self.run(self._change, added, removed)

    def _change(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        for binding in _by_permission(added, AclPermission.DENY, AclPermission.ALLOW):
            self._index.add(binding)
            self._unfrozen += 1
            if self._unfrozen >= _STAYING:
                self._unfrozen = 0
                gc.freeze()
        for binding in _by_permission(removed, AclPermission.ALLOW, AclPermission.DENY):
            self._index.remove(binding)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return what a function returns that may take long; others have their turns meanwhile."""
        result: T | Awaitable[T] = self._turns.run("", function, *args)
        return await result if isinstance(result, Awaitable) else result


def _by_permission(bindings: Collection[AclBinding], *order: AclPermission) -> Iterable[AclBinding]:
    return chain.from_iterable(
        (binding for binding in in_turns(bindings) if binding.permission == permission)
        for permission in order
    )
