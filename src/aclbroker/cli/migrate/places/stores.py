"""The stores of this broker as places: ``sqlite:///PATH``, ``zookeeper://`` and ``kafka://``.

It is the one module of the command that uses the interface of stores.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
from collections.abc import Collection, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.settings import read_given
from aclbroker.broker.observability.logs import log_of_its_own
from aclbroker.broker.stores import (
    AclStore,
    Origin,
    StoreError,
    StoreMissing,
    open_store,
    path_of,
)
from aclbroker.broker.stores.identity import CLUSTER_ID, SourceIdentity, identity_of
from aclbroker.broker.stores.kafka.connection import SETTING
from aclbroker.broker.stores.reading import read_acls, read_identity
from aclbroker.broker.stores.store import LimitedStore
from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError
from aclbroker.cli.migrate.places.stamps import stamp_of

T = TypeVar("T")

_NONE: Final[Mapping[str, str]] = {}
_WHO: Final = "Command:migrate"
"""The author of changes: this command, not a user of the broker."""


class StorePlace(Place):
    """A store, which is opened at the first use."""

    at_once = 5000

    opened_within_s = 30.0

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._properties: Mapping[str, str] = {}
        self._store: AclStore | None = None
        self._makes = True
        self._loop: _Loop | None = None

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return all that is loaded from the store."""
        with self._told():
            return Contents(list(dict.fromkeys(self._run(_load(self._opened())))))

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Add and remove ACLs in one transaction; a store that is not there is made."""
        with self._told():
            self._run(self._opened().apply(added, removed, Origin.now(_WHO)))
        return {}

    def identity(self) -> SourceIdentity:
        """Return the identity of the store."""
        with self._told():
            return self._run(identity_of(self._opened()))

    def close(self) -> None:
        """Let go of the store, if it was opened."""
        try:
            if self._store is not None:
                store, self._store = self._store, None
                with self._told():
                    self._run(store.close())
        finally:
            if self._loop is not None:
                self._loop.end()
                self._loop = None

    def _opened(self) -> AclStore:
        if self._store is None:
            store = open_store(self.url, self._properties, makes=self._makes)
            try:
                self._run(asyncio.wait_for(store.open(), self.opened_within_s))
            except TimeoutError:
                self._run(store.close())
                raise StoreError(f"it did not answer within {self.opened_within_s:g} s") from None
            self._store = store
        return self._store

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = _Loop()
        return self._loop.run(call)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise PlaceError(f"{self.url}: {error}") from error


class SharedStorePlace(StorePlace):
    """A store that brokers use meanwhile: in ZooKeeper, or in a topic.

    One that is not there is made by the first `write`, and by nothing else. The settings are those
    of the broker's ``zookeeper.*``, or a Kafka client's.
    """

    def __init__(
        self, url: str, config: str | None = None, properties: Mapping[str, str] = _NONE
    ) -> None:
        super().__init__(url)
        if "@" in url:
            raise PlaceError("no login stands in the URL of a store, but in --command-config FILE")
        self._makes = False
        # Of a store that is not there: it can tell what it could keep.
        self._limits: AclStore | None = None
        # No broker of the fleet has it, so that none is fenced off.
        self._properties = {"node.id": f"migrate-{secrets.token_hex(8)}", **properties}
        if config is not None and url.startswith("kafka://"):
            self._properties |= {SETTING: config}
        elif config is not None:
            self._properties |= _properties(config)

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return all ACLs; what cannot be read, and may deny anything, is an error."""
        with self._told():
            try:
                store = self._opened()
            except StoreMissing:
                if may_be_new:
                    return Contents([])
                raise
            if self._run(store.status()).is_new and not may_be_new:
                raise StoreError("the store is empty")
            hidden = store.unreadable() if isinstance(store, LimitedStore) else ()
        if hidden and not may_be_new:
            names = ", ".join(f"{kind.name} {name}" for kind, _, name in sorted(hidden))
            raise PlaceError(f"{self.url}: ACLs that cannot be read may deny anything: {names}")
        notes = [f"its ACLs of {kind.name} {name} cannot be read" for kind, _, name in hidden]
        return Contents(super().read().acls, tuple(notes))

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Add and remove ACLs in one transaction; a store that is not there is made."""
        if self._store is None:
            self._makes = True
        return super().write(added, removed)

    def stamp(self) -> Hashable | None:
        """Return the position of the last change."""
        with self._told():
            return self._run(self._opened().position())

    def refusal(self, acl: AclBinding) -> str | None:
        """Tell why the store cannot keep an ACL."""
        if self._store is None and self._limits is None:
            with self._told():
                try:
                    self._opened()
                except StoreMissing:
                    self._limits = open_store(self.url, self._properties)
        store = self._store or self._limits
        own = store.refusal(acl) if isinstance(store, LimitedStore) else None
        return super().refusal(acl) or own


class SqlitePlace(StorePlace):
    """A store in a file: read also while a broker uses it, opened to be changed when none does."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        path = path_of(url)
        if path is None:
            raise PlaceError(f"{url}: it names no file")
        self._path = Path(path).resolve()

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return the ACLs as the last transaction left them."""
        if self._store is not None:
            return super().read()
        if may_be_new and not self._path.exists():
            return Contents([])
        with self._told():
            return Contents(read_acls(self._path)[0])

    def identity(self) -> SourceIdentity:
        """Return the id of the cluster, and the position of the last change."""
        if self._store is not None:
            return super().identity()
        with self._told():
            cluster_id, position = read_identity(self._path)
        return SourceIdentity({CLUSTER_ID: cluster_id}, {"position": (position,)})

    def stamp(self) -> Hashable | None:
        """Return sizes and times of the file and of SQLite's log beside it."""
        return stamp_of(self._path, Path(f"{self._path}-wal"))


class _Loop:
    """An event loop in a thread of its own: a store may have work to do between two calls."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        # Logs go to standard error: standard output has the answer. All tasks have this context.
        self._context = copy_context()
        self._context.run(log_of_its_own, sys.stderr, "warning", "console")

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run something to its end, and return what it returns."""
        return self._context.run(asyncio.run_coroutine_threadsafe, call, self._loop).result()

    def end(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _properties(config: str) -> dict[str, str]:
    try:
        return {name: each.value for name, each in read_given(config)[0].items()}
    except ClientConfigError as error:
        raise PlaceError("\n".join(error.problems)) from error


async def _load(store: AclStore) -> list[AclBinding]:
    return [acl async for chunk in store.load() for acl in chunk]
