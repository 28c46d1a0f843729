"""Straight-line Python for each message and version, generated from its Schema at first use.

A nested walk over objects of wire types costs tens of microseconds a message; the generated
functions do the same in one function body without a call a field. The Schemas stay the readable
reference that the tests hold the generated code to.
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
    """The two directions of one message at one version.

    ``decode(data, pos)`` reads the message that begins at ``data[pos]`` and returns it with the
    position behind it; it raises `ProtocolError` on anything else than a valid message.
    ``encode(message)`` returns the bytes.
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
    """Decode a whole message; bytes behind it are ignored, as Kafka ignores them."""
    return codec(cls, version).decode(data, 0)[0]


def encode(item: Any, version: int) -> bytes:
    """Encode a message at a version; raises `UnsupportedVersion`."""
    cls: Any = type(item)
    return codec(cls, version).encode(item)


__all__ = ["Codec", "ProtocolError", "codec", "decode", "encode"]
