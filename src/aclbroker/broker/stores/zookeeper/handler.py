"""kazoo's threads, with connections by TLS as Kafka's settings want them."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler


class Handler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """Connects with a TLS context, if there is one, within ``timeout`` seconds.

    kazoo's own reads PEM files only, and does not check the name of the host by default.
    """

    def __init__(self, context: ssl.SSLContext | None, timeout: float) -> None:
        super().__init__()
        self._context = context
        self._timeout = timeout

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, **_others: Any
    ) -> socket.socket:
        """Return a connection; raises OSError, of which `ssl.SSLError` is one."""
        connected = socket.create_connection(address, self._timeout)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                connected = self._context.wrap_socket(connected, server_hostname=hostname)
            connected.settimeout(None)
        except BaseException:
            connected.close()
            raise
        return connected

    def select(
        self,
        read: Sequence[Any],
        write: Sequence[Any],
        _other: Sequence[Any],
        timeout: float | None = None,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return which sockets are ready, also if that is in the memory of TLS.

        kazoo's own makes an epoll object each time, which takes most of the time of a request.
        """
        pending = [each for each in read if isinstance(each, ssl.SSLSocket) and each.pending() > 0]
        if pending:
            return pending, [], []
        poll = select.poll()
        for each in read:
            poll.register(each, select.POLLIN)
        for each in write:
            poll.register(each, select.POLLOUT)
        ready = {number for number, _ in poll.poll(None if timeout is None else timeout * 1000)}
        return _among(read, ready), _among(write, ready), []


def _among(sockets: Sequence[Any], ready: set[int]) -> list[Any]:
    return [each for each in sockets if each.fileno() in ready]
