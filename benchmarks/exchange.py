"""A client that waits for nothing but the broker: requests encoded beforehand, answers as bytes."""

from __future__ import annotations

import socket
import statistics
import struct
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from aclbroker.protocol.compile import decode
from aclbroker.protocol.header import response_header_version
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.accounts import PASSWORDS
from tests.support.client import request_frame

TIMEOUT_SECONDS = 120
_BUFFER = 1 << 20


def login_frames(user: str) -> list[bytes]:
    """Return the requests that log a user in with PLAIN."""
    token = f"\0{user}\0{PASSWORDS[user]}".encode()
    return [
        request_frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")),
        request_frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)),
    ]


class Exchange:
    """One connection of a user, on which each request waits for its answer."""

    def __init__(self, address: str, user: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        # The kernel's own time-out: with one of Python's every read would cost a poll as well.
        timeout = struct.pack("ll", TIMEOUT_SECONDS, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(_BUFFER)
        self._size = 4
        for frame in login_frames(user):
            self.answer(frame)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def seconds(self, frame: bytes) -> float:
        """Send a frame; return the seconds until all of its answer is there."""
        begin = time.perf_counter()
        self._exchange(frame)
        return time.perf_counter() - begin

    def median(self, frames: Iterable[bytes]) -> float:
        """Send the frames, one after the other; return the median of their seconds."""
        return statistics.median([self.seconds(frame) for frame in frames])

    def median_for(self, frame: bytes, seconds: float, at_least: int = 5) -> float:
        """Send a frame over and over for so long; return the median of its seconds."""
        end = time.perf_counter() + seconds
        taken = [self.seconds(frame) for _ in range(at_least)]
        while time.perf_counter() < end:
            taken.append(self.seconds(frame))
        return statistics.median(taken)

    def answer(self, frame: bytes) -> bytes:
        """Send a frame; return the payload of the answer."""
        self._exchange(frame)
        return self.latest

    def ask(self, key: ApiKey, version: int, message: Any) -> Any:
        """Send a request; return the answer, decoded."""
        return decoded(key, version, self.answer(request_frame(key, version, message)))

    @property
    def latest(self) -> bytes:
        """The payload of the latest answer."""
        return bytes(self._buffer[4 : self._size])

    def _exchange(self, frame: bytes) -> None:
        self._socket.sendall(frame)
        received, size = 0, 4
        while received < size:
            with memoryview(self._buffer)[received:] as free:
                count = self._socket.recv_into(free)
            if not count:
                raise ConnectionError("the broker closed the connection")
            received += count
            if size == 4 and received >= 4:
                size += int.from_bytes(self._buffer[:4], "big")
                if size > len(self._buffer):
                    self._buffer += bytes(size - len(self._buffer))
        self._size = size


def decoded(key: ApiKey, version: int, payload: bytes) -> Any:
    """Return the message of a response's payload."""
    header = 4 + response_header_version(APIS[key], version)
    return decode(APIS[key].response, version, payload[header:])
