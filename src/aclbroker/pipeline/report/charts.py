"""Charts as inline SVG: no script, colours from the page's style sheet, numbers as tooltips."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.interface.result import Chart
from aclbroker.pipeline.report.markup import Markup, element, joined, text
from aclbroker.pipeline.report.words import number, short_number, width
from aclbroker.terminal import shown

MOST_SERIES: Final = 6
"""How many colours the style sheet has; further series begin again with the first."""

_WIDTH: Final = 840.0
_CHARACTER: Final = 7.1
"""The mean width of a character of the font, in units of the drawing."""

_ROW, _BAR = 27.0, 15.0
_LABEL_MOST, _VALUE_ROOM = 300.0, 84.0

_PLOT_TOP, _PLOT_HEIGHT, _DAYS_HEIGHT = 10.0, 200.0, 24.0
_AXIS_ROOM: Final = 52.0
_TICKS: Final = 4
_WIDEST_COLUMN: Final = 56.0

# Readers expect these words in these colours, whichever series comes first.
_COLOURS: Final = {"allowed": 1, "newly allowed": 1, "denied": 2, "newly denied": 2}


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    values: tuple[float, ...]
    colour: str


def drawn(chart: Chart, key: str) -> Markup:
    """Return a chart as SVG. ``key`` is unique in the page. There must be labels and a series."""
    series = _series(chart)
    draw = _bars if chart.kind == "bars" else _columns
    height, shapes = draw(chart, series)
    return element(
        "svg",
        element("title", chart.title, id=f"{key}-title"),
        element("desc", described(chart), id=f"{key}-desc"),
        *shapes,
        viewBox=f"0 0 {_WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_=f"chart {chart.kind}",
    )


def legend(chart: Chart) -> Markup:
    """Return which colour is which series; nothing for a single one, which the title tells."""
    series = _series(chart)
    if len(series) < 2:
        return joined()
    keys = (
        element("li", element("span", class_=f"key {each.colour}"), each.name) for each in series
    )
    return element("ul", *keys, class_="legend")


def described(chart: Chart) -> str:
    """Return in words what a chart shows, for screen readers."""
    what = "Bars" if chart.kind == "bars" else "Columns by day"
    names = ", ".join(chart.series)
    totals = _totals(_series(chart), len(chart.labels))
    most = max(range(len(totals)), key=totals.__getitem__)
    return (
        f"{what} of {names}, {len(totals):,} in all; the longest is {chart.labels[most]} "
        f"with {number(totals[most])}. The numbers are in the table below."
    )


def _series(chart: Chart) -> list[_Series]:
    taken = {_COLOURS[name.lower()] for name in chart.series if name.lower() in _COLOURS}
    free = [each for each in range(1, MOST_SERIES + 1) if each not in taken]
    free = free or list(range(1, MOST_SERIES + 1))
    found = []
    others = 0
    for name, values in chart.series.items():
        colour = _COLOURS.get(name.lower())
        if colour is None:
            colour = free[others % len(free)]
            others += 1
        clean = tuple(value if math.isfinite(value) and value > 0 else 0.0 for value in values)
        found.append(_Series(name, clean, f"s{colour}"))
    return found


def _totals(series: Sequence[_Series], count: int) -> list[float]:
    return [sum(each.values[index] for each in series) for index in range(count)]


def _bars(chart: Chart, series: Sequence[_Series]) -> tuple[float, Iterator[Markup]]:
    room = max(min(width(shown(label)) * _CHARACTER, _LABEL_MOST) for label in chart.labels)
    left = room + 14
    totals = _totals(series, len(chart.labels))
    scale = (_WIDTH - left - _VALUE_ROOM) / (max(totals) or 1)

    def shapes() -> Iterator[Markup]:
        for index, label in enumerate(chart.labels):
            top = index * _ROW
            middle = top + _ROW / 2
            yield _label(label, room, middle)
            yield element(
                "line", class_="track", x1=left, x2=_WIDTH - _VALUE_ROOM, y1=middle, y2=middle
            )
            at = left
            for each in series:
                size = each.values[index] * scale
                if size:
                    yield _block(each, index, label, at, middle - _BAR / 2, size, _BAR)
                at += size
            yield element("text", number(totals[index]), class_="value", x=at + 8, y=middle + 4)

    return len(chart.labels) * _ROW, shapes()


def _label(label: str, room: float, middle: float) -> Markup:
    return element(
        "text",
        element("title", label),
        text(label, int(_LABEL_MOST / _CHARACTER)),
        class_="label",
        x=room,
        y=middle + 4,
        text_anchor="end",
    )


def _block(
    each: _Series, index: int, label: str, x: float, y: float, across: float, down: float
) -> Markup:
    told = f"{label}: {each.name} {number(each.values[index])}"
    return element(
        "rect",
        element("title", told),
        class_=each.colour,
        x=x,
        y=y,
        width=max(across, 1.0),
        height=max(down, 1.0),
        rx=2,
    )


def _columns(chart: Chart, series: Sequence[_Series]) -> tuple[float, Iterator[Markup]]:
    count = len(chart.labels)
    totals = _totals(series, count)
    ticks = _ticks(max(totals))
    bottom = _PLOT_TOP + _PLOT_HEIGHT
    band = (_WIDTH - _AXIS_ROOM) / count
    across = min(band * 0.78, _WIDEST_COLUMN)

    def shapes() -> Iterator[Markup]:
        for tick in ticks:
            y = bottom - tick / ticks[-1] * _PLOT_HEIGHT
            yield element("line", class_="grid", x1=_AXIS_ROOM, x2=_WIDTH, y1=y, y2=y)
            yield element(
                "text",
                short_number(tick),
                class_="tick",
                x=_AXIS_ROOM - 8,
                y=y + 4,
                text_anchor="end",
            )
        every = _labelled(chart.labels, band)
        for index, label in enumerate(chart.labels):
            middle = _AXIS_ROOM + band * (index + 0.5)
            y = bottom
            for each in series:
                size = each.values[index] / ticks[-1] * _PLOT_HEIGHT
                y -= size
                if size:
                    yield _block(each, index, label, middle - across / 2, y, across, size)
            if index % every == 0:
                yield element(
                    "text", label, class_="tick", x=middle, y=bottom + 18, text_anchor="middle"
                )

    return bottom + _DAYS_HEIGHT, shapes()


def _labelled(labels: Sequence[str], band: float) -> int:
    """Return n, if every n-th label has room below its column."""
    needed = max(width(shown(label)) for label in labels) * _CHARACTER + 16
    return max(1, math.ceil(needed / band))


def _ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least ``most``, above 0."""
    step = 10 ** math.floor(math.log10((most or 1) / _TICKS))
    for factor in (1, 2, 2.5, 5, 10):
        count = math.ceil((most or 1) / (step * factor))
        if count <= _TICKS:
            return [step * factor * each for each in range(count + 1)]
    return [0, most]
