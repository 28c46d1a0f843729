"""Names, numbers and days as text that is safe and pleasant to look at."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Final

from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import Cell
from aclbroker.terminal import shown

NOTHING: Final = "–"  # noqa: RUF001 - a dash for an empty cell


def cell(value: Cell) -> str:
    """Return a value as it stands in a table."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shown(value)
    return number(value)


def number(value: float) -> str:
    """Return a number with separators of thousands, and as many decimals as tell something."""
    if isinstance(value, float) and not math.isfinite(value):
        return NOTHING
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{1 if abs(value) >= 10 else 3}f}"


def short_number(value: float) -> str:
    """Return a number for an axis: ``1.2k``, ``3M``."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + sign
    return number(value)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 event`` or ``2,000 events``."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def days(window: Window) -> str:
    """Return the days of a window, and how many they are."""
    count = (window.last_day - window.first_day).days + 1
    if count == 1:
        return f"{window.first_day} (1 day, UTC)"
    return f"{window.first_day} to {window.last_day} ({count:,} days, UTC)"


def is_number(value: Cell) -> bool:
    """Whether a value is one that stands at the right of its column."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def numeric_columns(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[bool]:
    """Tell which columns hold numbers and nothing else."""
    found = []
    for index in range(len(columns)):
        values = [row[index] for row in rows if row[index] is not None]
        found.append(bool(values) and all(is_number(value) for value in values))
    return found


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes that `shown` has returned."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shortened(text: str, room: int) -> str:
    """Return a text that takes at most ``room`` columns; its middle is left out if it must be."""
    if width(text) <= room:
        return text
    if room < 5:
        return cut(text, room - 1) + "…" if room > 0 else ""
    head = (room - 1) * 2 // 3
    tail = cut(text[::-1], room - 1 - head)[::-1]
    return f"{cut(text, head)}…{tail}"


def cut(text: str, room: int) -> str:
    """Return as much of the beginning of a text as ``room`` columns take."""
    taken = 0
    for index, char in enumerate(text):
        taken += _char_width(char)
        if taken > room:
            return text[:index]
    return text
