"""The summary for the terminal: plain text, no wider than asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from aclbroker.pipeline.interface.result import Cell, Figure, JobResult, Table
from aclbroker.pipeline.report.content import AuditReport
from aclbroker.pipeline.report.words import (
    cell,
    counted,
    cut,
    days,
    numeric_columns,
    shortened,
    width,
)
from aclbroker.terminal import shown

LEAST_WIDTH: Final = 40

_MOST_ROWS: Final = 10
_MOST_LINES: Final = 3
_MOST_RECORDS: Final = 5
_MOST_CLUSTERS: Final = 5
_MOST_WARNINGS: Final = 5
_MOST_OUTPUTS: Final = 8

_MANY_RESULTS: Final = 3
"""With so many results, each is told in short: all of it is in the report."""

_MOST_WARNINGS_IN_SHORT: Final = 2
_MOST_WARNING_LINES_IN_SHORT: Final = 2
_MOST_ROWS_IN_SHORT: Final = 3
_NARROWEST: Final = 10
_NARROWEST_LINE: Final = 24
_LEAST_OF_A_LINE: Final = 0.6
"""How much of a text there must be room for, if it takes a single line: so many columns, and this
part of it, or half of all columns."""

_PART_ENDS: Final = " _-./:=,"
_GAP: Final = "  "


def summary(report: AuditReport, columns: int = 100) -> str:
    """Return the report as text whose lines are at most ``columns`` wide.

    Below `LEAST_WIDTH` it is as for that width.
    """
    columns = max(columns, LEAST_WIDTH)
    parts = [_head(report, columns)]
    parts += [_result(result, report, columns) for result in report.results]
    if report.unanswered:
        lines = ["Not answered"]
        for job, reason in report.unanswered.items():
            lines += _wrapped(f"{job}: {reason}", columns, "  ", "  ")
        parts.append(lines)
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _head(report: AuditReport, columns: int) -> list[str]:
    facts = []
    window = report.window
    if window is not None:
        events = counted(window.events, "event")
        facts += [
            ("window", days(window)),
            ("events", f"{events}: {window.allowed:,} allowed, {window.denied:,} denied"),
        ]
    for cluster in report.clusters[:_MOST_CLUSTERS]:
        known = [counted(cluster.events, "event")]
        if cluster.current is not None:
            known.append(counted(len(cluster.current.acls), "ACL"))
        if cluster.proposed is not None:
            known.append(f"{len(cluster.proposed.acls):,} proposed")
        facts.append(("cluster", f"{cluster.name}: {', '.join(known)}"))
    rest = report.clusters[_MOST_CLUSTERS:]
    if rest:
        events = counted(sum(each.events for each in rest), "event")
        facts.append(("", f"and {counted(len(rest), 'more cluster')}: {events}"))
    if window is not None:
        facts.append(("quarantined", counted(window.quarantined, "line")))
    facts += [("", f"{lines:,} × {reason}") for reason, lines in report.quarantined.items()]  # noqa: RUF001
    facts += [
        ("not decisions" if not at else "", f"{lines:,} × {reason}")  # noqa: RUF001
        for at, (reason, lines) in enumerate(report.not_decisions.items())
    ]
    label = max((len(name) for name, _ in facts), default=0) + len(_GAP)
    lines = []
    for name, fact in facts:
        lines += _wrapped(fact, columns, name.ljust(label), " " * label)
    return [*lines, *_warnings(report.warnings, columns)]


def _warnings(warnings: Sequence[str], columns: int) -> Iterator[str]:
    for warning in warnings[:_MOST_WARNINGS]:
        yield ""
        yield from _wrapped(warning, columns, "! ", "  ")
    rest = len(warnings) - _MOST_WARNINGS
    if rest > 0:
        yield from ("", f"! and {counted(rest, 'more warning')}, in the report")


def _result(result: JobResult, report: AuditReport, columns: int) -> list[str]:
    title = shown(f"{result.job.upper()}: {result.title}")
    lines = [*_wrapped(title, columns), "=" * min(width(title), columns)]
    lines += _wrapped(result.summary, columns)
    if len(report.results) >= _MANY_RESULTS:
        return [*lines, *_in_short(result, report, columns)]
    lines += _warnings(result.warnings, columns)
    if result.figures:
        lines += ["", *_figures(result.figures, columns)]
    for table in result.tables:
        lines += ["", *_table(report.compact(table), columns, _MOST_ROWS)]
    if result.outputs:
        lines += ["", "Written:", *_outputs(result, columns)]
    return lines


def _in_short(result: JobResult, report: AuditReport, columns: int) -> Iterator[str]:
    """The first warnings, and the first rows of the first table, a line each."""
    for warning in result.warnings[:_MOST_WARNINGS_IN_SHORT]:
        lines = _wrapped(warning, columns - 1, "! ", "  ")
        yield from _first(lines, _MOST_WARNING_LINES_IN_SHORT)
    rest = len(result.warnings) - _MOST_WARNINGS_IN_SHORT
    if rest > 0:
        yield f"! and {counted(rest, 'more warning')}, in the report"
    tables = [report.compact(table) for table in result.tables if table.rows]
    if tables:
        more = counted(len(tables) - 1, "more table") if len(tables) > 1 else ""
        yield ""
        yield from _table_in_short(tables[0], columns, more)


def _table_in_short(table: Table, columns: int, more: str) -> Iterator[str]:
    """The first rows, and as many of the first columns as there is room for."""
    rows = table.rows[:_MOST_ROWS_IN_SHORT]
    first = f"{len(rows):,} of {table.total:,}" if len(rows) < table.total else ""
    told = "; ".join(filter(None, (first, more and f"{more} in the report")))
    yield from _wrapped(f"{table.title}{told and f' ({told})'}", columns)
    for count in range(len(table.columns), 0, -1):
        cells = [row[:count] for row in rows]
        grid = _Grid(table.columns[:count], cells, columns, most_lines=1)
        if grid.fits:
            yield from grid.lines()
            return


def _first(lines: Sequence[str], most: int) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"{lines[most - 1]}…"]


def _outputs(result: JobResult, columns: int) -> Iterator[str]:
    outputs = list(result.outputs.items())
    for name, holds in outputs[:_MOST_OUTPUTS]:
        yield from _wrapped(f"{name}  {holds}", columns, "  ", "  ")
    rest = len(outputs) - _MOST_OUTPUTS
    if rest > 0:
        yield f"  and {rest:,} more, which the report lists"


def _figures(figures: Sequence[Figure], columns: int) -> Iterator[str]:
    values = [cell(figure.value) for figure in figures]
    room = min(max(width(value) for value in values), columns // 3)
    indent = " " * (room + 2 * len(_GAP))
    for figure, value in zip(figures, values, strict=True):
        text = f"{figure.label} ({figure.note})" if figure.note else figure.label
        head = _GAP + _aligned(shortened(value, room), room, right=True) + _GAP
        yield from _wrapped(text, columns, head, indent)


def _table(table: Table, columns: int, most: int) -> list[str]:
    rows = table.rows[:most]
    if not rows:
        return _wrapped(f"{table.title}: none", columns)
    grid = _Grid(table.columns, rows, columns)
    if not grid.fits:
        rows = rows[:_MOST_RECORDS]
    rest = f" ({len(rows):,} of {table.total:,})" if len(rows) < table.total else ""
    lines = _wrapped(f"{table.title}{rest}", columns)
    if table.note:
        lines += _wrapped(table.note, columns)
    return [*lines, *(grid.lines() if grid.fits else _records(table.columns, rows, columns))]


def _records(names: Sequence[str], rows: Sequence[Sequence[Cell]], columns: int) -> Iterator[str]:
    """Lines for a table with more columns than there is room for: a paragraph a row."""
    for row in rows:
        parts = [f"{name}: {_plain(value)}" for name, value in zip(names, row, strict=True)]
        yield from _wrapped("; ".join(parts), columns, "- ", "  ")


def _plain(value: Cell) -> str:
    # Texts are escaped when the paragraph is made.
    return value if isinstance(value, str) else cell(value)


class _Grid:
    """A table whose columns are fitted to a width; long texts take several lines."""

    def __init__(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        columns: int,
        most_lines: int = _MOST_LINES,
    ) -> None:
        self._most_lines = most_lines
        self._right = numeric_columns(names, rows)
        self._head = [shown(name) for name in names]
        self._cells = [[cell(value) for value in row] for row in rows]
        natural, least = [], []
        for at, name in enumerate(self._head):
            longest = max(width(row[at]) for row in self._cells)
            narrowest = _NARROWEST
            if most_lines == 1:
                part = min(int(longest * _LEAST_OF_A_LINE), columns // 2 - len(_GAP))
                narrowest = max(_NARROWEST_LINE, part)
            natural.append(min(max(longest, width(name)), columns))
            # A number is never cut, and words of a head only if they are long.
            word = max(width(part) for part in (name or "-").split(" "))
            needed = longest if self._right[at] else min(longest, narrowest)
            least.append(min(max(needed, min(word, narrowest)), natural[at]))
        self._rooms = fitted(natural, least, columns)

    @property
    def fits(self) -> bool:
        """Whether there is room for all columns."""
        return bool(self._rooms)

    def lines(self) -> Iterator[str]:
        """The head, a rule and the rows."""
        yield from self._row(self._head)
        yield from self._row(["-" * room for room in self._rooms])
        for row in self._cells:
            yield from self._row(row)

    def _row(self, cells: Sequence[str]) -> Iterator[str]:
        parts = [
            (broken(text, room, self._most_lines), room, right)
            for text, room, right in zip(cells, self._rooms, self._right, strict=True)
        ]
        for at in range(max(len(part) for part, _, _ in parts)):
            line = "".join(
                _GAP + _aligned(part[at] if at < len(part) else "", room, right=right)
                for part, room, right in parts
            )
            yield line.rstrip()


def fitted(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths that columns get in ``room``, which the gaps before them share.

    The widest give way first, none below its ``least``; nothing is returned if that is too much.
    """
    free = room - len(_GAP) * len(natural)
    if not natural or sum(least) > free:
        return []
    most = max(natural)
    found = list(natural)
    while sum(found) > free:
        most -= 1
        found = [min(size, max(most, low)) for size, low in zip(natural, least, strict=True)]
    return found


