"""The parts that sections of the page are made of: figures, warnings, charts, tables, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from aclbroker.pipeline.interface.result import Cell, Chart, Figure, Table
from aclbroker.pipeline.report import charts
from aclbroker.pipeline.report.content import WrittenTable
from aclbroker.pipeline.report.grids import FIRST_ROWS, content, grid, rows_data
from aclbroker.pipeline.report.markup import Markup, element, joined, name_of
from aclbroker.pipeline.report.words import counted, is_number

_WARNING_SIGN: Final = (
    "M10 3.2 1.9 17a.8.8 0 0 0 .7 1.2h14.8a.8.8 0 0 0 .7-1.2L10 3.2Z",
    "M10 8.4v4M10 15.1v.1",
)


def warning(content: Markup) -> Markup:
    """Return something that must not be overlooked."""
    sign = element(
        "svg",
        *(element("path", d=path) for path in _WARNING_SIGN),
        viewBox="0 0 20 20",
        aria_hidden="true",
    )
    return element("div", sign, content, class_="warning", role="note", aria_label="Warning")


def figures(found: Sequence[Figure], alert: str = "") -> Markup:
    """Return figures as tiles; the one called ``alert`` stands out."""

    def tile(figure: Figure) -> Markup:
        size = "value" if is_number(figure.value) or figure.value is None else "value text"
        return element(
            "div",
            element("dt", figure.label),
            element("dd", content(figure.value), class_=size),
            element("dd", name_of(figure.note), class_="note") if figure.note else "",
            class_="alert" if figure.label == alert else None,
        )

    return element("dl", *(tile(figure) for figure in found), class_="facts")


def chart_card(chart: Chart, key: str) -> Markup:
    """Return a chart with its numbers. ``key`` is unique in the page."""
    head = element(
        "figcaption",
        element("h3", chart.title),
        element("p", name_of(chart.note), class_="note") if chart.note else "",
        charts.legend(chart),
    )
    if not chart.labels or not chart.series:
        nothing = element("p", "There is nothing to draw.", class_="note")
        return element("figure", head, nothing, class_="card")
    rows: list[Sequence[Cell]] = [
        (label, *(values[at] for values in chart.series.values()))
        for at, label in enumerate(chart.labels)
    ]
    first = "day" if chart.kind == "columns" else "name"
    numbers = element(
        "details",
        element("summary", "Numbers"),
        grid((first, *chart.series), rows, f"Numbers: {chart.title}"),
    )
    return element("figure", head, charts.drawn(chart, key), numbers, class_="card")


def table_card(table: Table, written: Mapping[str, WrittenTable] | None = None) -> Markup:
    """Return the first rows of a table, with links to what they are of, if that is ``written``."""
    rows = len(table.rows)
    of = counted(rows, "row") if rows == table.total else f"first {rows:,} of {table.total:,}"
    if not rows:
        of = "none"
    stored = (written or {}).get(table.source)
    every = joined() if stored is None else _source(table.source, stored)
    return element(
        "div",
        element("h3", table.title, " ", element("span", of, class_="of"), every),
        element("p", name_of(table.note), class_="note") if table.note else "",
        grid(table.columns, table.rows, table.title, matrix=table.matrix) if table.rows else "",
        class_="card",
    )


def rows_id(name: str) -> str:
    """Return the id of the card of a whole table."""
    return f"rows-{name.replace('/', '-')}"


def whole_table(name: str, title: str, what: str, written: WrittenTable) -> Markup:
    """Return all rows of a table, or as many as a page can hold, which the page's script shows."""
    data, count = rows_data(written)
    all_of_it = counted(written.total, "row")
    first = min(FIRST_ROWS, count)
    rest = f"first {count:,} of {written.total:,}" if count < written.total else all_of_it
    without = "The rest is in the file." if written.csv else "A script shows the others."
    return element(
        "details",
        element("summary", element("b", title), " ", element("span", rest, class_="of")),
        element("p", name_of(what), " ", *_files_of(name, written), class_="note"),
        element(
            "p", f"The first {first:,} of {written.total:,}. {without}", class_="note scriptless"
        )
        if first < written.total
        else "",
        grid([each.name for each in written.columns], list(written.rows(first)), title),
        data,
        class_="card whole",
        id=rows_id(name),
    )


def _source(name: str, written: WrittenTable) -> Markup:
    """Return where all rows are: below, if there are any, and in files."""
    # A table of all rows of nothing has no card.
    table = element("a", name, href=f"#{rows_id(name)}") if written.count else name_of(name)
    return element("span", " in ", table, ": ", *_files_of(name, written), class_="every")


def _files_of(name: str, written: WrittenTable) -> list[Markup | str]:
    """Return links to the files of a table: the directory of Parquet, and the CSV."""
    parquet = link_to(f"{name}/", "Parquet")
    return [link_to(f"{name}.csv", "CSV"), ", ", parquet] if written.csv else [parquet]


def link_to(file: str, text: str) -> Markup:
    """Return a link to what was written beside the page."""
    return element("a", text, href=f"./{quote(file)}")


def files(title: str, found: Sequence[tuple[Markup, str]]) -> Markup:
    """Return a list of files with what each holds."""
    entries = (
        element("div", element("dt", name), element("dd", name_of(holds))) for name, holds in found
    )
    return element(
        "div", element("h3", title), element("dl", *entries, class_="files"), class_="card"
    )
