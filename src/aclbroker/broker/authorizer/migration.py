"""Copies a cluster's own ACLs to the centralised ones, and goes on with what is changed there.

This is the broker of Confluent's migration that has
``confluent.authorizer.migrate.acls.from.cluster=true``. It creates new ACLs of the cluster
centrally, and deletes ACLs centrally that the cluster no longer has. ACLs that were deleted
centrally stay deleted, and ACLs that were created centrally stay, over restarts as well
(`migrated`).

Before each copy `source_guard` judges the cluster. If its store may have lost its data, the
migration copies nothing until the data are back, or until an operator confirms the loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.acl.joint import PartIndex
from aclbroker.broker.authorizer.migrated import MigratedAcls
from aclbroker.broker.authorizer.remembered_source import RememberedSource
from aclbroker.broker.authorizer.source import AclSource
from aclbroker.broker.authorizer.source_guard import Gone, SourceGuard, SourceLoss, gone_of
from aclbroker.broker.config.access_rules import ACCEPTED_LOSS
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import Origin, StoreError
from aclbroker.broker.stores.identity import identity_of
from aclbroker.broker.stores.store import LimitedStore
from aclbroker.broker.turns import Turns
from aclbroker.turns import in_turns

log = get_logger()
T = TypeVar("T")

SETTING: Final = "confluent.authorizer.migrate.acls.from.cluster"

_AT_ONCE: Final = 500
_SAVED_AFTER: Final = 20_000
"""How many ACLs are copied before it is written down that they are."""

_SHOWN: Final = 10
_RETRY_S: Final = 1.0
_LOOKS_AGAIN_S: Final = 5.0
"""The pause before a source that has lost ACLs is judged again without a change."""

_UNCOPIED: Final = "ACL migration ended with changes that are not copied"
_PATIENCE_S: Final = 8.0
"""How long the end waits for what is not copied yet."""

Tell = Callable[[Collection[AclBinding], Collection[AclBinding]], None]
"""Is told what was created and what was deleted centrally."""


def _tell_nobody(_created: Collection[AclBinding], _deleted: Collection[AclBinding]) -> None:
    """What is done until somebody wants to know."""


class AclMigration:
    """Copies ACLs from `start` until `close`, and calls ``tell`` with each copy.

    ``own`` and ``central`` are loaded and followed. ``watched`` is the index of ``own``, and
    ``guard`` judges the ACLs that it loses.
    """

    def __init__(
        self,
        own: AclSource,
        central: AclSource,
        watched: PartIndex,
        guard: SourceGuard | None = None,
    ) -> None:
        self.tell: Tell = _tell_nobody
        self.problem = ""
        """Why copying waits for an operator; "" while it does not."""

        self._guard = guard or SourceGuard()
        self._own = own
        self._central = central
        self._watched = watched
        self._turns = Turns()
        # In the order in which they should be copied; the index says whether each is there.
        self._waiting: dict[AclBinding, None] = {}
        # Those of them that have changed since the last judgement.
        self._unjudged: set[AclBinding] = set()
        # Those that are being copied and have not changed since.
        self._at_work: set[AclBinding] = set()
        self._refused: set[AclBinding] = set()
        self._more = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._migrated: MigratedAcls | None = None
        self._source: RememberedSource | None = None
        self._fails = False
        self._is_first = True
        self._unsaved = 0
        self._counts = [0, 0]

    def start(self) -> None:
        """Begin to copy, and to watch what is changed."""
        self._watched.watch = self._changed
        self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Copy what is left, for some seconds at most, and end."""
        task, self._task = self._task, None
        if task is None:
            return
        self._closing = True
        self._more.set()
        done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
        if not done:
            log.error(_UNCOPIED, waiting=self.waiting)
            task.cancel()
            await asyncio.wait([task])

    @property
    def waiting(self) -> int:
        """How many ACLs have changed in the cluster that are not copied yet."""
        return len(self._waiting)

    def _changed(self, acl: AclBinding) -> None:
        self._waiting.pop(acl, None)
        self._waiting[acl] = None
        self._unjudged.add(acl)
        self._at_work.discard(acl)
        self._more.set()

    async def _work(self) -> None:
        while True:
            # Before anything is looked at: what changes later, while it is saved too, is copied.
            self._more.clear()
            try:
                if self._migrated is None:
                    self._migrated = await self._begin()
                await self._copy_all(self._migrated)
            except SourceLoss as loss:
                await self._stop(loss)
                if self._closing:
                    return
                await asyncio.sleep(_RETRY_S)
                await self._wait_for_more(_LOOKS_AGAIN_S)
                continue
            except Exception as error:  # noqa: BLE001 # a bug must not end what keeps both equal
                is_trouble = isinstance(error, StoreError)
                self._tell_once(log.error if is_trouble else log.exception, reason=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            if self._closing and not self._waiting:
                return
            # ACLs that could not be copied are judged again after a pause.
            await self._wait_for_more(_LOOKS_AGAIN_S if self._waiting else None)

    async def _begin(self) -> MigratedAcls:
        """Have all of the cluster's ACLs looked at, and those that were copied and are gone."""
        central = self._central.store
        cluster_id = await self._own.store.cluster_id()
        migrated = MigratedAcls(central, cluster_id)
        await migrated.load()
        self._source = RememberedSource(central, cluster_id, self._guard)
        await self._source.load(migrated.clusters)
        await self._own_settled()
        there = await self._run(lambda: _denials_first(self._own.index))
        lost = await self._run(lambda: migrated.lost(there))
        # A digest does not show whether its ACL is a DENY.
        await self._judge_source(migrated, len(there), Gone(lost, may_deny=True))
        gone = await self._run(lambda: _that_may_be_copied(self._central.index, migrated))
        await self._run(lambda: migrated.settle(there, gone))
        listed = await self._run(lambda: _in_order(there, gone))
        # Of what has changed meanwhile, some may be listed and some not.
        changed, self._waiting = self._waiting, listed
        await self._run(lambda: self._wait_for(changed))
        if unreadable := sorted(self._own.index.withheld):
            shown = [str(each) for each in unreadable[:_SHOWN]]
            count = len(unreadable)
            log.error("ACLs that cannot be read are not migrated", count=count, patterns=shown)
        return migrated

    async def _copy_all(self, migrated: MigratedAcls) -> None:
        """Copy all waiting ACLs, and record the copies. Raises `StoreError`, `SourceLoss`."""
        while await self._judge(migrated):
            while await self._copy(migrated):
                pass
        await migrated.save()
        if not self._waiting:
            self._guard.settle()
        if self._source is not None:
            await self._source.save()
        self._unsaved = 0
        self.problem = ""
        self._tell_going_on()
        if not self._waiting:
            self._tell_done()

    async def _judge(self, migrated: MigratedAcls) -> bool:
        """Judge the waiting ACLs; return whether some may be copied. Raises `SourceLoss`."""
        if not self._waiting:
            return False
        await self._own_settled()
        acls = list(self._waiting)
        self._unjudged = set()
        gone = await self._run(lambda: gone_of(self._gone(acls, migrated)))
        # The identity is read after the changes: if it is unchanged, the source made them itself.
        await self._judge_source(migrated, len(self._own.index), gone)
        return len(self._unjudged) < len(self._waiting)

    async def _judge_source(self, migrated: MigratedAcls, left: int, gone: Gone) -> None:
        identity = await identity_of(self._own.store)
        await self._run(lambda: self._guard.judge(identity, left, migrated.count, gone))

    def _gone(self, acls: Collection[AclBinding], migrated: MigratedAcls) -> list[AclBinding]:
        """Return the ACLs that the cluster has lost.

        If ACLs of a pattern cannot be read, the ACL may still exist, so its removal is not copied.
        """
        own, withheld, found = self._own.index, self._own.index.withheld, []
        for acl in in_turns(acls):
            if acl in own or not migrated.may_have(acl):
                continue
            if acl.pattern in withheld:
                self._unjudged.add(acl)
            else:
                found.append(acl)
        return found

    async def _own_settled(self) -> None:
        if self._own.follower is not None:
            await self._own.follower.settled()

    async def _wait_for_more(self, within: float | None) -> None:
        """Wait for the next change, at most ``within`` seconds; None is unlimited."""
        try:
            async with asyncio.timeout(within):
                await self._more.wait()
        except TimeoutError:
            pass

    async def _stop(self, loss: SourceLoss) -> None:
        """Log why copying has stopped and what an operator can do, and save the state."""
        problem = (
            "the ACL migration has stopped, and the centralised ACLs stay as they are: the source "
            f"{self._own.name} may have lost its data: {loss}. Bring its data back; or, if this is "
            f"meant, set {ACCEPTED_LOSS}={loss.token} and restart this broker"
        )
        if problem != self.problem:
            log.error("ACL migration has stopped", reason=problem)
        self.problem, self._fails = problem, True
        # The token is made of the lost ACLs, so they must be known after a restart.
        try:
            if self._migrated is not None:
                await self._migrated.save()
            if self._source is not None:
                await self._source.save()
        except StoreError as error:
            log.error("it is not written down that the migration has stopped", reason=str(error))

    def _wait_for(self, acls: Collection[AclBinding]) -> None:
        for acl in in_turns(acls):
            self._waiting.setdefault(acl)

    async def _copy(self, migrated: MigratedAcls) -> bool:
        """Copy some of the judged ACLs; return whether there were any.

        Raises `StoreError`; the ACLs then stay waiting.
        """
        # The only pause of the loop if there is nothing to copy.
        await asyncio.sleep(0)
        judged = (acl for acl in self._waiting if acl not in self._unjudged)
        some = list(islice(judged, _AT_ONCE))
        if not some:
            return False
        self._at_work = set(some)
        own = self._own.index
        new = [acl for acl in some if acl in own and migrated.is_due(acl, is_there=True)]
        gone = [acl for acl in some if acl not in own and migrated.is_due(acl, is_there=False)]
        created = self._without_refused(new)
        if created or gone:
            await migrated.begin([*created, *gone])
            # What has changed meanwhile waits again.
            created = [acl for acl in created if acl in self._at_work]
            gone = [acl for acl in gone if acl in self._at_work]
            await self._central.store.apply(created, gone, Origin.now())
            migrated.note(created, gone)
            self._guard.took(gone)
            self.tell(created, gone)
        for acl in self._at_work:
            del self._waiting[acl]
        await self._count(migrated, len(created), len(gone))
        return True

    async def _count(self, migrated: MigratedAcls, created: int, deleted: int) -> None:
        """Count what was copied, and write now and then down that it was."""
        self._counts[0] += created
        self._counts[1] += deleted
        self._unsaved += created + deleted
        if self._unsaved >= max(_SAVED_AFTER, len(self._waiting)):
            await migrated.save()
            self._unsaved = 0

    def _without_refused(self, acls: Sequence[AclBinding]) -> list[AclBinding]:
        """Leave out what the centralised store cannot keep, which is told once each."""
        store = self._central.store
        if not isinstance(store, LimitedStore):
            return list(acls)
        kept = []
        for acl in acls:
            reason = store.refusal(acl)
            if reason is None:
                kept.append(acl)
            elif acl not in self._refused:
                self._refused.add(acl)
                log.error("ACL cannot be migrated", acl=str(acl), reason=reason)
        return kept

    def _tell_going_on(self) -> None:
        if self._fails:
            log.warning("ACL migration goes on")
        self._fails = False

    def _tell_done(self) -> None:
        if self._is_first or any(self._counts):
            created, deleted = self._counts
            log.info(
                "ACLs migrated to the centralised store",
                created=created,
                deleted=deleted,
                acls=len(self._own.index),
                refused=len(self._refused),
            )
        if self._is_first and self._guard.is_unused:
            log.warning(f"{ACCEPTED_LOSS} names no loss that waits to be confirmed; remove it")
        self._is_first = False
        self._counts = [0, 0]

    def _tell_once(self, write: Callable[..., Any], **values: str) -> None:
        if not self._fails:
            write("ACLs cannot be migrated now; trying again", **values)
        self._fails = True

    async def _run(self, function: Callable[[], T]) -> T:
        result: T | Awaitable[T] = self._turns.run("", function)
        return await result if isinstance(result, Awaitable) else result


def _denials_first(acls: Iterable[AclBinding]) -> list[AclBinding]:
    """Return ACLs such that nothing is allowed by some of them that not all of them allow."""
    found = list(acls)
    denials = [acl for acl in in_turns(found) if acl.permission is AclPermission.DENY]
    return denials + [acl for acl in in_turns(found) if acl.permission is not AclPermission.DENY]


def _that_may_be_copied(central: Iterable[AclBinding], migrated: MigratedAcls) -> list[AclBinding]:
    """Return the centralised ACLs that the cluster has had, denials first."""
    return [acl for acl in in_turns(_denials_first(central)) if migrated.may_have(acl)]


def _in_order(there: Collection[AclBinding], gone: Sequence[AclBinding]) -> dict[AclBinding, None]:
    """Return all ACLs in the order in which they are copied: denials go last."""
    found = dict.fromkeys(in_turns(there))
    for acl in in_turns(gone[::-1]):
        found[acl] = None
    return found
