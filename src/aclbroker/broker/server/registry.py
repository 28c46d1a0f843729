"""What a listener and its connections know of each other."""

from __future__ import annotations

from typing import Protocol


class OpenConnection(Protocol):
    """An open connection: the peer's address as ACLs name it, and how to end it."""

    host: str

    def stop(self) -> None:
        """Answer the request at work, if there is one, and close."""

    def abort(self) -> None:
        """Close at once."""

    def give_way(self, why: str) -> None:
        """Close: there are too many, and of those not authenticated this is the oldest."""

    def regroup(self) -> bool:
        """Give the session its principals' groups of now; tell whether they are others."""


class Registry(Protocol):
    """Keeps the connections of a listener."""

    def opened(self, connection: OpenConnection) -> None:
        """Add a connection that was accepted."""

    def authenticated(self, connection: OpenConnection) -> None:
        """Note that the client of a connection has authenticated."""

    def closed(self, connection: OpenConnection) -> None:
        """Remove a connection; another may have its place."""
