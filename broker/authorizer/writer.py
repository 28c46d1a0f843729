"""The one task that changes ACLs, in the store and in the index, in the order of the requests.

A change is first durable, then visible to decisions, then answered. Creations that wait while
another change is being stored go into one transaction together.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeVar

from aclbroker.broker.acl.authorizer import AclCreateResult, AclDeleteResult, AclError
from aclbroker.broker.acl.bindings import AclBinding, AclFilter, AclPermission, invalid_reason
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import AclStore, StoreError
from aclbroker.broker.turns import Turns
from aclbroker.turns import in_turns

log = get_logger()
T = TypeVar("T")

_LEAST_LISTED: Final = 100_000
"""How many ACLs the answer to a deletion may list, even if there are fewer."""

_STAYING: Final = 10_000
"""After how many new ACLs the garbage collector is told to ignore the objects that exist.

It would look through the whole index each time that it has grown by a quarter: with a million ACLs
that stops the broker for a quarter of a second. Reference counting still frees all of them, since
nothing in the index refers to itself.
"""

_CREATED: Final = AclCreateResult()
_NOT_STORED: Final = (
    "The ACL store could not save the change, so nothing was changed. The broker's log says why."
)
_TOO_LONG: Final = (
    "The filters of this request together match more ACLs than one answer may list. Nothing was "
    "deleted for this filter; ask for it in a request of its own."
)
_CLOSED: Final = "The broker is shutting down; nothing was changed."


class _Creation(NamedTuple):
    bindings: Sequence[AclBinding]
    host: str
    answer: asyncio.Future[list[AclCreateResult]]


class _Deletion(NamedTuple):
    filters: Sequence[AclFilter]
    host: str
    answer: asyncio.Future[list[AclDeleteResult]]


class AclWriter:
    """Changes an open store and the index of its ACLs; nobody else may change either.

    ``limit`` is how many ACLs there may be, None for any number. Long changes take ``turns``. Those
    that fail are logged in ``lines``. It must be made in a running loop.
    """

    def __init__(
        self,
        store: AclStore,
        index: AclIndex,
        limit: int | None = None,
        turns: Turns | None = None,
        lines: LimitedLog | None = None,
    ) -> None:
        self._store = store
        self._index = index
        self._limit = limit
        self._changes: deque[_Creation | _Deletion] = deque()
        self._changed = asyncio.Event()
        self._closing = False
        self._unfrozen = 0
        self._turns = turns or Turns()
        self._lines = lines or LimitedLog()
        self._task = asyncio.create_task(self._work())

    async def create(self, bindings: Sequence[AclBinding], host: str = "") -> list[AclCreateResult]:
        """Create ACLs, each on its own; return a result for each, in order.

        ``host`` is the address of who asks.
        """
        if self._closing:
            return [AclCreateResult(AclError.UNKNOWN_SERVER_ERROR, _CLOSED)] * len(bindings)
        creation = _Creation(bindings, host, asyncio.get_running_loop().create_future())
        self._enqueue(creation)
        return await creation.answer

    async def delete(self, filters: Sequence[AclFilter], host: str = "") -> list[AclDeleteResult]:
        """Delete what any filter matches; return for each, in order, all that it matched.

        ``host`` is the address of who asks.
        """
        if self._closing:
            return [AclDeleteResult(AclError.UNKNOWN_SERVER_ERROR, _CLOSED)] * len(filters)
        deletion = _Deletion(filters, host, asyncio.get_running_loop().create_future())
        self._enqueue(deletion)
        return await deletion.answer

    async def close(self) -> None:
        """Finish the changes that wait; refuse all later ones."""
        self._closing = True
        self._changed.set()
        await self._task

    def _enqueue(self, change: _Creation | _Deletion) -> None:
        self._changes.append(change)
        self._changed.set()

    async def _work(self) -> None:
        while await self._has_changes():
            change = self._changes.popleft()
            group = [change]
            try:
                if isinstance(change, _Deletion):
                    await self._delete(change)
                else:
                    creations = [change, *self._waiting_creations()]
                    group = [*creations]
                    await self._create(creations)
            except Exception as error:  # noqa: BLE001 # it is raised where it is waited for
                self._tell(log.exception, change.host)
                for each in group:
                    if not each.answer.done():
                        each.answer.set_exception(error)

    async def _has_changes(self) -> bool:
        """Wait for a change; return False if it is closed and none is left."""
        while not self._changes and not self._closing:
            self._changed.clear()
            await self._changed.wait()
        return bool(self._changes)

    def _waiting_creations(self) -> Iterable[_Creation]:
        while self._changes and isinstance(creation := self._changes[0], _Creation):
            self._changes.popleft()
            yield creation

    async def _create(self, creations: Sequence[_Creation]) -> None:
        new: dict[AclBinding, None] = {}
        outcomes: list[list[AclCreateResult | None]] = []
        for creation in creations:
            outcomes.append(await self._run(self._admit_all, creation.bindings, new))
        result = _CREATED
        if not await self._apply(creations[0].host, added=new):
            result = AclCreateResult(AclError.UNKNOWN_SERVER_ERROR, _NOT_STORED)
        for creation, outcome in zip(creations, outcomes, strict=True):
            _answer(creation.answer, [result if each is None else each for each in outcome])

    def _admit_all(
        self, bindings: Sequence[AclBinding], new: dict[AclBinding, None]
    ) -> list[AclCreateResult | None]:
        return [self._admit(binding, new) for binding in in_turns(bindings)]

    def _admit(self, binding: AclBinding, new: dict[AclBinding, None]) -> AclCreateResult | None:
        """Return the result of a creation, or put it among the new ones and return None."""
        reason = invalid_reason(binding)
        if reason is not None:
            return AclCreateResult(AclError.INVALID_REQUEST, reason)
        if binding in self._index:
            return _CREATED
        limit = self._limit
        if limit is not None and limit <= len(self._index) + len(new) and binding not in new:
            text = f"There may be {limit} ACLs (aclbroker.acl.limit), and there are."
            return AclCreateResult(AclError.POLICY_VIOLATION, text)
        new[binding] = None
        return None

    async def _delete(self, deletion: _Deletion) -> None:
        gone: dict[AclBinding, None] = {}
        results = await self._run(self._select_all, deletion.filters, gone)
        if not await self._apply(deletion.host, removed=gone):
            failure = AclDeleteResult(AclError.UNKNOWN_SERVER_ERROR, _NOT_STORED)
            results = [failure if result.bindings else result for result in results]
        _answer(deletion.answer, results)

    def _select_all(
        self, filters: Sequence[AclFilter], gone: dict[AclBinding, None]
    ) -> list[AclDeleteResult]:
        """Return what each filter matches, and put it among what is ``gone``.

        One filter may match all ACLs. Of many that do, those are refused with which the answer
        would list more ACLs than there are: it would be a large multiple of the request.
        """
        room = max(len(self._index), _LEAST_LISTED)
        results = []
        for acl_filter in in_turns(filters):
            result = self._select(acl_filter, gone, room)
            room -= len(result.bindings)
            results.append(result)
        return results

    def _select(
        self, acl_filter: AclFilter, gone: dict[AclBinding, None], room: int
    ) -> AclDeleteResult:
        if acl_filter.has_unknown:
            text = "A field of the filter has a value that this broker does not know."
            return AclDeleteResult(AclError.UNSUPPORTED_VERSION, text)
        # Nobody else changes the index, so this stays valid while other tasks run.
        found = list(islice(self._index.find(acl_filter), room + 1))
        if len(found) > room:
            return AclDeleteResult(AclError.INVALID_REQUEST, _TOO_LONG)
        gone.update(dict.fromkeys(in_turns(found)))
        return AclDeleteResult(bindings=found)

    async def _apply(
        self,
        host: str,
        added: Collection[AclBinding] = (),
        removed: Collection[AclBinding] = (),
    ) -> bool:
        """Make a change durable, then visible; return whether it could be made.

        ``host`` is the address of who asked for it, or for the first of what is done together.
        """
        if not added and not removed:
            return True
        try:
            await self._store.apply(added, removed)
        except StoreError as error:
            self._tell(log.error, host, reason=str(error))
            return False
        # Between two slices other tasks decide, and must not be allowed what is allowed neither
        # before nor after the change. So denials are added first, and removed last.
        await self._run(self._change_index, added, removed)
        self._unfrozen += len(added)
        if self._unfrozen >= _STAYING:
            self._unfrozen = 0
            gc.freeze()
        return True

    def _tell(self, write: Callable[..., Any], host: str, **values: str) -> None:
        """Log that a change could not be made, unless its peer has caused too many such lines."""
        self._lines.write(write, "ACLs not changed", host, peer=host or None, **values)

    def _change_index(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        for binding in _by_permission(added, AclPermission.DENY, AclPermission.ALLOW):
            self._index.add(binding)
        for binding in _by_permission(removed, AclPermission.ALLOW, AclPermission.DENY):
            self._index.remove(binding)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        """Return what a function returns that may take long; others have their turns meanwhile."""
        result: T | Awaitable[T] = self._turns.run("", function, *args)
        return await result if isinstance(result, Awaitable) else result


def _answer(future: asyncio.Future[Any], result: Any) -> None:
    # The client may have gone away meanwhile.
    if not future.done():
        future.set_result(result)


def _by_permission(bindings: Collection[AclBinding], *order: AclPermission) -> Iterable[AclBinding]:
    return chain.from_iterable(
        (binding for binding in in_turns(bindings) if binding.permission == permission)
        for permission in order
    )
