"""Straight-line Python code for each message and version, generated from its Schema at first use.

Walking the nested wire types costs tens of microseconds for each message. A generated function does
the same work in one body, without a call for each field. The Schemas remain as the readable
reference that the tests compare the generated code with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from aclbroker.protocol.compile.decoder import decoder_source
from aclbroker.protocol.compile.encoder import encoder_source
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import struct_of


class Codec(NamedTuple):
    """The decoder and the encoder of one message at one version.

    ``decode(data, pos)`` reads the message that begins at ``data[pos]`` and returns it with the
    position behind it. It raises `ProtocolError` if there is no valid message. ``encode(message)``
    returns the bytes of a message.
    """

    decode: Callable[[bytes, int], tuple[Any, int]]
    encode: Callable[[Any], bytes]


@cache
def codec(cls: Any, version: int) -> Codec:
    """Return the codec of a message class at a version; raises `UnsupportedVersion`."""
    struct = struct_of(cls, version)
    where = f"{cls.__name__} v{version}"
    return Codec(decoder_source(struct).function(where), encoder_source(struct).function(where))


def decode(cls: Any, version: int, data: bytes) -> Any:
    """Decode a message; bytes behind it are ignored, as in Kafka.

    Raises `ProtocolError` and `UnsupportedVersion`.
    """
    return codec(cls, version).decode(data, 0)[0]


def encode(item: Any, version: int) -> bytes:
    """Encode a message at a version; raises `UnsupportedVersion`."""
    cls: Any = type(item)
    return codec(cls, version).encode(item)


__all__ = ["Codec", "ProtocolError", "codec", "decode", "encode"]
