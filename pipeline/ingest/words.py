"""Parts of lines of which there are few different texts, found in many lines at a time.

Whether a text that was seen before stands in a line is asked of all lines at once, and each text is
read once. What is remembered only saves time: every byte of each line is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines, Places
from aclbroker.pipeline.usage.grouping import spread

_LONGEST_WORDS: Final = 512
_ROUNDS: Final = 8
_SHARE: Final = 0.3
"""A text that so large a part of the lines had before is tried by itself."""

_MOST_TRIED: Final = 4

_SAMPLE: Final = 16

# What makes sums of texts that differ differ, mostly.
_FACTORS: Final = np.arange(1, _LONGEST_WORDS // 8 + 1, dtype=np.uint64) * np.uint64(
    0x9E3779B97F4A7C15
) | np.uint64(1)
_MOST_KNOWN: Final = 1_000


class Words:
    """A part of lines of which there are few different texts; each is read once.

    ``read`` returns the values of ``fields`` for a text of the ``form``, or None if it may not
    stand there. How long a text is must follow from the form alone.
    """

    def __init__(
        self,
        form: re.Pattern[bytes],
        fields: Sequence[str],
        read: Callable[[re.Match[bytes]], tuple[Any, ...] | None],
    ) -> None:
        self.fields = fields
        self._form = form
        self._read = read
        self._texts: list[bytes] = []
        self._values: list[tuple[Any, ...]] = []
        self._numbers: dict[bytes, int] = {}
        self._common: list[tuple[int, float]] = []

    def begin(self) -> None:
        """Begin with other lines: numbers may be other ones than before."""
        if len(self._texts) > _MOST_KNOWN:
            self._texts, self._values, self._numbers, self._common = [], [], {}, []

    def numbers(self, lines: Lines, places: Places, limits: Places) -> tuple[Codes, Places]:
        """Return which of the known texts stands at each of some places, and where it ends.

        That is -1 if none does.
        """
        found = np.full(len(places), -1, np.int32)
        left = np.arange(len(places))
        if not self._texts:
            for place, limit in zip(places[:_SAMPLE], limits[:_SAMPLE], strict=True):
                self._number(lines, int(place), int(limit))
        for number, share in self._common:
            if not len(left) or share * len(places) < _SHARE * len(left):
                break
            left = self._take(lines, places, left, number, found)
        left = self._guess(lines, places, limits, left, found)
        self._read_others(lines, places, limits, left, found)
        counts = np.bincount(found[found >= 0], minlength=1)
        common = np.argsort(-counts, kind="stable")[:_MOST_TRIED].tolist()
        self._common = [(number, counts[number] / len(places)) for number in common if len(places)]
        sizes = np.array([*map(len, self._texts), 0], np.int64)
        return found, places + sizes[found]

    def _take(
        self, lines: Lines, places: Places, rows: NDArray[np.int64], number: int, found: Codes
    ) -> NDArray[np.int64]:
        """Note at which places of some rows a text stands. Return the other rows."""
        here = lines.have(places[rows], self._texts[number])
        found[rows[here]] = number
        return rows[~here]

    def _guess(
        self,
        lines: Lines,
        places: Places,
        limits: Places,
        rows: NDArray[np.int64],
        found: Codes,
    ) -> NDArray[np.int64]:
        """Note which text stands at the places of some rows, of each as long as it seems to be.

        Return the rows where it is another one, or none.
        """
        size = min((len(text) for text in self._texts), default=0) // 8
        if not len(rows) or not size:
            return rows
        begins = lines.windows(places[rows], size * 8).view(np.uint64).reshape(len(rows), size)
        sums = pa.array((begins * _FACTORS[:size]).sum(axis=1)).dictionary_encode()
        codes = sums.indices.to_numpy()
        firsts = np.empty(len(sums.dictionary), np.int64)
        firsts[codes[::-1]] = rows[::-1]
        numbers = [self._number(lines, int(places[row]), int(limits[row])) for row in firsts]
        sizes = np.array([*map(len, self._texts), 0], np.int64)[numbers]
        starts = places[rows]
        texts = lines.texts(starts, np.minimum(starts + sizes[codes], limits[rows]))
        different = texts.dictionary_encode()
        known = [self._numbers.get(text, -1) for text in different.dictionary.to_pylist()]
        found[rows] = np.array(known, np.int32)[different.indices.to_numpy()]
        return rows[found[rows] < 0]

    def _read_others(
        self,
        lines: Lines,
        places: Places,
        limits: Places,
        rows: NDArray[np.int64],
        found: Codes,
    ) -> None:
        for _ in range(_ROUNDS):
            if not len(rows):
                return
            number = self._number(lines, int(places[rows[0]]), int(limits[rows[0]]))
            rows = rows[1:] if number < 0 else self._take(lines, places, rows, number, found)
        for row in rows.tolist():
            found[row] = self._number(lines, int(places[row]), int(limits[row]))

    def _number(self, lines: Lines, place: int, limit: int) -> int:
        here = lines.codes[place : max(place, min(limit, place + _LONGEST_WORDS))].tobytes()
        match = self._form.match(here)
        if match is None:
            return -1
        known = self._numbers.get(match[0])
        if known is not None:
            return known
        values = self._read(match)
        if values is None:
            return -1
        self._texts.append(match[0])
        self._values.append(values)
        self._numbers[match[0]] = len(self._texts) - 1
        return len(self._texts) - 1

    def values(self, field: str) -> list[Any]:
        """Return a field of each known text, by its number."""
        at = self.fields.index(field)
        return [each[at] for each in self._values]

    def flags(self, field: str, codes: Codes) -> Flags:
        """Return a field of each of some lines; false where no text stands."""
        return np.array([*(bool(value) for value in self.values(field)), False])[codes]

    def column(self, field: str, codes: Codes, kind: pa.DataType) -> pa.Array:
        """Return a field of each of some lines as a column, texts dictionary-encoded."""
        values = pa.array(self.values(field), kind)
        return spread(values, codes) if pa.types.is_string(kind) else values.take(pa.array(codes))
