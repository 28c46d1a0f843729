"""Whether the broker can do its work now, and if not, why: the page /readyz."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

from aclbroker.broker.observability.http_listener import Page
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError, StoreUnavailable
from aclbroker.broker.stores.store import DistantStore

log = get_logger()

PROBE_SECONDS: Final = 10.0
"""The least time between two attempts to write to the store."""

_ANSWER_SECONDS: Final = 5.0
_KIND: Final = "readiness"
_BEHIND: Final = "the ACLs that decide are not up to date with their store yet"

Reached = Callable[[AclStore, int], Awaitable[bool]]
"""Waits some seconds until the ACLs that decide have a store's changes up to a position; returns
whether they have."""


async def _always(_store: AclStore, _position: int) -> bool:
    return True


class StoreProbe:
    """Checks whether the store can be written, by a change without effect.

    It removes a record that never exists; a store on disk commits that like any change. The ACLs
    that decide must also have ``reached`` the change, so they are up to date.
    """

    def __init__(self, store: AclStore, reached: Reached) -> None:
        self._store = store
        self._reached = reached
        self._problem = ""
        self._next = 0.0
        self._attempt: asyncio.Task[None] | None = None

    async def problem(self) -> str:
        """Return why the store cannot be written; "" if it can be, or could be a moment ago."""
        now = asyncio.get_running_loop().time()
        if now >= self._next and (self._attempt is None or self._attempt.done()):
            self._next = now + PROBE_SECONDS
            self._attempt = asyncio.create_task(self._write())
        if self._attempt is not None:
            await asyncio.wait([self._attempt], timeout=_ANSWER_SECONDS)
            if not self._attempt.done():
                return f"the store has not answered for {_ANSWER_SECONDS:g} seconds or more"
        # The last attempt says nothing of a process that was stopped since.
        silent_s = self._store.silent_s if isinstance(self._store, DistantStore) else 0.0
        if not self._problem and silent_s > PROBE_SECONDS:
            return f"nothing has been heard of the store for {silent_s:.0f} seconds"
        return self._problem

    async def _write(self) -> None:
        before = self._problem
        try:
            position = await self._store.apply_records(_KIND, {}, ("probe",), Origin.now())
            if not await self._reached(self._store, position):
                raise StoreUnavailable(_BEHIND)
        except StoreError as error:
            self._problem = str(error)
            if not before:
                log.error("store cannot be written", reason=self._problem)
        else:
            self._problem = ""
            if before:
                log.warning("store can be written again")


class Readiness:
    """What is asked whether the broker is ready; until ``started`` and from ``stopping`` it is not.

    A problem is a text, "" where there is none.
    """

    def __init__(self) -> None:
        self._waits_for = "the ACLs are not loaded yet"
        self._probes: dict[AclStore, StoreProbe] = {}
        self._stores: Callable[[], Iterable[AclStore]] = tuple
        self._clusters: Callable[[], Mapping[str, str]] = dict
        self._audit: Callable[[], str] = str
        self._migration: Callable[[], str] = str
        self._reached: Reached = _always
        self._remark: Callable[[], str] = str
        self._upstream: Callable[[], str] = str

    def waits_for(self, reason: str) -> None:
        """Note why the ACLs are not loaded yet."""
        self._waits_for = f"the ACLs are not loaded yet: {reason}"

    def started(
        self,
        audit: Callable[[], str] = str,
        remark: Callable[[], str] = str,
        stores: Callable[[], Iterable[AclStore]] = tuple,
        clusters: Callable[[], Mapping[str, str]] = dict,
        migration: Callable[[], str] = str,
        reached: Reached = _always,
        upstream: Callable[[], str] = str,
    ) -> None:
        """Note that the ACLs are loaded and the listeners open.

        ``audit`` returns why records of decisions are not written, and ``remark`` a note for the
        operator of a ready broker. ``stores`` returns the open stores, and ``clusters`` why further
        clusters are not served, by their ids. ``migration`` returns why the cluster's own ACLs are
        no longer copied to the centralised ones. ``reached`` waits for changes of other brokers.
        ``upstream`` returns why the cluster upstream is out of reach.
        """
        self._waits_for = ""
        self._stores = stores
        self._clusters = clusters
        self._audit = audit
        self._migration = migration
        self._reached = reached
        self._remark = remark
        self._upstream = upstream

    def stopping(self) -> None:
        """Note that the broker is about to end."""
        self._waits_for = "the broker is stopping"

    async def problems(self) -> Sequence[str]:
        """Return why the broker is not ready; nothing if it is."""
        if self._waits_for:
            return [self._waits_for]
        probes = [
            self._probes.setdefault(each, StoreProbe(each, self._reached))
            for each in self._stores()
        ]
        stored = await asyncio.gather(*(each.problem() for each in probes))
        own = (self._audit(), self._migration(), self._upstream())
        found = (*stored, *self._clusters().values(), *own)
        return [problem for problem in found if problem]

    async def page(self) -> Page:
        """Return the page /readyz: 200, with a remark if there is one; or 503, a problem a line."""
        problems = await self.problems()
        if problems:
            return Page(_lines(problems), HTTPStatus.SERVICE_UNAVAILABLE)
        remark = self._remark()
        return Page(_lines(["ready", remark] if remark else ["ready"]))


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


async def alive() -> Page:
    """Return the page /healthz, which is there as long as the event loop turns."""
    return Page("alive\n")
