"""The ACLs of a Kafka as a store: ``kafka+acls://HOST:PORT``, by its requests about ACLs.

Kafka tells nobody what was changed, so it is asked again and again for all that there is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeVar

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.broker.client.acls import (
    MOST_FILTERS,
    delete_acls,
    describe_acls,
    exactly,
    refusals,
)
from aclbroker.broker.client.cluster_info import cluster_id, metadata_marks
from aclbroker.broker.client.errors import ClientError, RequestRefused, Unreachable, code_name
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import Address, ClientSettings
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.identity import CLUSTER_ID, SourceIdentity
from aclbroker.broker.stores.recent_changes import RecentChanges
from aclbroker.broker.stores.store import (
    Origin,
    StoreChange,
    StoreError,
    StoreReset,
    StoreStatus,
    StoreUnavailable,
)
from aclbroker.protocol.errors import ErrorCode

log = get_logger()
T = TypeVar("T")

_CHUNK: Final = 5_000
_AT_ONCE: Final = 1_000
_PATIENCE_S: Final = 15.0
"""How long a change of one's own is looked for: a broker has it from its controller."""

_SOON_S: Final = 0.02
_LATE_S: Final = 1.0
"""How late a look may begin because the process is busy."""

_SHARE: Final = 4
"""How much longer than a look took the pause after it is at least."""

_PASSING: Final = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
)
"""What a broker answers that cannot reach its controller now."""


class _Look(NamedTuple):
    """What is there, and in what that differs from before."""

    acls: frozenset[AclBinding]
    added: Sequence[AclBinding]
    removed: Sequence[AclBinding]


