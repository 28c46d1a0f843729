"""A proxy before the cluster upstream, which may change what the brokers answer."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket

from tests.support.broker import Broker
from tests.support.proxy import Proxy

LENGTH = struct.Struct(">i")

Meddle = Callable[[bytes], bytes]
"""Takes an answer without its length; returns the bytes to send to the gateway in its place."""


class Last(bytes):
    """Bytes after which the connection ends."""


def framed(answer: bytes) -> bytes:
    """Return an answer with its length."""
    return LENGTH.pack(len(answer)) + answer


class MeddlingProxy(Proxy):
    """Passes answers through ``meddle``."""

    def __init__(self, address: str) -> None:
        self.meddle: Meddle = framed
        super().__init__(address)

    def _pass(self, reader: socket, writer: socket) -> None:
        # Requests come from the gateway's side, whose address is the listener's.
        if reader.getsockname() == self._listener.getsockname():
            super()._pass(reader, writer)
            return
        with suppress(OSError), reader.makefile("rb") as answers:
            while head := answers.read(LENGTH.size):
                answer = answers.read(*LENGTH.unpack(head))
                self._through.wait()
                sent = self.meddle(answer)
                writer.sendall(sent)
                self.passed += len(sent)
                if isinstance(sent, Last):
                    break
        for each in (reader, writer):
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)


class World:
    """A gateway, and the proxy between it and its cluster upstream."""

    def __init__(self, gateway: Broker, proxy: MeddlingProxy) -> None:
        self.gateway = gateway
        self.proxy = proxy

    @contextmanager
    def meddling(self, meddle: Meddle) -> Iterator[None]:
        """Change all answers meanwhile."""
        self.proxy.meddle = meddle
        try:
            yield
        finally:
            self.proxy.meddle = framed
