"""The interface of stores, and the error that says why one could not do its work."""

from __future__ import annotations

import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence, Set
from typing import ClassVar, Final, NamedTuple, Protocol, runtime_checkable

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import AclBinding, ResourcePattern


class StoreError(Exception):
    """The store could not do what was asked; the text says what failed and what to do about it.

    Nothing that was stored before is lost. Unless the text says otherwise the same call may be made
    again, and works once the cause is gone.
    """

    client_text: ClassVar[str] = ""
    """The reason in words for the client of a change; "" if only the log may have it."""


class StoreUnavailable(StoreError):
    """A store that others share cannot be reached now; the same call works when it can be again."""


class StoreConflict(StoreError):
    """Others have changed the same at this moment; what was asked for may not hold any more."""


class StoreFull(StoreError):
    """The disk of the store has no room for a change."""

    client_text = (
        "The disk of the ACL store is full, so nothing was changed. Free space on it, and try "
        "again."
    )


class StoreFenced(StoreError):
    """Another writer has taken the place of this one."""

    client_text = (
        "Another broker writes to the ACL store with this broker's node.id, so nothing was "
        "changed. Give each broker a node.id of its own."
    )


class StoreReadOnly(StoreError):
    """This broker may read the store, and not write to it."""

    client_text = (
        "This broker may only read its ACL store, so nothing was changed. Make the change at a "
        "broker that may write to it."
    )


class StoreMissing(StoreError):
    """There is no store at that place, and none was to be made."""


