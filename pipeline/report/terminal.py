"""The summary for the terminal: plain text, no wider than asked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.report.content import Report
from pipeline.report.words import cell, counted, days, numeric_columns, shortened, shown, width
from pipeline.result import Cell, Figure, Result, Table

LEAST_WIDTH: Final = 40

_MOST_ROWS: Final = 10
_NARROWEST: Final = 6
_GAP: Final = "  "


def summary(report: Report, columns: int = 100) -> str:
    """Return the report as text whose lines are at most ``columns`` wide.

    Below `LEAST_WIDTH` it is as for that width.
    """
    columns = max(columns, LEAST_WIDTH)
    parts = [_head(report, columns)]
    parts += [_result(result, columns) for result in report.results]
    if report.unanswered:
        lines = ["Not answered"]
        for job, reason in report.unanswered.items():
            lines += _wrapped(f"{job}: {reason}", columns, "  ", "    ")
        parts.append(lines)
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _head(report: Report, columns: int) -> list[str]:
    facts = []
    window = report.window
    if window is not None:
        events = counted(window.events, "event")
        facts += [
            ("window", days(window)),
            ("events", f"{events}: {window.allowed:,} allowed, {window.denied:,} denied"),
        ]
    for cluster in report.clusters:
        known = [counted(cluster.events, "event")]
        if cluster.current is not None:
            known.append(counted(len(cluster.current.acls), "ACL"))
        if cluster.proposed is not None:
            known.append(f"{len(cluster.proposed.acls):,} proposed")
        facts.append(("cluster", f"{cluster.name}: {', '.join(known)}"))
    if window is not None:
        facts.append(("quarantined", counted(window.quarantined, "line")))
    facts += [("", f"{lines:,} × {reason}") for reason, lines in report.quarantined.items()]  # noqa: RUF001
    label = max((len(name) for name, _ in facts), default=0) + len(_GAP)
    lines = []
    for name, fact in facts:
        lines += _wrapped(fact, columns, name.ljust(label), " " * label)
    for warning in report.warnings:
        lines += ["", *_wrapped(warning, columns, "! ", "  ")]
    return lines


def _result(result: Result, columns: int) -> list[str]:
    title = shown(f"{result.job.upper()}: {result.title}")
    lines = [*_wrapped(title, columns), "=" * min(width(title), columns)]
    lines += _wrapped(result.summary, columns)
    for warning in result.warnings:
        lines += ["", *_wrapped(warning, columns, "! ", "  ")]
    if result.figures:
        lines += ["", *_figures(result.figures, columns)]
    for table in result.tables:
        lines += ["", *_table(table, columns)]
    if result.outputs:
        lines += ["", "Written:"]
        for name, holds in result.outputs.items():
            lines += _wrapped(f"{name}  {holds}", columns, "  ", "    ")
    return lines


def _figures(figures: Sequence[Figure], columns: int) -> Iterator[str]:
    values = [cell(figure.value) for figure in figures]
    room = min(max(width(value) for value in values), columns // 3)
    indent = " " * (room + 2 * len(_GAP))
    for figure, value in zip(figures, values, strict=True):
        text = f"{figure.label} ({figure.note})" if figure.note else figure.label
        head = _GAP + _aligned(shortened(value, room), room, right=True) + _GAP
        yield from _wrapped(text, columns, head, indent)


def _table(table: Table, columns: int) -> list[str]:
    rows = table.rows[:_MOST_ROWS]
    rest = "" if len(rows) == table.total else f" ({len(rows):,} of {table.total:,})"
    lines = _wrapped(f"{table.title}{rest}", columns)
    if table.note:
        lines += _wrapped(table.note, columns)
    if rows:
        lines += _grid(table.columns, rows, columns)
    return lines


def _grid(names: Sequence[str], rows: Sequence[Sequence[Cell]], columns: int) -> Iterator[str]:
    right = numeric_columns(names, rows)
    cells = [[shown(name) for name in names], *([cell(value) for value in row] for row in rows)]
    natural = [min(max(width(row[index]) for row in cells), columns) for index in range(len(names))]
    rooms = fitted(natural, columns - len(_GAP) * len(names))
    cells.insert(1, ["-" * room for room in rooms])
    for row in cells:
        line = "".join(
            _GAP + _aligned(shortened(text, room), room, right=is_right)
            for text, room, is_right in zip(row, rooms, right, strict=True)
            if room
        )
        yield line.rstrip()


def fitted(natural: Sequence[int], room: int) -> list[int]:
    """Return the widths that columns get in ``room``: the widest give way first.

    A column that has no room for anything is left out, with width 0, the last ones first.
    """
    if not natural:
        return []
    if sum(min(each, _NARROWEST) for each in natural) > room:
        # The gap of the column that is left out is free for the others.
        return [*fitted(natural[:-1], room + len(_GAP)), 0]
    widest = max(natural)
    while sum(min(each, max(widest, _NARROWEST)) for each in natural) > room:
        widest -= 1
    return [min(each, max(widest, _NARROWEST)) for each in natural]


def _aligned(text: str, room: int, *, right: bool) -> str:
    padding = " " * (room - width(text))
    return padding + text if right else text + padding


def _wrapped(text: str, columns: int, first: str = "", later: str = "") -> list[str]:
    wrapper = textwrap.TextWrapper(
        width=columns,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
    )
    return wrapper.wrap(shown(text)) or [first.rstrip()]
