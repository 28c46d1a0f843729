"""Slices of lines of which there are few different texts; each is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import Codes, Flags

_MOST_KNOWN: Final = 1_000


class Words:
    """The texts that may stand at one place of lines, so far as they were seen.

    ``read`` returns the values of ``fields`` for a whole text of the ``form``, or None if it may
    not stand there.
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
        self._values: list[tuple[Any, ...]] = []
        self._numbers: dict[bytes, int] = {}
        self._columns: dict[str, tuple[int, Any]] = {}

    def begin(self) -> None:
        """Begin with other lines: numbers may be other ones than before."""
        if len(self._numbers) > _MOST_KNOWN:
            self._values, self._numbers, self._columns = [], {}, {}

    def number(self, text: bytes) -> int:
        """Return the number of a text, -1 if it may not stand here."""
        known = self._numbers.get(text)
        if known is None:
            match = self._form.fullmatch(text)
            values = None if match is None else self._read(match)
            if values is None:
                return -1
            known = self._numbers[text] = len(self._values)
            self._values.append(values)
        return known

    def values(self, field: str) -> list[Any]:
        """Return a field of each known text, by its number."""
        at = self.fields.index(field)
        return [each[at] for each in self._values]

    def flags(self, field: str, codes: Codes) -> Flags:
        """Return a field of each of some lines; false where no text stands."""
        known = self._once(field, lambda values: np.array([*map(bool, values), False]))
        found: Flags = known[codes]
        return found

    def numbers(self, field: str, codes: Codes) -> NDArray[np.int64]:
        """Return a field of each of some lines, which is a whole number; 0 where no text stands."""
        known = self._once(field, lambda values: np.array([*values, 0], np.int64))
        found: NDArray[np.int64] = known[codes]
        return found

    def column(self, field: str, codes: Codes, kind: pa.DataType) -> pa.Array:
        """Return a field of each of some lines as a column, texts dictionary-encoded."""
        if not pa.types.is_string(kind):
            return pa.array(self.numbers(field, codes)).cast(kind)
        numbers, texts = self._once(field, _encoded)
        return pa.DictionaryArray.from_arrays(pa.array(numbers[codes]), texts)

    def _once(self, field: str, made: Callable[[list[Any]], Any]) -> Any:
        """Return what is made of a field of all known texts, made anew when there are others."""
        known = self._columns.get(field)
        if known is None or known[0] != len(self._values):
            known = self._columns[field] = len(self._values), made(self.values(field))
        return known[1]


def _encoded(values: list[str]) -> tuple[Codes, pa.Array]:
    different = list(dict.fromkeys(values))
    numbers = {text: number for number, text in enumerate(different)}
    return np.array([numbers[each] for each in values], np.int32), pa.array(different, pa.string())