class Origin(NamedTuple):
    """Who asked for a change, when and from where."""

    principal: str | None
    """As in ACLs, "User:alice"; None is the broker itself."""

    host: str
    """The address of who asked, "" for the broker itself."""

    time_ms: int
    """When it was asked for, in milliseconds since the epoch."""

    @classmethod
    def now(cls, principal: str | None = None, host: str = "") -> Origin:
        """Return who asks at this moment; by default it is the broker itself."""
        return cls(principal, host, time.time_ns() // 1_000_000)

    @classmethod
    def of(cls, session: Session) -> Origin:
        """Return that a session asks at this moment: the first of its principals is who it is."""
        return cls.now(session.principals[0], session.host)


class StoreChange(NamedTuple):
    """What one transaction changed."""

    position: int
    """The place of the change in the order of all changes of the store; it grows, with gaps."""

    added: Sequence[AclBinding]
    removed: Sequence[AclBinding]
    records: Mapping[tuple[str, str], str | None]
    """The new values of records by kind and name; None where one was removed."""

    origin: Origin | None
    """None where it is not known."""


class StoreReset(NamedTuple):
    """All that is there, in place of changes that cannot be told one by one any more."""

    position: int
    bindings: list[AclBinding]
    """Of whoever is given this, who may empty it."""

    records: Mapping[tuple[str, str], str]
    """The values of all records by kind and name."""

    unreadable: Collection[ResourcePattern] = ()
    """Of a `LimitedStore`: what its ``unreadable`` is now."""


class StoreStatus(NamedTuple):
    """What an open store says of itself."""

    place: str
    """Where it is: an absolute path, or another name."""

    is_durable: bool
    """Whether what it keeps outlives the process."""

    is_new: bool
    """Whether it was made when it was opened, and has nothing of former times."""

    records: int


class AclStore(Protocol):
    """A durable set of valid ACL bindings, and durable records. All may raise `StoreError`.

    A record is a text that has a kind and, within it, a name; the store does not know what it
    means. All changes have one order, and a position in it: `load` and `load_records` return at
    least what was changed up to `position`, and `follow` what was changed after one.
    """

    is_shared: bool
    """Whether others may change the store, too.

    If not, bindings are loaded and changed by one task, records of a kind by one task, and each
    knows what there is. If so, that is known by what `follow` brings, one's own changes included.
    """

    async def open(self) -> None:
        """Make the store ready, a new one if there is none."""

    async def status(self) -> StoreStatus:
        """Return where the open store is, and what it has."""

    async def cluster_id(self) -> str:
        """Return the id made with the store: 22 characters of URL-safe base64, as Kafka's."""

    def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings, in lists of a few thousand; some may come more than once."""

    async def position(self) -> int:
        """Return the position of the last change that is durable; 0 if there never was one.

        What was loaded later may have more, but nothing of up to there is missing in it. So who
        asks before `load` and follows from the answer misses nothing, and is told some changes
        that were loaded already, in their order.
        """

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings, all or none; durable when it returns. No binding is in both.

        Adding what is there and removing what is not changes nothing. Returns the position since
        which the change holds, which `follow` reaches. After a `StoreError` nothing is changed,
        unless the disk failed at the very end of the transaction, when the change may show after a
        crash, or the connection to a shared store did, when `follow` tells it.
        """

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return all changes after a position in their order, and then each as it comes.

        Positions grow from one to the next. What changes nothing may be left out. The iterator
        ends when the store is closed. One that loses its connection waits for another, and
        returns what was changed meanwhile.
        """

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Give records of a kind their values and remove others, all or none, as `apply` does.

        No name is in both. Returns the position as `apply` does.
        """

    async def close(self) -> None:
        """Release the store; do nothing if it is not open."""


@runtime_checkable
class LimitedStore(Protocol):
    """What a store has besides that cannot keep every ACL, or may have some that it cannot read."""

    def refusal(self, binding: AclBinding) -> str | None:
        """Tell why an ACL cannot be kept; None if it can. The text may be shown to clients."""

    def unreadable(self) -> Collection[ResourcePattern]:
        """Return the patterns that have ACLs which cannot be read, so that they may deny anything.

        A change of these is followed as a `StoreReset`.
        """


@runtime_checkable
class DistantStore(Protocol):
    """What a store has besides that is elsewhere, and may be out of reach while it is open."""

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of it, so that others may have changed it."""

    def unread(self, position: int) -> int | None:
        """Return how many messages it has after a position that `follow` has told, as far as known.

        None where that cannot be known. It may be called in any thread.
        """


@runtime_checkable
class ForgetfulStore(Protocol):
    """A store that drops removals after a time, so that a late reader misses them."""

    @property
    def is_outdated(self) -> bool:
        """Whether removals may have been dropped unread; the store is then being read anew."""


@runtime_checkable
class ClaimingStore(Protocol):
    """What a store has besides that several may begin to use at once."""

    async def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Give records of a kind these values where they have none; return what all have then.

        Whoever asks is told the same values, at the same time or later. Raises `StoreError`.
        """


async def claim(
    store: AclStore, kind: str, wanted: Mapping[str, str], origin: Origin
) -> dict[str, str]:
    """Return the values of some records, which get those that are ``wanted`` if they have none.

    Others that share the store and ask for the same records are told the same. Raises `StoreError`.
    """
    there = await store.load_records(kind)
    found = {name: there[name] for name in wanted if name in there}
    missing = {name: value for name, value in wanted.items() if name not in found}
    if missing and isinstance(store, ClaimingStore):
        return found | dict(await store.claim(kind, missing, origin))
    if missing:
        await store.apply_records(kind, missing, (), origin)
    return found | missing


class Missed(NamedTuple):
    """What others have added and removed since a position."""

    added: Set[AclBinding]
    removed: Set[AclBinding]


NOTHING_MISSED: Final = Missed(frozenset(), frozenset())

Plan = Callable[[Missed], tuple[Collection[AclBinding], Collection[AclBinding]]]
"""Returns what to add and what to remove, in view of what was missed. It may be called more than
once, also in another thread; what it returns last is done."""


@runtime_checkable
class SerialStore(Protocol):
    """What a shared store has besides that can keep others from changing it for a moment."""

    @property
    def told(self) -> int:
        """Up to which position all is on its way to those who follow."""

    async def transact(self, position: int, plan: Plan, origin: Origin) -> int:
        """Make what a plan says of what others have changed since a position, which is nearly
        always nothing; meanwhile nobody else changes anything.

        Returns the position since which the change holds, as `AclStore.apply` does.
        """

    async def apply_records_since(
        self,
        position: int,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
    ) -> int:
        """Change records as `AclStore.apply_records` does, if nobody else has since a position.

        Raises `StoreConflict` if one of them was changed.
        """


def new_cluster_id() -> str:
    """Return a random cluster id in the form of Kafka's: never with a leading hyphen."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
