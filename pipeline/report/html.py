"""One HTML file that needs nothing else: no script, no font, no picture from anywhere.

Names in it come from clients. `pipeline.report.markup` escapes them; and the page forbids browsers
to run or load anything, in case the escaping has a hole.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources

from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.report import charts
from aclbroker.pipeline.report.content import AuditReport
from aclbroker.pipeline.report.markup import (
    Markup,
    breakable,
    document,
    element,
    joined,
    name_of,
    style,
)
from aclbroker.pipeline.report.words import (
    cell,
    counted,
    days,
    is_number,
    numeric_columns,
)

_LONGEST_NAME = 240
"""How many characters of a name are shown: a client may use a name of 32 thousand."""

_SHORT = 26
"""How many characters of a cell stay on one line."""

_WARNING_SIGN = (
    "M10 3.2 1.9 17a.8.8 0 0 0 .7 1.2h14.8a.8.8 0 0 0 .7-1.2L10 3.2Z",
    "M10 8.4v4M10 15.1v.1",
)
_PROSE = ("note", "reason", "why", "meaning", "proof", "finding", "advice", "what")
"""Columns that hold sentences; other texts are names, in a font that tells l from 1."""


def page(report: AuditReport) -> str:
    """Return the report as an HTML document."""
    css = (
        resources.files("aclbroker.pipeline.report")
        .joinpath("style.css")
        .read_text(encoding="utf-8")
    )
    title = _title(report)
    return document(
        element(
            "html",
            element(
                "head",
                element("meta", charset="utf-8"),
                element("meta", http_equiv="Content-Security-Policy", content=_content_policy(css)),
                element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                element("meta", name="referrer", content="no-referrer"),
                element("title", title),
                style(css),
            ),
            element(
                "body",
                element("a", "Skip to the answers", href="#answers", class_="skip"),
                element(
                    "div",
                    _header(report, title),
                    _contents(report),
                    element(
                        "main",
                        _overview(report),
                        *(_section(result, report) for result in report.results),
                        _about(report),
                    ),
                    class_="page",
                ),
            ),
            lang="en",
        )
    )


def _content_policy(css: str) -> str:
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _title(report: AuditReport) -> str:
    if len(report.results) == 1 and not report.unanswered:
        return report.results[0].title
    return "Kafka access analysis"


def _header(report: AuditReport, title: str) -> Markup:
    names = ", ".join(cluster.name for cluster in report.clusters)
    window = f"{days(report.window)}, " if report.window else ""
    about = joined(
        *(["Cluster " if len(report.clusters) == 1 else "Clusters ", name_of(names), " · "])
        if names
        else "",
        f"{window}written {report.written:%Y-%m-%d %H:%M} UTC",
    )
    return element(
        "header",
        element("p", "aclbroker audit", class_="product"),
        element("h1", title),
        element("p", about, class_="when"),
    )


def _contents(report: AuditReport) -> Markup:
    def entry(target: str, title: str, *, marked: bool = False) -> Markup:
        mark = element("span", " !", class_="mark", title="with a warning") if marked else ""
        return element("li", element("a", title, mark, href=f"#{target}"))

    return element(
        "nav",
        element("h2", "Contents"),
        element(
            "ol",
            entry("answers", "Answers"),
            *(
                entry(_id(result), result.title, marked=bool(result.warnings))
                for result in report.results
            ),
            entry("about", "About this report"),
        ),
        aria_label="Contents",
    )


def _id(result: JobResult) -> str:
    return f"job-{result.job}"


def _overview(report: AuditReport) -> Markup:
    answers = [
        element(
            "li",
            element("a", result.title, href=f"#{_id(result)}"),
            element("p", name_of(result.summary)),
        )
        for result in report.results
    ]
    answers += [
        element("li", element("b", job), element("p", f"Not answered: {why}"), class_="none")
        for job, why in report.unanswered.items()
    ]
    return element(
        "section",
        _window(report),
        _all_warnings(report),
        element("h2", "Answers"),
        element("ul", *answers, class_="answers"),
        id="answers",
    )


def _window(report: AuditReport) -> Markup:
    window = report.window
    if window is None:
        return joined()
    span = (window.last_day - window.first_day).days + 1
    acls = [len(each.current.acls) for each in report.clusters if each.current is not None]
    proposed = [len(each.proposed.acls) for each in report.clusters if each.proposed is not None]
    figures = [
        Figure("in the log", counted(span, "day"), f"{window.first_day} to {window.last_day}"),
        Figure("events", window.events, "decisions of the authorizer"),
        Figure("allowed", window.allowed),
        Figure("denied", window.denied),
        Figure("quarantined", window.quarantined, "lines that are no events"),
    ]
    if acls:
        note = f"{sum(proposed):,} proposed" if proposed else "in force now"
        figures.append(Figure("ACLs", sum(acls), note))
    return _figures(figures, alert="quarantined" if window.quarantined else "")


def _all_warnings(report: AuditReport) -> Markup:
    lines = [element("li", name_of(warning)) for warning in report.warnings]
    lines += [
        element("li", element("a", result.title, href=f"#{_id(result)}"), ": ", name_of(warning))
        for result in report.results
        for warning in result.warnings
    ]
    if report.quarantined:
        total = sum(report.quarantined.values())
        lines.append(
            element(
                "li",
                element("a", "Quarantine", href="#quarantine"),
                f": {counted(total, 'line')} of the input "
                f"{'is' if total == 1 else 'are'} no events, and in no count.",
            )
        )
    return _warning(element("ul", *lines)) if lines else joined()


def _warning(content: Markup) -> Markup:
    sign = element(
        "svg",
        *(element("path", d=path) for path in _WARNING_SIGN),
        viewBox="0 0 20 20",
        aria_hidden="true",
    )
    return element("div", sign, content, class_="warning", role="note", aria_label="Warning")


def _section(result: JobResult, report: AuditReport) -> Markup:
    return element(
        "section",
        element("p", result.job, class_="job"),
        element("h2", result.title),
        element("p", name_of(result.summary), class_="lead"),
        *(_warning(element("p", name_of(warning))) for warning in result.warnings),
        _figures(result.figures) if result.figures else "",
        *(_chart(chart, f"{result.job}-{at}") for at, chart in enumerate(result.charts, start=1)),
        *(_table(report.compact(table)) for table in result.tables),
        _files("Written", list(result.outputs.items())) if result.outputs else "",
        id=_id(result),
    )


def _figures(figures: Sequence[Figure], alert: str = "") -> Markup:
    def tile(figure: Figure) -> Markup:
        size = "value" if is_number(figure.value) or figure.value is None else "value text"
        return element(
            "div",
            element("dt", figure.label),
            element("dd", _content(figure.value), class_=size),
            element("dd", name_of(figure.note), class_="note") if figure.note else "",
            class_="alert" if figure.label == alert else None,
        )

    return element("dl", *(tile(figure) for figure in figures), class_="facts")


def _content(value: Cell) -> Markup:
    return name_of(value, _LONGEST_NAME) if isinstance(value, str) else joined(cell(value))


def _chart(chart: Chart, key: str) -> Markup:
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
    first = "day" if chart.kind == "columns" else ""
    numbers = element(
        "details",
        element("summary", "Numbers"),
        _grid((first, *chart.series), rows, f"Numbers: {chart.title}"),
    )
    return element("figure", head, charts.drawn(chart, key), numbers, class_="card")


def _table(table: Table) -> Markup:
    rows = len(table.rows)
    of = counted(rows, "row") if rows == table.total else f"first {rows:,} of {table.total:,}"
    if not rows:
        of = "none"
    return element(
        "div",
        element("h3", table.title, " ", element("span", of, class_="of")),
        element("p", name_of(table.note), class_="note") if table.note else "",
        _grid(table.columns, table.rows, table.title) if table.rows else "",
        class_="card",
    )


def _grid(names: Sequence[str], rows: Sequence[Sequence[Cell]], title: str) -> Markup:
    kinds = [
        "number" if is_numeric else "" if name.lower() in _PROSE else "name"
        for name, is_numeric in zip(names, numeric_columns(names, rows), strict=True)
    ]

    def cells(row: Sequence[Cell]) -> Iterator[Markup]:
        for at, (value, kind) in enumerate(zip(row, kinds, strict=True)):
            look = "nothing" if value is None else "short" if len(cell(value)) <= _SHORT else ""
            yield element(
                "td" if at else "th",
                _content(value),
                class_=f"{kind} {look}".strip() or None,
                scope=None if at else "row",
            )

    head = (
        element("th", breakable(name), scope="col", class_="number" if kind == "number" else None)
        for name, kind in zip(names, kinds, strict=True)
    )
    grid = element(
        "table",
        element("thead", element("tr", *head)),
        element("tbody", *(element("tr", *cells(row)) for row in rows)),
    )
    # It must take the focus to be scrolled with the keyboard.
    return element("div", grid, class_="scroll", role="region", aria_label=title, tabindex="0")


def _files(title: str, files: Sequence[tuple[str, str]]) -> Markup:
    entries = (
        element("div", element("dt", name_of(name)), element("dd", name_of(holds)))
        for name, holds in files
    )
    return element(
        "div", element("h3", title), element("dl", *entries, class_="files"), class_="card"
    )


def _about(report: AuditReport) -> Markup:
    parts = [element("h2", "About this report")]
    if report.quarantined:
        rows = list(report.quarantined.items())
        table = Table(
            "Quarantined lines",
            ("reason", "lines"),
            rows,
            len(rows),
            "Lines that are not unmistakably a record of the authorizer. A client can make Kafka "
            "write such lines. They are counted nowhere else; the job ingest keeps them.",
        )
        parts.append(element("div", _table(table), id="quarantine"))
    if report.clusters:
        parts.append(_table(_clusters(report)))
    if report.inputs:
        parts.append(_files("Read", report.inputs))
    if report.command:
        command = element("pre", element("code", report.command))
        parts.append(element("div", element("h3", "Command"), command, class_="card"))
    if report.output:
        parts.append(
            element("p", "All tables lie below ", name_of(report.output), ".", class_="note")
        )
    return element("section", *parts, id="about")


def _clusters(report: AuditReport) -> Table:
    rows = []
    for cluster in report.clusters:
        rules = cluster.current
        rows.append(
            (
                cluster.name,
                cluster.events,
                *(
                    None if each is None else len(each.acls)
                    for each in (rules, cluster.proposed, cluster.other)
                ),
                _listed(rules.super_users) if rules else None,
                _listed(rules.broker_users.principals) if rules else None,
                rules.allow_everyone_if_no_acl_found if rules else None,
            )
        )
    names = ("cluster", "events", "ACLs", "proposed", "other", "super users", "broker users")
    return Table("Clusters", (*names, "open without ACLs"), rows, len(rows))


def _listed(principals: frozenset[str]) -> str | None:
    return ", ".join(sorted(principals)) or None
