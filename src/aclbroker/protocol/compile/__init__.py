"""Straight-line Python code for each message and version, generated from its Schema at first use.

Walking the nested wire types costs tens of microseconds for each message. A generated function does
the same work in one body, without a call for each field. The Schemas remain as the readable
reference that the tests compare the generated code with.

To make a function takes some milliseconds, which is done when it is first needed: a broker reads no
response and writes no request. Others have their turn before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from aclbroker.protocol.compile.decoder import decoder_source
from aclbroker.protocol.compile.encoder import encoder_source
from aclbroker.protocol.pieces import Encoded
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.schema import struct_of
from aclbroker.turns import pause


@cache
def decoder(cls: Any, version: int) -> Callable[[Frame, int], tuple[Any, int]]:
    """Return the function that reads a message class at a version; raises `UnsupportedVersion`.

    ``decode(data, pos)`` reads the message that begins at ``data[pos]`` and returns it with the
    position behind it. It raises `ProtocolError` if there is no valid message.
    """
    struct = struct_of(cls, version)
    pause()
    source = decoder_source(struct)
    pause()
    return source.function(f"{cls.__name__} v{version}")


@cache
def encoder(cls: Any, version: int) -> Callable[[Any], Encoded]:
    """Return the function that writes a message class at a version; raises `UnsupportedVersion`.

    It returns a large message in `Pieces`.
    """
    struct = struct_of(cls, version)
    pause()
    source = encoder_source(struct)
    pause()
    return source.function(f"{cls.__name__} v{version}")


def decode(cls: Any, version: int, data: bytes) -> Any:
    """Decode a message; bytes behind it are ignored, as in Kafka.

    Raises `ProtocolError` and `UnsupportedVersion`.
    """
    return decoder(cls, version)(data, 0)[0]


def encode(item: Any, version: int) -> bytes:
    """Encode a message at a version; raises `UnsupportedVersion`."""
    cls: Any = type(item)
    return bytes(encoder(cls, version)(item))


__all__ = ["ProtocolError", "decode", "decoder", "encode", "encoder"]
