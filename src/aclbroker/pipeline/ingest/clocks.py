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

HOUR: Final = 3_600_000_000
MINUTE: Final = 60_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_HOUR_LENGTH: Final = len("2026-11-21T07:")
_WIDTH: Final = 16
_NO_CHECK: Final = 255


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are written: what stands before the date, behind it, and the form of the rest.

    In ``rest``, which is all behind the hour and its colon and has up to 16 bytes, ``m``, ``s`` and
    ``u`` stand for the digits of minutes, seconds and their fractions, anything else for itself.
    """

    before: bytes
    behind: bytes
    rest: bytes

    @property
    def hour_size(self) -> int:
        """How many bytes there are up to the minutes."""
        return len(self.before) + _HOUR_LENGTH

    @property
    def size(self) -> int:
        """How many bytes a time has."""
        return self.hour_size + len(self.rest)

    @property
    def hour_form(self) -> re.Pattern[bytes]:
        """What texts match that end before the minutes: the date and the hour."""
        day, clock = rb"(20[0-9]{2}-[0-9]{2}-[0-9]{2})", rb"([01][0-9]|2[0-3]):"
        return re.compile(re.escape(self.before) + day + re.escape(self.behind) + clock)

    def read(self, lines: Lines, places: Places) -> tuple[NDArray[np.int64], Flags]:
        """Return the times at some places, in microseconds since 1970, and which of them are times.

        Of what is no time any number comes. Years are those from 2000 to 2099.
        """
        form = self.hour_form

        def hour(text: bytes) -> int | None:
            match = form.fullmatch(text)
            found = match and hour_of(match)
            return found and found[0]

        hours, good = of_runs(lines.windows(places, self.hour_size), hour)
        micros, are_right = self.rest_of(lines, places + self.hour_size)
        return hours + micros, good & are_right

    def rest_of(self, lines: Lines, places: Places) -> tuple[NDArray[np.int64], Flags]:
        """Return the ``rest`` at some places, in microseconds, and which of them have its form."""
        base, most, weights = self._weights()
        digits = lines.bytes_at(places, _WIDTH) - base
        wrong = (digits > most).view(np.uint64)
        return (digits @ weights).astype(np.int64), (wrong[:, 0] | wrong[:, 1]) == 0

    def _weights(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
        """Return what to take off each byte, what may be left of it, and how much that counts."""
        text = self.rest.decode("ascii")
        units = {"m": MINUTE, "s": 1_000_000, "u": 10 ** (6 - text.count("u"))}
        base = np.zeros(_WIDTH, np.uint8)
        most = np.full(_WIDTH, _NO_CHECK, np.uint8)
        weights = np.zeros(_WIDTH, np.float64)
        for at, each in enumerate(text):
            behind = text[at + 1 :].count(each)
            base[at] = ord("0") if each in units else ord(each)
            most[at] = 0 if each not in units else 5 if each != "u" and behind else 9
            weights[at] = units[each] * 10**behind if each in units else 0
        return base, most, weights


def hour_of(match: re.Match[bytes]) -> tuple[int] | None:
    """Return the time of what matches the `Clock.hour_form`, None if there is no such day."""
    try:
        day = date.fromisoformat(match[1].decode("ascii")).toordinal()
    except ValueError:
        return None
    return ((day - _EPOCH) * DAY + int(match[2]) * HOUR,)


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