def broken(text: str, room: int, most: int) -> list[str]:
    """Return a text as at most ``most`` lines of ``room`` columns.

    They end where a word or a part of a name does, if that is beyond their middle. Of a text that
    is longer the middle is left out.
    """
    lines = _broken(text, room)
    budget = room * most
    while len(lines) > most:
        # Lines that end early leave less than the whole budget.
        text = shortened(text, budget)
        lines = _broken(text, room)
        budget -= 1
    return lines


def _broken(text: str, room: int, ends: str = _PART_ENDS) -> list[str]:
    lines = []
    while width(text) > room:
        end = len(cut(text, room)) or 1
        if text[end] != " ":
            end = _end_of_part(text, end, ends) or end
        lines.append(text[:end].rstrip())
        text = text[end:].lstrip(" ")
    return [*lines, text]


def _end_of_part(text: str, end: int, ends: str) -> int:
    """Where the last part of a name ends before ``end``, if beyond the middle; else 0."""
    return next((at for at in range(end, end // 2, -1) if text[at - 1] in ends), 0)


def _aligned(text: str, room: int, *, right: bool) -> str:
    padding = " " * (room - width(text))
    return padding + text if right else text + padding


def _wrapped(text: str, columns: int, first: str = "", later: str = "") -> list[str]:
    """Return prose as lines, which begin with ``first`` and ``later``, two texts equally long."""
    lines = _broken(shown(text), columns - len(first), " ")
    return [f"{first}{lines[0]}".rstrip(), *(f"{later}{line}" for line in lines[1:])]
