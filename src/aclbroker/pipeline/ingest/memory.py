"""Binary lines as they lie in memory, looked at without a copy, all of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.record import address_of
from aclbroker.pipeline.usage.grouping import spread

Places = NDArray[np.signedinteger[Any]]
"""Where something stands among the bytes of all lines, one place a line."""

Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

REACH: Final = 1024
"""How many bytes behind the end of a line may be looked at."""

_NUMBER: Final = 32
"""In so many bytes a number must end, with the text that stands before it."""

_MOST_BYTES: Final = 2**31 - 1
_NO_PLACES: Final = np.zeros(0, np.int64)


class Spans(NamedTuple):
    """A text of each line: where it begins, and where it ends."""

    starts: Places
    ends: Places

    def of(self, rows: NDArray[np.int64]) -> Spans:
        """Return those of some of the lines."""
        return Spans(self.starts[rows], self.ends[rows])


class Lines:
    """Binary lines, none of which is null, as they lie in memory: ``codes[starts[i]:ends[i]]``.

    They are in their order, and what lies between two of them is a line feed, if anything. Behind
    the last one are `REACH` bytes more.
    """

    def __init__(self, codes: NDArray[np.uint8], starts: Places, ends: Places) -> None:
        self.codes = codes
        self.starts = starts
        self.ends = ends

    @classmethod
    def of(cls, lines: pa.Array) -> Lines:
        """Return the lines of an array, which has no nulls."""
        if not len(lines):
            return cls(np.zeros(REACH, np.uint8), _NO_PLACES, _NO_PLACES)
        bounds, codes = _in_memory(lines)
        if len(codes) < bounds[-1] + REACH:
            first, last = int(bounds[0]), int(bounds[-1])
            padded = np.zeros(last - first + REACH, np.uint8)
            padded[: last - first] = codes[first:last]
            codes, bounds = padded, bounds - first
        return cls(codes, bounds[:-1], bounds[1:])

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def are_few_bytes(self) -> bool:
        """Whether `Codes` can tell all places: there are less than 2 GiB."""
        return len(self) == 0 or int(self.ends[-1]) <= _MOST_BYTES

    @property
    def array(self) -> pa.Array:
        """The lines as an array of binary."""
        if self.are_few_bytes:
            return self.texts(self.starts, self.ends)
        return pa.array((self.line(row) for row in range(len(self))), pa.large_binary())

    def some(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return some of the lines, whose numbers do not decrease, as an array of binary."""
        if self.are_few_bytes:
            return self.texts(self.starts[rows], self.ends[rows])
        return self.array.take(pa.array(rows))

    def line(self, row: int) -> bytes:
        """Return one of the lines."""
        return self.codes[self.starts[row] : self.ends[row]].tobytes()

    def windows(self, places: Places, size: int) -> NDArray[np.void]:
        """Return the ``size`` bytes from each of some places on."""
        all_of_them: NDArray[np.void] = np.ndarray(
            (len(self.codes) - size + 1,), f"V{size}", self.codes, strides=(1,)
        )
        return all_of_them[places]

    def bytes_at(self, places: Places, size: int) -> NDArray[np.uint8]:
        """Return the ``size`` bytes from each of some places on, a row each."""
        return self.windows(places, size).view(np.uint8).reshape(-1, size)

    def have(self, places: Places, text: bytes) -> Flags:
        """Tell at which places a text stands."""
        found: Flags = self.windows(places, len(text)) == np.frombuffer(text, f"V{len(text)}")[0]
        return found

    def have_number(self, places: Places, ends: Places, before: bytes) -> Flags:
        """Tell where a text stands and a number behind it, without needless zeros, up to the ends.

        Behind the end there must be no further digit. Long numbers are not found.
        """
        base, most = np.full(_NUMBER, ord("0"), np.uint8), np.full(_NUMBER, 9, np.uint8)
        base[: len(before)], most[: len(before)] = np.frombuffer(before, np.uint8), 0
        codes = self.bytes_at(places, _NUMBER)
        wrong = codes - base > most
        wrong[:, -1] = True
        size = wrong.argmax(axis=1)
        is_digit, is_zero = size == len(before) + 1, codes[:, len(before)] == ord("0")
        found: Flags = (size > len(before)) & (is_digit | ~is_zero) & (places + size == ends)
        return found

    def texts(self, starts: Places, ends: Places) -> pa.Array:
        """Return the texts between some places, which must not decrease, as binary."""
        if not len(starts):
            return pa.array([], pa.binary())
        bounds = np.empty(2 * len(starts), np.int32)
        bounds[::2], bounds[1::2] = starts, ends
        buffers: list[Any] = [None, pa.py_buffer(bounds), pa.py_buffer(self.codes)]
        both = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)
        return both.take(pa.array(np.arange(0, len(bounds), 2)))

    def with_byte(self, test: Callable[[NDArray[np.uint8]], NDArray[np.bool_]]) -> Flags:
        """Tell in which lines there is a byte of which ``test`` is true; it is seldom so."""
        first, last = int(self.starts[0]), int(self.ends[-1])
        found = np.zeros(len(self.starts), bool)
        for start in range(first, last, BLOCK):
            hits = test(self.codes[start : min(start + BLOCK, last)])
            if hits.any():
                places = np.flatnonzero(hits) + start
                rows = np.searchsorted(self.starts, places, "right") - 1
                found[rows[places < self.ends[rows]]] = True
        return found

    def with_controls(self) -> Flags:
        """Tell in which lines there is a control character; it is seldom so."""
        first, last = int(self.starts[0]), int(self.ends[-1])
        found = sum(
            int(np.count_nonzero(self.codes[start : min(start + BLOCK, last)] < _SPACE))
            for start in range(first, last, BLOCK)
        )
        if found == np.count_nonzero(self.ends[:-1] != self.starts[1:]):
            # These are the line feeds between them.
            return np.zeros(len(self), bool)
        return self.with_byte(lambda codes: codes < _SPACE)

    def are_utf8(self) -> Flags:
        """Tell which lines are UTF-8."""
        found = np.ones(len(self.starts), bool)
        first, last = int(self.starts[0]), int(self.ends[-1])
        if first == last or self.codes[first:last].max() < _NOT_ASCII:
            return found
        for row in np.flatnonzero(self.with_byte(lambda codes: codes >= _NOT_ASCII)).tolist():
            try:
                self.line(row).decode()
            except UnicodeDecodeError:
                found[row] = False
        return found