class ClusterStore:
    """Reads the ACLs of a cluster by DescribeAcls, and changes them by its other requests.

    It has no records. A position is the time of the look at which a change was seen, in
    milliseconds since the epoch. A change of many ACLs is made by several requests: denials are
    created first and deleted last.
    """

    is_shared = True

    def __init__(
        self, url: str, addresses: Sequence[Address], settings: ClientSettings, interval_s: float
    ) -> None:
        self._url = url
        self._addresses = addresses
        self._settings = settings
        self._interval_s = interval_s
        self._recent = RecentChanges()
        self._acls: frozenset[AclBinding] = frozenset()
        self._session: Session | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._lock = asyncio.Lock()
        self._heard = 0.0
        # The latest time at which the next look begins, unless the process was stopped.
        self._due = 0.0
        self._fails = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Read all ACLs. Raises `StoreUnavailable` if there is no answer, else `StoreError`."""
        if self._thread is not None:
            return
        self._thread = ThreadPoolExecutor(1, "kafka-acls")
        try:
            look = await self._in_thread(self._look)
        except BaseException:
            await self.close()
            raise
        self._acls = look.acls
        self._heard = asyncio.get_running_loop().time()
        self._due = self._heard + _LATE_S
        self._recent.restart(time.time_ns() // 1_000_000)
        self._task = asyncio.create_task(self._keep_looking())

    async def status(self) -> StoreStatus:
        """Return the URL."""
        return StoreStatus(self._url, is_durable=True, is_new=False, records=0)

    async def cluster_id(self) -> str:
        """Return the id of the cluster."""
        found = await self._in_thread(lambda: self._ask(cluster_id))
        if not found:
            raise StoreError(f"{self._url}: the cluster does not tell its id")
        return found

    async def identity(self) -> SourceIdentity:
        """Return the current id of the cluster and the marks of its metadata."""
        return await self._in_thread(lambda: self._ask(identity_of_session))

    @property
    def silent_s(self) -> float:
        """For how many seconds the cluster has not told its ACLs."""
        now = asyncio.get_running_loop().time()
        is_looking = self._fails or self._lock.locked()
        return now - self._heard if is_looking or now > self._due else 0.0

    def unread(self, position: int) -> int | None:
        """Return None: Kafka does not tell how much was changed."""
        return None

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return what was there at the last look."""
        acls = list(self._acls)
        for begin in range(0, len(acls), _CHUNK):
            yield acls[begin : begin + _CHUNK]

    async def position(self) -> int:
        """Look, and return the position of the last change."""
        await self._take_look()
        return self._recent.position

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Create ACLs and delete others; return when they can be seen.

        What the cluster refuses to create is a `StoreError`, and nothing of that request stays.
        """
        if not added and not removed:
            return self._recent.position
        await self._in_thread(lambda: self._change(added, removed))
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        while asyncio.get_running_loop().time() < until:
            await self._take_look(origin)
            if self._acls.issuperset(added) and self._acls.isdisjoint(removed):
                return self._recent.position
            await asyncio.sleep(_SOON_S)
        raise StoreUnavailable(f"{self._url}: a change cannot be seen there yet")

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return what looks find."""
        return self._recent.follow(position, self._everything)

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return nothing: there are no records."""
        return {}

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Look whether the cluster is there. Raises `StoreError`, also where a record is put."""
        if put:
            raise StoreError(f"{self._url}: the ACLs of a Kafka have no place for records")
        return await self.position()

    async def close(self) -> None:
        """Look no more, and close the connection."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._recent.end()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._disconnect)
            thread.shutdown(wait=False)

    async def _everything(self) -> StoreReset:
        return StoreReset(self._recent.position, list(self._acls), {})

    async def _keep_looking(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._take_look()
            except Exception as error:  # noqa: BLE001 # a bug must not end what tells changes
                write = log.error if isinstance(error, StoreError) else log.exception
                if not self._fails:
                    write("ACLs of the cluster cannot be read", store=self._url, reason=str(error))
                self._fails = True
            pause_s = max(self._interval_s, _SHARE * (loop.time() - began))
            self._due = loop.time() + pause_s + _LATE_S
            await asyncio.sleep(pause_s)

    async def _take_look(self, origin: Origin | None = None) -> None:
        """Look, and tell who follows of what has changed. Raises `StoreError`."""
        async with self._lock:
            look = await self._in_thread(self._look)
            self._heard = asyncio.get_running_loop().time()
            if self._fails:
                log.warning("ACLs of the cluster can be read again", store=self._url)
            self._fails = False
            if look.added or look.removed:
                self._acls = look.acls
                position = max(self._recent.position + 1, time.time_ns() // 1_000_000)
                self._recent.add(position, look.added, look.removed, {}, origin)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        if self._thread is None:
            raise StoreUnavailable(f"{self._url}: the store is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    # From here on in the thread.

    def _look(self) -> _Look:
        before = self._acls
        now = frozenset(self._ask(describe_acls))
        # No operation of whole sets, during which no other thread would run.
        added = [acl for acl in now if acl not in before]
        return _Look(now, added, [acl for acl in before if acl not in now])

    def _change(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        before = self._acls
        for some in _parts(_by_permission(added, AclPermission.DENY), _AT_ONCE):
            answers = self._ask(partial(refusals, acls=some))
            refused = next((each for each in answers if each is not None), None)
            if refused is not None:
                pairs = zip(some, answers, strict=True)
                made = [acl for acl, error in pairs if error is None and acl not in before]
                self._delete(made)
                raise StoreError(f"{self._url}: {code_name(refused.code)}: {refused}")
        self._delete(_by_permission(removed, AclPermission.ALLOW))

    def _delete(self, acls: Sequence[AclBinding]) -> None:
        for some in _parts(acls, MOST_FILTERS):
            filters = [exactly(acl) for acl in some]
            self._ask(partial(delete_acls, filters=filters))

    def _ask(self, question: Callable[[Session], T]) -> T:
        """Ask a question; again if a connection that was used before is not there any more."""
        try:
            if self._session is not None:
                with suppress(Unreachable):
                    return question(self._session)
                self._disconnect()
            self._session = open_session(self._addresses, self._settings)
            return question(self._session)
        except RequestRefused as error:
            kind = StoreUnavailable if error.code in _PASSING else StoreError
            raise kind(f"{self._url}: {code_name(error.code)}: {error}") from error
        except ClientError as error:
            self._disconnect()
            raise StoreUnavailable(f"{self._url}: {error}") from error

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def identity_of_session(session: Session) -> SourceIdentity:
    """Return the identity of the cluster to which a session is connected. Raises `ClientError`."""
    found = cluster_id(session)
    return SourceIdentity({CLUSTER_ID: found} if found else {}, metadata_marks(session))


def _by_permission(acls: Collection[AclBinding], first: AclPermission) -> list[AclBinding]:
    return sorted(acls, key=lambda acl: acl.permission is not first)


def _parts(acls: Sequence[AclBinding], size: int) -> list[Sequence[AclBinding]]:
    return [acls[begin : begin + size] for begin in range(0, len(acls), size)]
