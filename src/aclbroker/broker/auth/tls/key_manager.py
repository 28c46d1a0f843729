"""Which of several private keys are used: those that Java's key manager would pick.

Java's default, SunX509KeyManagerImpl, keeps the entries of a store in a HashMap by alias, and takes
the first whose key is of a type that the client can verify. OpenSSL has a place for one key of each
type. So the first of each type in the order of that map is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aclbroker.broker.auth.tls.entries import SERVER_KEYS, KeyEntry

_SMALLEST_TABLE: Final = 16
_LOAD_FACTOR: Final = 0.75
_INT_BITS: Final = 32


def served(entries: Sequence[KeyEntry]) -> list[KeyEntry]:
    """Return one entry for each type of key.

    Where two aliases fall into one bucket of the map, the first in the store's order comes first.
    """
    size = _SMALLEST_TABLE
    while len(entries) > size * _LOAD_FACTOR:
        size *= 2
    first: dict[type, KeyEntry] = {}
    for entry in sorted(entries, key=lambda entry: _bucket(entry.alias, size)):
        kind = _type_of(entry)
        if kind is not None and entry.chain:
            first.setdefault(kind, entry)
    return list(first.values())


def _type_of(entry: KeyEntry) -> type | None:
    return next((kind for kind in SERVER_KEYS if isinstance(entry.key, kind)), None)


def _bucket(alias: str, size: int) -> int:
    code = _hash_code(alias)
    return (code ^ code >> (_INT_BITS // 2)) % size


def _hash_code(text: str) -> int:
    """Return what `String.hashCode` gives, as an unsigned number."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) % 2**_INT_BITS
    return code
