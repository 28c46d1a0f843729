"""Request headers v0-v2 and response headers v0-v1.

The client id keeps its two-byte length in every header version (KIP-482), and the response to
ApiVersions has header v0 whatever its version (KIP-511), so that any client can read it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from aclbroker.protocol.compile.runtime import read_tags, write_tags
from aclbroker.protocol.messages import Api, ApiKey
from aclbroker.protocol.primitives import Frame, ProtocolError, Tags

CONTROLLED_SHUTDOWN: Final = 7

_FIXED: Final = struct.Struct(">hhi")
_LENGTH: Final = struct.Struct(">h")
_CLIENT_ID: Final = _FIXED.size + _LENGTH.size
_CORRELATION_ID: Final = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """The header of a request; ``body`` is the position in the frame where the message begins."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tags: Tags
    body: int


def api_of(frame: Frame) -> tuple[int, int]:
    """Return the API key and version at the beginning of a request; raises `ProtocolError`."""
    if len(frame) < _FIXED.size:
        raise ProtocolError(f"a request of {len(frame)} bytes is shorter than its header")
    api_key, api_version, _ = _FIXED.unpack_from(frame)
    return api_key, api_version


def request_header_version(api: Api, version: int) -> int:
    """Return the version of a request's header, also for an unknown version of the request."""
    if api.flexible is not None and version >= api.flexible:
        return 2
    return 0 if (api.key, version) == (CONTROLLED_SHUTDOWN, 0) else 1


def response_header_version(api: Api, version: int) -> int:
    """Return the version of a response's header."""
    is_flexible = api.flexible is not None and version >= api.flexible
    return 1 if is_flexible and api.key != ApiKey.API_VERSIONS else 0


def decode_request_header(api: Api, frame: Frame) -> RequestHeader:
    """Read the header of a frame that holds a request of ``api``; raises `ProtocolError`."""
    try:
        api_key, api_version, correlation_id = _FIXED.unpack_from(frame)
        # As request_header_version has it; a call would take a quarter of the time of all this.
        is_flexible = api.flexible is not None and api_version >= api.flexible
        if api_version == 0 and api_key == CONTROLLED_SHUTDOWN:
            return RequestHeader(api_key, api_version, correlation_id, None, (), _FIXED.size)
        (size,) = _LENGTH.unpack_from(frame, _FIXED.size)
        pos = _CLIENT_ID
        client_id = None
        if size >= 0:
            pos += size
            if pos > len(frame):
                raise ProtocolError("the client id is longer than the request")
            client_id = frame[_CLIENT_ID:pos].decode()
        tags: Tags = ()
        if is_flexible:
            if frame[pos]:
                tags, pos = read_tags(frame, pos)
            else:
                pos += 1
        # The same as RequestHeader(...), whose __new__ is Python code and takes twice as long.
        header = (api_key, api_version, correlation_id, client_id, tags, pos)
        return tuple.__new__(RequestHeader, header)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"request header: {error}") from error


def encode_request_header(api: Api, header: RequestHeader) -> bytes:
    """Return the bytes of a request's header; ``header.body`` is ignored."""
    raw = _FIXED.pack(header.api_key, header.api_version, header.correlation_id)
    header_version = request_header_version(api, header.api_version)
    if header_version:
        client_id = None if header.client_id is None else header.client_id.encode()
        raw += _LENGTH.pack(-1 if client_id is None else len(client_id)) + (client_id or b"")
    return raw + write_tags(header.unknown_tags) if header_version > 1 else raw


def decode_response_header(api: Api, version: int, frame: Frame) -> tuple[int, int]:
    """Return the correlation id of a response and the position where its message begins.

    Raises `ProtocolError`.
    """
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        pos = _CORRELATION_ID.size
        if response_header_version(api, version):
            _, pos = read_tags(frame, pos)
        return correlation_id, pos
    except (IndexError, struct.error) as error:
        raise ProtocolError(f"response header: {error}") from error
