"""The client's side of PLAIN (RFC 4616)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclbroker.broker.client.sasl.mechanism import MakeClient, option

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings


def from_settings(settings: ClientSettings) -> MakeClient:
    """Return what makes clients of the user that the JAAS text names."""
    options = settings.jaas.options if settings.jaas else {}
    user, password = option(options, "username"), option(options, "password")
    return lambda host: PlainClient(user, password)


class PlainClient:
    """One exchange: a message with the password, which the broker answers with nothing."""

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """Return the name and the password."""
        return self._message

    def answer(self, challenge: bytes) -> None:
        """Return None: there is nothing to answer."""
