"""Binary lines as they lie in memory, looked at without a copy, all of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.usage.grouping import spread

Places = NDArray[np.int64]
"""Where something stands among the bytes of all lines, one place a line."""

Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

REACH: Final = 1024
"""How many bytes behind the end of a line may be looked at."""

_WIDTHS: Final = (32, 128, 512)
"""How far the end of a free text is looked for. Longer ones are not found."""

_MOST_BYTES: Final = 2**31 - 1


class Spans(NamedTuple):
    """A free text of each line: where it begins, and where it ends.

    ``is_doubtful``: whether a place was passed over where it might have ended.
    """

    starts: Places
    ends: Places
    is_doubtful: Flags

    def of(self, rows: NDArray[np.int64]) -> Spans:
        """Return those of some of the lines."""
        return Spans(self.starts[rows], self.ends[rows], self.is_doubtful[rows])


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

    def first(
        self, places: Places, test: Callable[[NDArray[np.uint8]], NDArray[np.bool_]]
    ) -> Places:
        """Return where, from some places on, the first byte stands of which ``test`` is true.

        If it is further away than it is looked for, some other place behind comes instead.
        """
        found = places
        left: NDArray[np.int64] | None = None
        for width in _WIDTHS:
            begin = places if left is None else places[left]
            hits = test(self.bytes_at(begin, width))
            hits[:, -1] = True
            at = hits.argmax(axis=1)
            if left is None:
                found, left = begin + at, np.flatnonzero(at == width - 1)
            else:
                found[left] = begin + at
                left = left[at == width - 1]
            if not len(left):
                break
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


def encoded_texts(lines: Lines, spans: Spans) -> pa.DictionaryArray:
    """Return texts dictionary-encoded; raises pyarrow.ArrowInvalid if one is not UTF-8."""
    found = lines.texts(spans.starts, spans.ends).dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices, found.dictionary.cast(pa.string()))


def holding(texts: pa.DictionaryArray, test: Callable[[pa.Array], pa.Array]) -> Flags:
    """Tell of which lines a test holds that is made of each different text."""
    held = test(texts.dictionary).to_numpy(zero_copy_only=False).astype(bool)
    found: Flags = held[texts.indices.to_numpy()]
    return found


def mapped(texts: pa.DictionaryArray, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return texts after a function of the different ones, of which some may become the same."""
    return spread(function(texts.dictionary), texts.indices.to_numpy())


def canonical_hosts(hosts: pa.Array, ipv4: str, canonical: Callable[[str], str]) -> pa.Array:
    """Return addresses in the form that ``canonical`` gives those that are no plain IPv4 ones."""
    is_other = pc.invert(pc.match_substring_regex(hosts, f"^(?:{ipv4})$"))
    if not pc.any(is_other).as_py():
        return hosts
    named = [canonical(host) for host in hosts.filter(is_other).to_pylist()]
    return pc.replace_with_mask(hosts, is_other, pa.array(named, pa.string()))