def bytes_of(texts: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of texts, none of which is null, one text behind the other."""
    if not len(texts):
        return np.zeros(0, np.uint8)
    bounds, codes = _in_memory(texts)
    return codes[bounds[0] : bounds[-1]]


def _in_memory(texts: pa.Array) -> tuple[Places, NDArray[np.uint8]]:
    """Return where texts, of which there is one, begin and the last one ends, and the bytes."""
    _, offsets, data = texts.buffers()
    width = np.int64 if pa.types.is_large_binary(texts.type) else np.int32
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    return bounds.astype(np.int64), np.frombuffer(b"" if data is None else data, np.uint8)


BLOCK: Final = 1 << 18
"""So many bytes are looked through at once that they stay in the processor's cache."""

_SPACE: Final = ord(" ")
_NOT_ASCII: Final = 0x80
_COLON: Final = ord(":")
_SLASH: Final = ord("/")


def places_of(flags: Flags, apart: int = 8) -> NDArray[np.int64]:
    """Return which of some flags are true, as `numpy.flatnonzero` does, sooner where few are.

    That looks at one flag after the other; here ``apart`` of them are looked at as one number: 8,
    16, 32 or 64, of which two should seldom be true.
    """
    if len(flags) % _MOST_APART:
        return np.flatnonzero(flags)
    if apart == _FLAGS_OF_WORD:
        words, bits = flags.view("<u8"), 8
    else:
        words, bits = np.packbits(flags, bitorder="little").view(f"<u{apart // 8}"), 1
    found = np.flatnonzero(words != 0)
    words = words[found]
    if (words & (words - words.dtype.type(1))).any():
        return np.flatnonzero(flags)
    # One flag is a power of two, which a float has no more of than the exponent.
    powers = (words.astype(np.float64).view(np.int64) >> _FRACTION_BITS) - _BIAS
    found *= apart
    found += powers // bits
    return found


_FLAGS_OF_WORD, _MOST_APART = 8, 64
_FRACTION_BITS, _BIAS = 52, 1023


def mapped(texts: pa.DictionaryArray, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return texts after a function of the different ones, of which some may become the same."""
    different = texts.dictionary
    found = function(different)
    return texts if found is different else spread(found, texts.indices.to_numpy())


def canonical_hosts(hosts: pa.Array, canonical: Callable[[str], str]) -> pa.Array:
    """Return addresses in the form that ``canonical`` gives those of IPv6; the others have one."""
    codes = bytes_of(hosts)
    if not ((codes == _COLON) | (codes == _SLASH)).any():
        return hosts
    is_other = pc.match_substring_regex(hosts, "[:/]")
    named = [canonical(host) for host in hosts.filter(is_other).to_pylist()]
    return pc.replace_with_mask(hosts, is_other, pa.array(named, pa.string()))


_PLAIN: Final = "25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]"
_PLAIN_ADDRESS: Final = rf"^(?:{_PLAIN})(?:\.(?:{_PLAIN})){{3}}$"


def are_hosts(texts: pa.Array) -> pa.Array:
    """Tell for which texts `address_of` returns an address. Null stays null."""
    found = pc.match_substring_regex(texts, _PLAIN_ADDRESS)
    if pc.all(found).as_py():
        return found
    others = pc.invert(pc.fill_null(found, True))
    read = [_is_host(each) for each in texts.filter(others).to_pylist()]
    return pc.replace_with_mask(found, others, pa.array(read, pa.bool_()))


def _is_host(text: str | bytes) -> bool:
    try:
        return address_of(text if isinstance(text, str) else text.decode()) is not None
    except UnicodeDecodeError:
        return False
