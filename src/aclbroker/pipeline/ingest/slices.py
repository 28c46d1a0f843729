"""Slices of lines, of which each different text is looked at once.

Most slices of a log's lines repeat a few texts. pyarrow compares those of many lines with each
other where they lie in memory, and numbers the different ones. What a slice says, and whether it
may stand where it stands, is then found out for each different text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines
from aclbroker.pipeline.ingest.words import Words
from aclbroker.pipeline.usage.packing import compact

Rows = NDArray[np.int64]


class Slices(NamedTuple):
    """The different ``texts`` of slices, and which of them each line has."""

    texts: pa.Array
    codes: Codes

    def of(self, rows: Rows) -> Slices:
        """Return those of some of the lines, with no other texts."""
        codes = pa.array(self.codes[rows])
        found = compact(pa.DictionaryArray.from_arrays(codes, self.texts))
        return Slices(found.dictionary, found.indices.to_numpy())

    def each(self, flags: pa.Array) -> Flags:
        """Return of each line what is true of its text."""
        found: Flags = flags.to_numpy(zero_copy_only=False)[self.codes]
        return found

    def inner(self, before: int, behind: int, where: Flags | None = None) -> pa.DictionaryArray:
        """Return the texts as a column without so many bytes at both ends.

        With ``where`` it is null in all other lines.
        """
        mask = None if where is None or where.all() else ~where
        codes = pa.array(self.codes, mask=mask)
        found = pa.DictionaryArray.from_arrays(codes, self.texts)
        texts = pc.binary_slice(found.dictionary, before, -behind).cast(pa.string())
        return pa.DictionaryArray.from_arrays(found.indices, texts)


class Sliced:
    """Lines cut into slices: number *k* of each lies between ``bounds[k]`` and ``bounds[k + 1]``.

    There is one line at least. No bound is before another of the same line, or one of the lines
    before. Slices that are ``skipped`` are not compared, and cannot be asked for. Those of which
    ``test`` is not true count as empty; it is given each different text as a line.
    """

    def __init__(
        self,
        lines: Lines,
        bounds: Sequence[Codes],
        skipped: Collection[int],
        test: Callable[[Lines], Flags] | None = None,
    ) -> None:
        size, width = len(bounds[0]), len(bounds)
        offsets = np.empty(size * width + 1, np.int32)
        offsets[:-1].reshape(size, width).T[:] = bounds
        offsets[-1] = offsets[-2]
        # What lies between two lines is skipped, too. All are gone through in their order, since
        # the lines are more than the processor's cache holds.
        wanted = np.ones(width, bool)
        wanted[[*skipped, width - 1]] = False
        valid = np.packbits(np.tile(wanted, size), bitorder="little")
        buffers: list[Any] = [pa.py_buffer(each) for each in (valid, offsets, lines.codes)]
        found = pa.Array.from_buffers(pa.binary(), size * width, buffers).dictionary_encode()
        codes = np.frombuffer(found.indices.buffers()[1], np.int32)[: size * width]
        self._codes: Codes = codes.reshape(size, width)
        self._texts = found.dictionary
        if test is not None and not (passed := test(Lines.of(self._texts))).all():
            self._texts = pc.if_else(pa.array(passed), self._texts, pa.scalar(b"", pa.binary()))

    def at(self, number: int) -> Slices:
        """Return the slices of one number."""
        codes, used = self._used(number)
        places = np.empty(len(self._texts), np.int32)
        places[used] = np.arange(len(used), dtype=np.int32)
        return Slices(self._texts.take(pa.array(used)), places[codes])

    def words(self, number: int, words: Words) -> Codes:
        """Return which of some words the slices of one number are, -1 where they are none."""
        codes, used = self._used(number)
        words.begin()
        numbers = np.empty(len(self._texts), np.int32)
        texts = self._texts.take(pa.array(used)).to_pylist()
        numbers[used] = [words.number(text) for text in texts]
        return numbers[codes]

    def _used(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the text of each line's slice of one number, and which texts these are."""
        codes = self._codes[:, number].astype(np.int64)
        is_used = np.zeros(len(self._texts), bool)
        is_used[codes] = True
        return codes, np.flatnonzero(is_used)
