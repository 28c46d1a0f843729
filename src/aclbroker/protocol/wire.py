"""The byte stream of a connection, without I/O: frames, requests and responses.

A frame is a length in four bytes and that many bytes. Memory is used only for bytes that have
arrived, never for what a length claims.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from aclbroker.protocol.compile import decoder, encode, encoder
from aclbroker.protocol.header import (
    RequestHeader,
    api_of,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header_version,
)
from aclbroker.protocol.messages import APIS, Api, ApiKey
from aclbroker.protocol.pieces import Encoded, Pieces
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.turns import pause

_LENGTH: Final = struct.Struct(">i")
_RESPONSE_HEADS: Final = (struct.Struct(">ii"), struct.Struct(">iix"))
"""The length and the header of a response, by the header's version; v1 has no tagged fields."""

_LARGE: Final = 1 << 20
"""From how many bytes on a frame is not copied: that would take a millisecond for each two."""

_ENCODED: Final = (bytes, Pieces)

_REPEATED: Final = frozenset((int(ApiKey.METADATA), int(ApiKey.FIND_COORDINATOR)))
"""The keys whose clients send the same again and again."""

REMEMBERED_BYTES: Final = 512
"""Up to this size requests of some keys are decoded once, and their messages must not change."""

_REMEMBERED: Final = 256
"""Of how many requests the messages are remembered."""

_TLS_HANDSHAKE: Final = 0x1603
"""The first two bytes that a TLS client sends, where a length is expected."""


class FrameReader:
    """Divides the bytes of one connection into frames.

    ``limit`` is the largest frame accepted, in bytes. It may change between two frames, as it does
    when a client has authenticated.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # The bytes as they arrived, without a copy; a bytearray once a frame arrives in parts.
        self.data: bytes | bytearray = b""
        """The bytes that have arrived. From ``start`` on no frame was made of them yet."""

        self.start = 0
        self.is_midway = False
        """Whether ``data`` begins within a frame whose first bytes were used already."""

    @property
    def buffered(self) -> int:
        """The number of bytes that no frame has been made of yet."""
        return len(self.data) - self.start

    @property
    def announced(self) -> int:
        """The size of the frame that is arriving, in bytes; 0 if that is not known, or too large.

        To be asked after `next_frame` has returned None.
        """
        if self.is_midway or len(self.data) - self.start < _LENGTH.size:
            return 0
        (size,) = _LENGTH.unpack_from(self.data, self.start)
        return size if 0 < size <= self.limit else 0

    def feed(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        if not self.data:
            self.data = data
            return
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        if self.start:
            del self.data[: self.start]
            self.start = 0
        self.data += data

    def skip_to(self, end: int) -> None:
        """Note that the bytes up to a position in ``data`` were used."""
        if end == len(self.data):
            self.data, self.start = b"", 0
        else:
            self.start = end

    def next_frame(self) -> Frame | None:
        """Return the next whole frame without its length, or None until more bytes arrive.

        Raises `ProtocolError` for a length that is negative or beyond ``limit``, as soon as the
        length itself has arrived.
        """
        data = self.data
        begin = self.start + _LENGTH.size
        if begin > len(data) or self.is_midway:
            return None
        (size,) = _LENGTH.unpack_from(data, self.start)
        if not 0 <= size <= self.limit:
            hint = "; it looks like TLS" if size >> 16 == _TLS_HANDSHAKE else ""
            raise ProtocolError(f"a frame of {size} bytes; 0 to {self.limit} are allowed{hint}")
        end = begin + size
        if end > len(data):
            return None
        if size >= _LARGE and isinstance(data, bytearray):
            return self._all_but_the_rest(data, begin, end)
        if end == len(data):
            self.data = b""
            self.start = 0
        else:
            self.start = end
        if isinstance(data, bytes):
            return data[begin:end]
        with memoryview(data) as chunks:
            return bytes(chunks[begin:end])

    def _all_but_the_rest(self, data: bytearray, begin: int, end: int) -> bytearray:
        """Return what has arrived but for what is not of the frame: only that little is copied."""
        self.data, self.start = bytes(data[end:]), 0
        del data[end:]
        del data[:begin]
        return data


class Request(NamedTuple):
    """A decoded request; ``message`` is None in an ApiVersions request of an unknown version."""

    api: Api
    header: RequestHeader
    message: Any


def decode_request(frame: Frame) -> Request:
    """Read a frame as a request.

    Raises `ProtocolError` for malformed bytes and for a key or version that is not answered, and
    `TooMany` for a request with more entries or tagged fields than are read. Only ApiVersions may
    have an unknown version, since its sender does not know the versions yet (KIP-511).
    """
    key, version = api_of(frame)
    api = APIS.get(key)
    if api is None:
        raise ProtocolError(f"API key {key} is unknown")
    header = decode_request_header(api, frame)
    if version in api.versions:
        if key in _REPEATED and len(frame) <= REMEMBERED_BYTES:
            message = _remembered(key, version, bytes(frame[header.body :]))
        else:
            message = _decoder(key, version)(frame, header.body)[0]
        # The same as Request(...), whose __new__ is Python code and takes twice as long.
        return tuple.__new__(Request, (api, header, message))
    if key == ApiKey.API_VERSIONS:
        return Request(api, header, None)
    first, last = api.versions[0], api.versions[-1]
    raise ProtocolError(f"{api.name} version {version} is unknown; {first} to {last} are answered")


@lru_cache(_REMEMBERED)
def _remembered(key: int, version: int, body: bytes) -> Any:
    return _decoder(key, version)(body, 0)[0]


@cache
def _decoder(key: int, version: int) -> Callable[[Frame, int], tuple[Any, int]]:
    pause()  # From here on it is measured how long it takes to import and compile.
    return decoder(APIS[key].request, version)


def request_frame(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Any
) -> bytes:
    """Return a request message as the frame that a client sends."""
    header = RequestHeader(api.key, version, correlation_id, client_id, (), 0)
    return framed(encode_request_header(api, header) + encode(request, version))


def decode_response(api: Api, version: int, frame: Frame) -> tuple[int, Any]:
    """Return the correlation id and the message of a frame that answers a request of that version.

    Raises `ProtocolError` for malformed bytes.
    """
    correlation_id, body = decode_response_header(api, version, frame)
    return correlation_id, decoder(api.response, version)(frame, body)[0]


def framed(payload: bytes) -> bytes:
    """Return a payload with its length in front."""
    return _LENGTH.pack(len(payload)) + payload


def response_in_pieces(api: Api, version: int, correlation_id: int, response: Any) -> Encoded:
    """Return the frame of a response to the request with this correlation id.

    ``response`` is a message, or one that is already encoded at ``version``. The frame of a large
    one comes in `Pieces`.
    """
    cls: Any = type(response)
    body: Encoded = response if cls in _ENCODED else encoder(cls, version)(response)
    head = _RESPONSE_HEADS[response_header_version(api, version)]
    before = head.pack(head.size - _LENGTH.size + len(body), correlation_id)
    return before + body if isinstance(body, bytes) else body.headed(before)


def response_frame(api: Api, version: int, correlation_id: int, response: Any) -> bytes:
    """Return the frame that `response_in_pieces` makes, in one piece."""
    return bytes(response_in_pieces(api, version, correlation_id, response))
