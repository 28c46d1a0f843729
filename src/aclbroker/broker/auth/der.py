"""Reads DER (ITU-T X.690): tags of one octet, and lengths in their shortest form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06

_HIGH_TAG: Final = 0x1F
_LONG_FORM: Final = 0x80


class Element(NamedTuple):
    """One element: its tag, its content, and its whole encoding."""

    tag: int
    content: bytes
    whole: bytes

    def content_of(self, tag: int) -> bytes:
        """Return the content; raises ValueError if the tag is another."""
        if self.tag != tag:
            raise ValueError(f"tag {self.tag:#x} in place of {tag:#x}")
        return self.content

    def children(self, tag: int | None = None) -> list[Element]:
        """Return the elements inside; raises ValueError if this one has another tag."""
        return list(elements(self.content if tag is None else self.content_of(tag)))


def elements(data: bytes) -> Iterator[Element]:
    """The elements one after the other; raises ValueError where the bytes are no DER."""
    start = 0
    while start < len(data):
        tag, length, content = _header(data, start)
        end = content + length
        if end > len(data):
            raise ValueError("an element that is longer than what holds it")
        yield Element(tag, data[content:end], data[start:end])
        start = end


def element(data: bytes) -> Element:
    """The one element there is; raises ValueError."""
    [only] = elements(data)
    return only


def _header(data: bytes, position: int) -> tuple[int, int, int]:
    """Return the tag and the length at a position, and where the content begins."""
    header = data[position : position + 2]
    if len(header) < 2 or header[0] & _HIGH_TAG == _HIGH_TAG:
        raise ValueError("a tag that is cut off, or longer than one octet")
    tag, length = header
    position += 2
    if length & _LONG_FORM:
        width = length & ~_LONG_FORM
        octets = data[position : position + width]
        position += width
        length = int.from_bytes(octets, "big")
        # An indefinite length, which is BER and not DER, has no octets.
        if not octets or len(octets) < width or length < _LONG_FORM or not octets[0]:
            raise ValueError("a length that is cut off, or longer than needed")
    return tag, length, position
