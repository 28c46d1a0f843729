"""A client that waits for nothing but the broker: requests encoded beforehand, answers as bytes."""

from __future__ import annotations

import socket
import statistics
import struct
import time
from collections.abc import Iterable
from typing import Any

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import decode_response
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


class Exchange(BlockingClient):
    """One connection of a user, on which each request waits for its answer."""

    def __init__(self, address: str, user: str) -> None:
        host, _, port = address.rpartition(":")
        super().__init__(connect(host, int(port), TIMEOUT_SECONDS), "test")
        # The kernel's own time-out: with one of Python's every read would cost a poll as well.
        self.socket.settimeout(None)
        timeout = struct.pack("ll", TIMEOUT_SECONDS, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        self._buffer = bytearray(_BUFFER)
        self._size = 4
        self.login(user, PASSWORDS[user])

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

    @property
    def latest(self) -> bytes:
        """The payload of the latest answer."""
        return bytes(self._buffer[4 : self._size])

    def _exchange(self, frame: bytes) -> None:
        self.socket.sendall(frame)
        received, size = 0, 4
        while received < size:
            with memoryview(self._buffer)[received:] as free:
                count = self.socket.recv_into(free)
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
    return decode_response(APIS[key], version, payload)[1]
