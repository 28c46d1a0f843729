"""How a change of ACLs is made: first durable in the store, then visible to decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

from aclbroker.acl.authorizer import AclError
from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.index_changes import IndexChanges
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import (
    AclStore,
    Origin,
    Plan,
    SerialStore,
    StoreError,
    StoreUnavailable,
)
from aclbroker.turns import in_turns

log = get_logger()

Failure = tuple[AclError, str]
"""Why a change could not be made, as its client is told."""

RemoveCopies = Callable[[Collection[AclBinding], Origin], Awaitable[None]]
"""Removes ACLs elsewhere that are about to be removed here; may raise `StoreError`."""

_NOT_STORED: Final = (
    "The ACL store could not save the change, so nothing was changed. The broker's log says why."
)
_NOT_REACHED: Final = (
    "The ACL store cannot be reached now, so the change may not have been made. Try again."
)
_NOT_SEEN: Final = (
    "The change is stored, but this broker has not seen it come back from the store yet. Try again."
)


class Committer:
    """Makes changes in an open store and the index of its ACLs, for one task at a time.

    If a ``follower`` is given others change the store, too, and the follower alone changes the
    index. ``position`` is that of what was loaded. Changes that fail are logged in ``lines``. Where
    ACLs of other stores decide as well ``remove_copies`` removes there what is to be removed here:
    what allows before, since it would go on to allow, and what denies after, since it must not be
    gone if the change cannot be made.
    """

    def __init__(
        self,
        store: AclStore,
        index_changes: IndexChanges,
        lines: LimitedLog,
        follower: Follower | None,
        position: int,
        remove_copies: RemoveCopies | None,
    ) -> None:
        self._store = store
        self._index_changes = index_changes
        self._lines = lines
        self._follower = follower
        self._serial = store if follower is not None and isinstance(store, SerialStore) else None
        self._remove_copies = remove_copies
        self.position = position
        """Up to where the index has the changes of the store, unless a follower changes it."""

    @property
    def is_serial(self) -> bool:
        """Whether changes are to be made by `transact`, at a position, and not by `apply`."""
        return self._serial is not None

    async def catch_up(self, origin: Origin) -> Failure | None:
        """Wait until the index has what others have changed; return why it has not, or None."""
        if self._follower is None:
            return None
        try:
            position = await self._store.position()
        except StoreError as error:
            self.tell(log.error, origin.host, reason=str(error))
            return AclError.REQUEST_TIMED_OUT, _NOT_REACHED
        if not await self._follower.has_reached(position):
            self.tell(log.error, origin.host, reason="what others changed was not seen in time")
            return AclError.REQUEST_TIMED_OUT, _NOT_REACHED
        return None

    async def apply(
        self,
        origin: Origin,
        added: Collection[AclBinding] = (),
        removed: Collection[AclBinding] = (),
    ) -> Failure | None:
        """Make a change durable, then visible; return why it could not be made, or None.

        ``origin`` is who asked for it, or for the first of what is done together.
        """
        if not added and not removed:
            return None
        failure = await self.remove_copies(removed, origin, AclPermission.ALLOW)
        if failure:
            return failure
        failure, position = await self._stored(self._store.apply(added, removed, origin), origin)
        if failure:
            return failure
        if self._follower is not None:
            failure = await self._seen(position, origin)
            return failure or await self.remove_copies(removed, origin, AclPermission.DENY)
        await self._index_changes.make(added, removed)
        self.position = position
        return None

    async def remove_copies(
        self, removed: Collection[AclBinding], origin: Origin, *permissions: AclPermission
    ) -> Failure | None:
        """Remove elsewhere what allows, or denies; return why it could not be, or None."""
        if self._remove_copies is None:
            return None
        some = await self._index_changes.run(_those_that, permissions, removed)
        failure, _ = await self._stored(self._without(some, self._remove_copies, origin), origin)
        return failure

    async def _without(
        self, removed: Collection[AclBinding], remove: RemoveCopies, origin: Origin
    ) -> int:
        await remove(removed, origin)
        return self.position

    async def planned_at(self) -> int:
        """Wait until the index has what is on its way to it; return the position of that."""
        if self._serial is None or self._follower is None:
            return 0
        # What is planned from now on would otherwise have to be made right by all of that.
        await self._follower.has_reached(self._serial.told)
        return self._follower.position

    async def transact(self, position: int, plan: Plan, origin: Origin) -> Failure | None:
        """Make a plan of a position durable, then visible; return why it could not be, or None."""
        if self._serial is None:
            raise RuntimeError("only a store that keeps others waiting can carry a plan out")
        failure, made = await self._stored(self._serial.transact(position, plan, origin), origin)
        return failure or await self._seen(made, origin)

    async def _stored(self, change: Awaitable[int], origin: Origin) -> tuple[Failure | None, int]:
        """Wait for a change; return why it could not be made, or the position that it has."""
        try:
            return None, await change
        except StoreUnavailable as error:
            self.tell(log.error, origin.host, reason=str(error))
            return (AclError.REQUEST_TIMED_OUT, _NOT_REACHED), 0
        except StoreError as error:
            self.tell(log.error, origin.host, reason=str(error))
            return (AclError.UNKNOWN_SERVER_ERROR, error.client_text or _NOT_STORED), 0

    async def _seen(self, position: int, origin: Origin) -> Failure | None:
        """Wait until a change came back from the store; return why it has not, or None."""
        if self._follower is not None and not await self._follower.has_reached(position):
            self.tell(log.error, origin.host, reason="it was stored, and not seen since")
            return AclError.REQUEST_TIMED_OUT, _NOT_SEEN
        return None

    def tell(self, write: Callable[..., Any], host: str, **values: str) -> None:
        """Log that a change could not be made, unless its peer has caused too many such lines."""
        self._lines.write(write, "ACLs not changed", host, peer=host or None, **values)


def _those_that(
    permissions: Collection[AclPermission], acls: Collection[AclBinding]
) -> list[AclBinding]:
    return [acl for acl in in_turns(acls) if acl.permission in permissions]
