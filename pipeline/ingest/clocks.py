"""The times of many lines at once, from digits at fixed places."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import Flags, Lines, Places

DAY: Final = 86_400_000_000
"""In microseconds."""

MINUTE: Final = 60_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DATE_LENGTH: Final = len("2026-11-21")
_DATE: Final = re.compile(rb"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are written: what stands before the date, behind it, and the form of the rest.

    In ``rest`` ``h``, ``m``, ``s`` and ``u`` stand for the digits of hours, minutes, seconds and
    their fractions, anything else for itself.
    """

    before: bytes
    behind: bytes
    rest: bytes

    @property
    def size(self) -> int:
        """How many bytes a time has."""
        return len(self.before) + _DATE_LENGTH + len(self.behind) + len(self.rest)

    def read(self, lines: Lines, places: Places) -> tuple[NDArray[np.int64], Flags]:
        """Return the times at some places, in microseconds since 1970, and which of them are times.

        Of what is no time any number comes. Years are those from 2000 to 2099.
        """
        size = len(self.before) + _DATE_LENGTH + len(self.behind)
        days, good = of_runs(lines.windows(places, size), self._day)
        base, most, weights = self._weights()
        digits = lines.bytes_at(places + size, len(self.rest)) - base
        good &= ~(digits > most).any(axis=1)
        tens = self.rest.index(b"h")
        good &= (digits[:, tens] < 2) | (digits[:, tens + 1] < 4)
        micros = (digits @ weights).astype(np.int64)
        return days + micros, good

    def _day(self, text: bytes) -> int | None:
        day = text[len(self.before) : len(text) - len(self.behind)]
        if self.before + day + self.behind != text or not _DATE.fullmatch(day):
            return None
        try:
            ordinal = date.fromisoformat(day.decode("ascii")).toordinal()
        except ValueError:
            return None
        return (ordinal - _EPOCH) * DAY

    def _weights(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
        """Return what to take off each byte, what may be left of it, and how much that counts."""
        rest = self.rest.decode("ascii")
        units = {"h": DAY // 24, "m": MINUTE, "s": 1_000_000, "u": 10 ** (6 - rest.count("u"))}
        base = [ord("0") if each in units else ord(each) for each in rest]
        most = [{"h": 2, "m": 5, "s": 5}.get(each, 9) if each in units else 0 for each in rest]
        weights = [0] * len(rest)
        for at, each in enumerate(rest):
            behind = rest[at + 1 :].count(each)
            if each in units:
                weights[at] = units[each] * 10**behind
                if behind == 0:
                    most[at] = 9
        return np.array(base, np.uint8), np.array(most, np.uint8), np.array(weights, np.float64)


def of_runs(
    values: NDArray[np.void] | NDArray[np.int64], function: Callable[[bytes], int | None]
) -> tuple[NDArray[np.int64], Flags]:
    """Return a function of values, of which many that follow each other are the same.

    And of which of them it is not None.
    """
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    starts = np.concatenate([np.zeros(min(len(values), 1), np.int64), changes])
    known: dict[bytes, int | None] = {}
    found = []
    for value in values[starts]:
        key = value.tobytes()
        if key not in known:
            known[key] = function(key)
        found.append(known[key])
    lengths = np.diff(np.append(starts, len(values)))
    numbers = np.array([each or 0 for each in found], np.int64)
    are_there = np.array([each is not None for each in found], bool)
    return np.repeat(numbers, lengths), np.repeat(are_there, lengths)
