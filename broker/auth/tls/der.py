"""Reads DER (ITU-T X.690) as far as the outside of key stores needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
BMP_STRING: Final = 0x1E

_LONG_FORM: Final = 0x80


class Element(NamedTuple):
    """One element: its tag, its content, and both with the length as they stood there."""

    tag: int
    content: bytes
    whole: bytes

    def children(self, tag: int | None = None) -> list[Element]:
        """Return the elements inside; raises ValueError if this one has another tag."""
        if tag is not None and self.tag != tag:
            raise ValueError(f"tag {self.tag:#x} in place of {tag:#x}")
        return list(elements(self.content))


def elements(data: bytes) -> Iterator[Element]:
    """The elements one after the other; raises ValueError where the bytes are no DER."""
    start = 0
    while start < len(data):
        header = data[start : start + 2]
        if len(header) < 2:
            raise ValueError("an element ends too early")
        content = start + 2
        length = header[1]
        if length >= _LONG_FORM:
            octets = length - _LONG_FORM
            # Without octets the length is indefinite, which is BER and not DER.
            if not 0 < octets <= 4:
                raise ValueError("a length that DER does not have")
            length = int.from_bytes(data[content : content + octets], "big")
            content += octets
        end = content + length
        if end > len(data):
            raise ValueError("an element ends too early")
        yield Element(header[0], data[content:end], data[start:end])
        start = end


def element(data: bytes) -> Element:
    """The one element there is; raises ValueError."""
    [only] = elements(data)
    return only
