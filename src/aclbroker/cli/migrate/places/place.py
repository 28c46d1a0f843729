"""What a place of ACLs is to those who move them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple, Self

from aclbroker.acl.bindings import AclBinding, invalid_reason
from aclbroker.broker.stores.identity import SourceIdentity


class PlaceError(Exception):
    """A place cannot be read or changed; the text names it and says why, without any secret."""


class Contents(NamedTuple):
    """The ACLs of a place, each once, and what is to be said of how they were read."""

    acls: list[AclBinding]
    notes: tuple[str, ...] = ()


class Place(ABC):
    """A place of ACLs, named by a URL. All methods may raise `PlaceError`.

    A place that can only be read leaves `write` as it is.
    """

    at_once: int | None = 1000
    """How many ACLs `write` takes at a time; None if it takes all, and makes them one change."""

    removed_at_once: int | None = None
    """How many it takes at a time of those to remove; None if that is as many."""

    settles_within: float = 0.0
    """For how many seconds `read` may return what was there before a `write`."""

    is_edited: bool = False
    """Whether it may be seen half written, so that what changed counts once it stays as it is."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return all ACLs. With ``may_be_new`` a place that is not there has none."""

    def stamp(self) -> Hashable | None:
        """Return what differs whenever the ACLs do; None where only `read` tells."""
        return None

    def identity(self) -> SourceIdentity:
        """Return the identity, which differs for another place at the same URL, or an older state.

        By default it is empty.
        """
        return SourceIdentity()

    def refusal(self, acl: AclBinding) -> str | None:
        """Tell why the place cannot hold an ACL; None if it can, as far as that is known before."""
        return invalid_reason(acl)

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Add and remove ACLs; those that are there already, or gone, are no mistake.

        Returns those that the place refused, each with why; all others are as told, durably. After
        a `PlaceError` some of them may be.
        """
        raise PlaceError(f"{self.url}: it can only be read")

    def close(self) -> None:  # noqa: B027 - most places hold nothing
        """Let go of the place."""
