"""Tables in HTML: the first rows as they are, and all rows as data that the page's script shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from aclbroker.pipeline.interface.result import Cell
from aclbroker.pipeline.report.content import Column, WrittenTable
from aclbroker.pipeline.report.markup import Markup, breakable, data, element, joined, name_of
from aclbroker.pipeline.report.words import (
    cell,
    is_number,
    number,
    numeric_columns,
    short_number,
    shortened,
)
from aclbroker.terminal import shown

LONGEST_NAME: Final = 240
"""How many characters of a name are shown: a client may use a name of 32 thousand."""

MOST_BYTES: Final = 8_000_000
"""How much of the page a table may take."""

FIRST_ROWS: Final = 10
"""How many rows of a whole table are there without a script."""

_SHORT: Final = 26
"""How many characters of a cell stay on one line."""

_FEW_COLUMNS: Final = 3
"""So many columns have room on a telephone."""

_PROSE: Final = (
    "note",
    "reason",
    "why",
    "meaning",
    "proof",
    "finding",
    "advice",
    "what",
    "why not",
)
"""Columns that hold sentences; other texts are names, in a font that tells l from 1."""

_STEPS: Final = 5


def content(value: Cell) -> Markup:
    """Return a value as it is shown."""
    return name_of(value, LONGEST_NAME) if isinstance(value, str) else joined(cell(value))


def grid(
    names: Sequence[str], rows: Sequence[Sequence[Cell]], title: str, *, matrix: bool = False
) -> Markup:
    """Return rows as a table that can be scrolled; in a ``matrix`` numbers have shades."""
    kinds = [
        "number" if is_numeric else "" if name.lower() in _PROSE else "name"
        for name, is_numeric in zip(names, numeric_columns(names, rows), strict=True)
    ]
    most = _most(rows) if matrix else None
    labels = [shown(name) for name in names]

    def cells(row: Sequence[Cell]) -> Iterator[Markup]:
        for at, (value, kind) in enumerate(zip(row, kinds, strict=True)):
            if most is not None and kind == "number":
                yield _shaded(value, most, labels[at])
                continue
            look = "nothing" if value is None else "short" if len(cell(value)) <= _SHORT else ""
            yield element(
                "td" if at else "th",
                content(value),
                class_=f"{kind} {look}".strip() or None,
                scope=None if at else "row",
                data_l=labels[at] if at else None,
                data_v=_sortable(value),
            )

    head = (
        element("th", breakable(name), scope="col", class_="number" if kind == "number" else None)
        for name, kind in zip(names, kinds, strict=True)
    )
    table = element(
        "table",
        element("thead", element("tr", *head)),
        element("tbody", *(element("tr", *cells(row)) for row in rows)),
        class_="matrix" if matrix else "wide" if len(names) > _FEW_COLUMNS else None,
    )
    # It must take the focus to be scrolled with the keyboard.
    return element("div", table, class_="scroll", role="region", aria_label=title, tabindex="0")


def _sortable(value: Cell) -> str | None:
    """A number as a program reads it."""
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return repr(value)


def _most(rows: Sequence[Sequence[Cell]]) -> float:
    numbers = [value for row in rows for value in row if _sortable(value) is not None]
    return max((float(value) for value in numbers if isinstance(value, int | float)), default=0.0)


def _shaded(value: Cell, most: float, label: str) -> Markup:
    known = float(value) if isinstance(value, int | float) else 0.0
    share = math.log1p(max(known, 0.0)) / math.log1p(most) if most > 0 else 0.0
    step = math.ceil(share * _STEPS)
    text = short_number(known) if known else "·"
    return element(
        "td",
        text,
        class_=f"number h{step}",
        title=f"{label}: {number(known)}",
        data_l=label,
        data_v=_sortable(value),
    )


def rows_data(written: WrittenTable) -> tuple[Markup, int]:
    """Return as many rows as may be in the page as data, and how many they are."""
    count = written.count
    while True:
        found = data({"columns": [_column(each, count) for each in written.columns]}, "rows")
        if len(found) <= MOST_BYTES or count <= FIRST_ROWS:
            return found, count
        count //= 2


def _column(column: Column, count: int) -> dict[str, Any]:
    """The column as data: numbers as they are, texts as they are shown, each once."""
    codes = column.codes[:count]
    used = sorted(set(codes))
    values = [column.values[code] for code in used]
    kind = "prose" if column.name.lower() in _PROSE else "name"
    if any(map(is_number, values)) and all(is_number(each) or each is None for each in values):
        kind = "number"
    place = {code: at for at, code in enumerate(used)}
    return {
        "name": shown(column.name).replace("_", " "),
        "kind": kind,
        "values": [_plain(each) for each in values],
        "codes": [place[code] for code in codes],
    }


def _plain(value: Cell) -> Cell:
    if isinstance(value, bool):
        return cell(value)
    if isinstance(value, str):
        return shortened(shown(value), LONGEST_NAME) or None
    return None if isinstance(value, float) and not math.isfinite(value) else value
