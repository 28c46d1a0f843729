"""What one connection is sent, and what a broker must make of it.

The codec, run in this process, says which frames are requests and which end the connection. A batch
ends with the first that does, so that the broker looks at every frame that is sent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import Enum, auto
from random import Random
from typing import NamedTuple

from aclbroker.protocol.primitives import ProtocolError, TooMany
from aclbroker.protocol.wire import FrameReader, Request, decode_request, framed
from tests.fuzz.mutations import mutated

LIMIT = 1 << 20
"""The `socket.request.max.bytes` of the broker under test."""

MOST_FRAMES = 20
MOST_BYTES = 32_000
"""What a batch ends at: little enough to be sent, and to be read, in one go."""

HEADER = 14
"""Bytes of API key, version, correlation id and client id, which most damage spares."""

Suitable = Callable[[Request], bool]


class End(Enum):
    """How the bytes of a connection leave it."""

    OPEN = auto()
    MALFORMED = auto()
    INCOMPLETE = auto()


class Batch(NamedTuple):
    """Frames in their order, the requests among them, and how they leave the connection."""

    data: bytes
    frames: int
    requests: list[Request]
    end: End


def damaged_batch(chance: Random, payloads: Sequence[bytes], suitable: Suitable) -> Batch:
    """Damage frames until one ends the connection, leaves it waiting, or there are enough.

    Frames with requests that are not ``suitable``, or have too many entries, are left out.
    """
    data = bytearray()
    frames = 0
    requests: list[Request] = []
    end = End.OPEN
    while end is End.OPEN and frames < MOST_FRAMES and len(data) < MOST_BYTES:
        frame = damaged_frame(chance, payloads)
        found, its_end = _judged(frame)
        if its_end is not None and all(map(suitable, found)):
            data += frame
            frames += 1
            requests += found
            end = its_end
    return Batch(bytes(data), frames, requests, end)


def damaged_frame(chance: Random, payloads: Sequence[bytes]) -> bytes:
    """Return one of the payloads as a frame, with damage in it, or at times in its length."""
    payload = mutated(chance, chance.choice(payloads), chance.choice(payloads), header=HEADER)
    if chance.random() < 0.97:
        return framed(payload)
    size = len(payload)
    wrong = (-0x80000000, -1, 0, 1, size - 1, size + 1, LIMIT, LIMIT + 1, 0x7FFFFFFF)
    return struct.pack(">i", chance.choice(wrong)) + payload


def _judged(data: bytes) -> tuple[list[Request], End | None]:
    """Return the requests in the bytes of a connection, and how these leave it.

    None stands for a request that has too many entries to be read, and is answered.
    """
    reader = FrameReader(LIMIT)
    reader.feed(data)
    requests = []
    try:
        while (payload := reader.next_frame()) is not None:
            requests.append(decode_request(payload))
    except TooMany:
        return requests, None
    except ProtocolError:
        return requests, End.MALFORMED
    return requests, End.INCOMPLETE if reader.buffered else End.OPEN
