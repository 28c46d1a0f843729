"""The interface of stores, and the error that says why one could not do its work."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Collection, Mapping
from typing import NamedTuple, Protocol

from aclbroker.broker.acl.bindings import AclBinding


class StoreError(Exception):
    """The store could not do what was asked; the text says what failed and what to do about it.

    Nothing that was stored before is lost. Unless the text says otherwise the same call may be made
    again, and works once the cause is gone.
    """


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

    Bindings are loaded and changed by one task, records of a kind by one task. A record is a text
    that has a kind and, within it, a name; the store does not know what it means.
    """

    async def open(self) -> None:
        """Make the store ready, a new one if there is none, and keep others out until `close`."""

    async def status(self) -> StoreStatus:
        """Return where the open store is, and what it has."""

    async def cluster_id(self) -> str:
        """Return the id made with the store: 22 characters of URL-safe base64, as Kafka's."""

    def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings, in lists of a few thousand; some may come more than once."""

    async def apply(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        """Add and remove bindings, all or none; durable when it returns. No binding is in both.

        Adding what is there and removing what is not changes nothing. After a `StoreError` nothing
        is changed, unless the disk failed at the very end of the transaction, when the change may
        show after a crash.
        """

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str]
    ) -> None:
        """Give records of a kind their values and remove others, all or none, as `apply` does.

        No name is in both.
        """

    async def close(self) -> None:
        """Release the store; do nothing if it is not open."""


def new_cluster_id() -> str:
    """Return a random cluster id in the form of Kafka's: never with a leading hyphen."""
    while True:
        text = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
