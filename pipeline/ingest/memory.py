"""Binary lines as they lie in memory, looked at without a copy, all of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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


class Spans(NamedTuple):
    """A text of each line: where it begins, and where it ends."""

    starts: Places
    ends: Places

    def of(self, rows: NDArray[np.int64]) -> Spans:
        """Return those of some of the lines."""
        return Spans(self.starts[rows], self.ends[rows])


class Lines:
    """Binary lines, none of which is null, as they lie in memory: ``codes[starts[i]:ends[i]]``.

    Behind the last one are `REACH` bytes more. Raises OverflowError for more than 2 GiB.
    """

    def __init__(self, lines: pa.Array) -> None:
        _, offsets, data = lines.buffers()
        width = np.int64 if pa.types.is_large_binary(lines.type) else np.int32
        found = np.frombuffer(offsets, width)[lines.offset : lines.offset + len(lines) + 1]
        bounds: Places = found.astype(np.int64)
        codes: NDArray[np.uint8] = np.frombuffer(b"" if data is None else data, np.uint8)
        if len(codes) < bounds[-1] + REACH:
            first, last = int(bounds[0]), int(bounds[-1])
            padded = np.zeros(last - first + REACH, np.uint8)
            padded[: last - first] = codes[first:last]
            codes, bounds = padded, bounds - first
        if bounds[-1] > _MOST_BYTES:
            raise OverflowError("the lines have more than 2 GiB")
        self.codes = codes
        self.starts: Places = bounds[:-1]
        self.ends: Places = bounds[1:]

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
        for start in range(first, last, _BLOCK):
            hits = test(self.codes[start : min(start + _BLOCK, last)])
            if hits.any():
                places = np.flatnonzero(hits) + start
                found[np.searchsorted(self.starts, places, "right") - 1] = True
        return found

    def are_utf8(self) -> Flags:
        """Tell which lines are UTF-8."""
        found = np.ones(len(self.starts), bool)
        first, last = int(self.starts[0]), int(self.ends[-1])
        if first == last or self.codes[first:last].max() < _NOT_ASCII:
            return found
        for row in np.flatnonzero(self.with_byte(lambda codes: codes >= _NOT_ASCII)).tolist():
            try:
                self.codes[self.starts[row] : self.ends[row]].tobytes().decode()
            except UnicodeDecodeError:
                found[row] = False
        return found


_BLOCK: Final = 1 << 20
_NOT_ASCII: Final = 0x80


def mapped(texts: pa.DictionaryArray, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return texts after a function of the different ones, of which some may become the same."""
    different = texts.dictionary
    found = function(different)
    return texts if found is different else spread(found, texts.indices.to_numpy())


def canonical_hosts(hosts: pa.Array, ipv4: str, canonical: Callable[[str], str]) -> pa.Array:
    """Return addresses in the form that ``canonical`` gives those that are no plain IPv4 ones."""
    is_other = pc.invert(pc.match_substring_regex(hosts, f"^(?:{ipv4})$"))
    if not pc.any(is_other).as_py():
        return hosts
    named = [canonical(host) for host in hosts.filter(is_other).to_pylist()]
    return pc.replace_with_mask(hosts, is_other, pa.array(named, pa.string()))
