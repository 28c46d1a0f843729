"""A proxy before the cluster upstream, which keeps requests and may change answers."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, socket
from typing import Any

from aclbroker.protocol.wire import decode_request
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


class Copying:
    """Writes to a socket, and keeps a copy."""

    def __init__(self, writer: socket, copy: bytearray) -> None:
        self._writer = writer
        self._copy = copy

    def sendall(self, data: bytes) -> None:
        """Send bytes."""
        self._copy += data
        self._writer.sendall(data)

    def shutdown(self, how: int) -> None:
        """End the connection."""
        self._writer.shutdown(how)


class MeddlingProxy(Proxy):
    """Passes answers through ``meddle``, and keeps the bytes of all requests."""

    def __init__(self, address: str) -> None:
        self.meddle: Meddle = framed
        self.sent: list[bytearray] = []
        super().__init__(address)

    def _pass(self, reader: socket, writer: socket) -> None:
        # Requests come from the gateway's side, whose address is the listener's.
        if reader.getsockname() == self._listener.getsockname():
            self.sent.append(bytearray())
            super()._pass(reader, Copying(writer, self.sent[-1]))  # type: ignore[arg-type] # enough
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

    def requests(self, key: int) -> list[Any]:
        """Return the requests of a key that have reached the cluster, as they were decoded there.

        Those that the gateway sends for itself are among them.
        """
        return [
            request.message
            for stream in self.proxy.sent
            for request in map(decode_request, _frames(bytes(stream)))
            if request.api.key == key
        ]

    @contextmanager
    def meddling(self, meddle: Meddle) -> Iterator[None]:
        """Change all answers meanwhile."""
        self.proxy.meddle = meddle
        try:
            yield
        finally:
            self.proxy.meddle = framed


def _frames(stream: bytes) -> Iterator[bytes]:
    """Yield the whole frames at the front of a stream, without their lengths."""
    start = 0
    while len(stream) - start >= LENGTH.size:
        [size] = LENGTH.unpack_from(stream, start)
        start += LENGTH.size + size
        if start <= len(stream):
            yield stream[start - size : start]
