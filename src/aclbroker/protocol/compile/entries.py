"""Encodes the entries of a message one by one, so that a caller can cache and combine them.

The entries are those of the message's last field, which must be an array of structs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from struct import pack
from typing import Any, Final

from aclbroker.protocol.compile import encode
from aclbroker.protocol.compile.encoder import entry_source
from aclbroker.protocol.compile.runtime import varint
from aclbroker.protocol.pieces import Encoded, Pieces
from aclbroker.protocol.primitives import Array
from aclbroker.protocol.schema import Struct, struct_of

_MANY: Final = 1024
"""From how many parts on an encoded message is not joined."""


@cache
def entry_encoder(cls: Any, version: int) -> Callable[[Any], bytes]:
    """Return the function that encodes one entry of a message class at a version.

    Raises `UnsupportedVersion`, and TypeError if the last field is not an array of structs.
    """
    array = struct_of(cls, version).fields[-1]
    if not isinstance(array, Array) or not isinstance(array.entry, Struct):
        raise TypeError(f"the last field of {cls.__name__} is no array of structs")
    return entry_source(array.entry).function(f"an entry of {cls.__name__} v{version}")


def encode_with_entries(message: Any, version: int, entries: Collection[bytes]) -> Encoded:
    """Encode a message whose last field gets entries that `entry_encoder` has encoded.

    Many entries are returned as they are, in `Pieces`.

    The field must be empty in ``message``, which must have no tagged fields either. Raises
    `UnsupportedVersion`.
    """
    empty = encode(message, version)
    cls: Any = type(message)
    if struct_of(cls, version).flexible:
        # The last two bytes are the array's length plus one, which is 1, and the number of tags.
        parts = [empty[:-2], varint(len(entries) + 1), *entries, b"\0"]
    else:
        parts = [empty[:-4], pack(">i", len(entries)), *entries]
    return Pieces(parts) if len(parts) > _MANY else b"".join(parts)
