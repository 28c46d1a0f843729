"""The one task that changes ACLs, in the store and in the index, in the order of the requests.

A change is first durable, then visible to decisions (`committing`), then answered. Creations that
wait while another change is being stored go into one transaction together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import AclCreateResult, AclDeleteResult, AclError
from aclbroker.acl.bindings import ALLOW, DENY, AclBinding, AclFilter, invalid_reason
from aclbroker.acl.hosts import is_malformed_subnet
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.committing import (
    Committer,
    Failure,
    RemoveCopies,
)
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.index_changes import IndexChanges
from aclbroker.broker.authorizer.plans import Creation, Deletion
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import (
    AclStore,
    LimitedStore,
    Origin,
)
from aclbroker.broker.turns import Turns
from aclbroker.turns import in_turns

log = get_logger()

_LEAST_LISTED: Final = 100_000
"""How many ACLs the answer to a deletion may list, even if there are fewer."""

_ROUNDS: Final = 10
"""How often a deletion looks again whether others have added what it is to delete."""

LIMIT_NAME: Final = "aclbroker.acl.limit"

_CREATED: Final = AclCreateResult()
_TOO_LONG: Final = (
    "The filters of this request together match more ACLs than one answer may list. Nothing was "
    "deleted for this filter; ask for it in a request of its own."
)
_CLOSED: Final = "The broker is shutting down; nothing was changed."


class _Creation(NamedTuple):
    bindings: Sequence[AclBinding]
    origin: Origin
    answer: asyncio.Future[list[AclCreateResult]]


class _Deletion(NamedTuple):
    filters: Sequence[AclFilter]
    origin: Origin
    answer: asyncio.Future[list[AclDeleteResult]]


class AclWriter:
    """Changes an open store and the index of its ACLs; nobody else may change either.

    If a ``follower`` is given others change the store, too, and the follower alone changes the
    index. ``limit`` is how many ACLs there may be, None for any number, and ``limit_name`` the
    setting that says so; ``position`` is that of what was loaded. Long changes take ``turns``.
    Those that fail are logged in ``lines``. If ACLs of other stores decide as well,
    ``remove_copies`` removes the same ACLs from these stores. With ``cidr`` a host with a slash
    must be a subnet (KIP-1276). It must be made in a running loop.
    """

    def __init__(
        self,
        store: AclStore,
        index: AclIndex,
        limit: int | None = None,
        turns: Turns | None = None,
        lines: LimitedLog | None = None,
        follower: Follower | None = None,
        position: int = 0,
        limit_name: str = LIMIT_NAME,
        remove_copies: RemoveCopies | None = None,
        cidr: bool = False,
    ) -> None:
        self._index = index
        self._cidr = cidr
        self._limit = limit
        self._limit_name = limit_name
        self._changes: deque[_Creation | _Deletion] = deque()
        self._changed = asyncio.Event()
        self._closing = False
        self._index_changes = IndexChanges(index, turns)
        self._commits = Committer(
            *(store, self._index_changes, lines or LimitedLog(), follower, position, remove_copies)
        )
        self._is_followed = follower is not None
        self._refusal = store.refusal if isinstance(store, LimitedStore) else None
        self._task = asyncio.create_task(self._work())

    @property
    def position(self) -> int:
        """Up to where the index has the changes of the store, unless a follower changes it."""
        return self._commits.position

    async def create(
        self, bindings: Sequence[AclBinding], origin: Origin | None = None
    ) -> list[AclCreateResult]:
        """Create ACLs, each on its own; return a result for each, in order.

        ``origin`` is who asks; without it, the broker itself.
        """
        if self._closing:
            return [AclCreateResult(AclError.UNKNOWN_SERVER_ERROR, _CLOSED)] * len(bindings)
        answer = asyncio.get_running_loop().create_future()
        self._enqueue(creation := _Creation(bindings, origin or Origin.now(), answer))
        return await creation.answer

    async def delete(
        self, filters: Sequence[AclFilter], origin: Origin | None = None
    ) -> list[AclDeleteResult]:
        """Delete what any filter matches; return for each, in order, all that it matched.

        ``origin`` is who asks; without it, the broker itself.
        """
        if self._closing:
            return [AclDeleteResult(AclError.UNKNOWN_SERVER_ERROR, _CLOSED)] * len(filters)
        answer = asyncio.get_running_loop().create_future()
        self._enqueue(deletion := _Deletion(filters, origin or Origin.now(), answer))
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
                    creations = [change, *self._waiting_creations(change.origin)]
                    group = [*creations]
                    await self._create(creations)
            except Exception as error:  # noqa: BLE001 # it is raised where it is waited for
                self._commits.tell(log.exception, change.origin.host)
                for each in group:
                    if not each.answer.done():
                        each.answer.set_exception(error)

    async def _has_changes(self) -> bool:
        """Wait for a change; return False if it is closed and none is left."""
        while not self._changes and not self._closing:
            self._changed.clear()
            await self._changed.wait()
        return bool(self._changes)

    def _waiting_creations(self, origin: Origin) -> Iterable[_Creation]:
        """Return what else waits to be created, as long as the same one asks for it from there.

        Each transaction has one origin: who granted what must not be mixed up later.
        """
        while self._changes and isinstance(creation := self._changes[0], _Creation):
            if creation.origin[:2] != origin[:2]:
                return
            self._changes.popleft()
            yield creation

    async def _create(self, creations: Sequence[_Creation]) -> None:
        position = await self._commits.planned_at()
        creation = Creation({}, {})
        outcomes: list[list[AclCreateResult | None]] = []
        for each in creations:
            outcomes.append(await self._index_changes.run(self._admit_all, each.bindings, creation))
        origin = creations[0].origin
        if not self._commits.is_serial:
            failure = await self._commits.apply(origin, added=creation.new)
        else:
            failure = await self._commits.transact(position, creation.plan, origin)
        result = AclCreateResult(*failure) if failure else _CREATED
        for each, outcome in zip(creations, outcomes, strict=True):
            _answer(each.answer, [result if one is None else one for one in outcome])

    def _admit_all(
        self, bindings: Sequence[AclBinding], creation: Creation
    ) -> list[AclCreateResult | None]:
        return [self._admit(binding, creation) for binding in in_turns(bindings)]

    def _admit(self, binding: AclBinding, creation: Creation) -> AclCreateResult | None:
        """Return the result of a creation, or put it among what is to be there, and return None."""
        reason = invalid_reason(binding)
        if reason is None and self._cidr and is_malformed_subnet(binding.host):
            reason = f"The host {binding.host!r} is no subnet: write one such as 10.1.0.0/16."
        if reason is not None:
            return AclCreateResult(AclError.INVALID_REQUEST, reason)
        is_there, new = binding in self._index, creation.new
        if is_there and self._commits.is_serial:
            creation.there[binding] = None
            return None
        # Of a shared store it may have been removed a moment ago, which the store knows first.
        if is_there and not self._is_followed:
            return _CREATED
        if self._refusal is not None and (reason := self._refusal(binding)) is not None:
            return AclCreateResult(AclError.INVALID_REQUEST, reason)
        limit, is_new = self._limit, not is_there and binding not in new
        if limit is not None and limit <= len(self._index) + len(new) and is_new:
            text = f"There may be {limit} ACLs ({self._limit_name}), and there are."
            return AclCreateResult(AclError.POLICY_VIOLATION, text)
        new[binding] = None
        return None

    async def _delete(self, deletion: _Deletion) -> None:
        if self._commits.is_serial:
            results = await self._delete_at_once(deletion)
        else:
            results = await self._delete_in_rounds(deletion)
        _answer(deletion.answer, results)

    async def _delete_at_once(self, deletion: _Deletion) -> Sequence[AclDeleteResult]:
        """Delete what is there in one transaction, also what others have added a moment ago."""
        position = await self._commits.planned_at()
        gone: dict[AclBinding, None] = {}
        found = await self._index_changes.run(self._select_all, deletion.filters, gone)
        planned = Deletion(deletion.filters, found, gone)
        origin = deletion.origin
        remove_copies = self._commits.remove_copies
        failure = await remove_copies(gone, origin, ALLOW)
        failure = failure or await self._commits.transact(position, planned.plan, origin)
        failure = failure or await remove_copies(gone, origin, DENY)
        failure = failure or await remove_copies(planned.late, origin, ALLOW, DENY)
        return _failed(planned.results, failure)

    async def _delete_in_rounds(self, deletion: _Deletion) -> Sequence[AclDeleteResult]:
        failure = await self._commits.catch_up(deletion.origin)
        if failure:
            return [AclDeleteResult(*failure)] * len(deletion.filters)
        results: list[AclDeleteResult] = []
        # What others add to a shared store before a deletion is made there is deleted as well.
        for _ in range(1 if not self._is_followed else _ROUNDS):
            gone: dict[AclBinding, None] = {}
            found = await self._index_changes.run(self._select_all, deletion.filters, gone)
            failure = await self._commits.apply(deletion.origin, removed=gone)
            results = _joined(results, _failed(found, failure))
            if failure or not gone:
                break
        return results

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
        # Only what follows a shared store can change the index meanwhile; what that adds or removes
        # may be among them or not, as if it had come before or after this request.
        found = list(islice(self._index.find(acl_filter), room + 1))
        if len(found) > room:
            return AclDeleteResult(AclError.INVALID_REQUEST, _TOO_LONG)
        for binding in in_turns(found):
            gone[binding] = None
        return AclDeleteResult(bindings=found)


def _joined(
    before: Sequence[AclDeleteResult], found: Sequence[AclDeleteResult]
) -> list[AclDeleteResult]:
    """Return what each filter has deleted in several rounds."""
    if not before:
        return list(found)
    return [
        new._replace(bindings=[*old.bindings, *new.bindings]) if new.bindings else old
        for old, new in zip(before, found, strict=True)
    ]


def _failed(found: Sequence[AclDeleteResult], failure: Failure | None) -> Sequence[AclDeleteResult]:
    """Return the results of filters, if there was a failure for those that match anything."""
    if failure is None:
        return found
    failed = AclDeleteResult(*failure)
    return [failed if result.bindings else result for result in found]


def _answer(future: asyncio.Future[Any], result: Any) -> None:
    # The client may have gone away meanwhile.
    if not future.done():
        future.set_result(result)
