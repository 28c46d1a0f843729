"""One HTML file that needs nothing else: no font, no picture, no script from anywhere.

Names in it come from clients. `pipeline.report.markup` escapes them; and the page forbids browsers
to load anything, and to run anything but the one script that comes with this program, in case the
escaping has a hole. The script makes no markup of texts.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Final

from aclbroker.pipeline.interface.result import Figure, JobResult, Table
from aclbroker.pipeline.report.content import AuditReport
from aclbroker.pipeline.report.markup import (
    Markup,
    document,
    element,
    joined,
    name_of,
    script,
    style,
)
from aclbroker.pipeline.report.parts import (
    chart_card,
    figures,
    files,
    link_to,
    table_card,
    warning,
    whole_table,
)
from aclbroker.pipeline.report.risks import Risk, as_table, risks, risky_acls
from aclbroker.pipeline.report.words import counted, days, number

_LEVELS: Final = {"high": "look", "check": "check", "none": "fine"}
"""What the levels of risks are called."""

_MOST_CLUSTERS: Final = 5
"""How many the head names; below they are all listed."""


def page(report: AuditReport) -> str:
    """Return the report as an HTML document."""
    css, code = _resource("style.css"), _resource("page.js")
    title = _title(report)
    risk = _risk(report)
    return document(
        element(
            "html",
            element(
                "head",
                element("meta", charset="utf-8"),
                element(
                    "meta",
                    http_equiv="Content-Security-Policy",
                    content=_content_policy(css, code),
                ),
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
                    _contents(report, has_risk=bool(risk)),
                    element(
                        "main",
                        risk,
                        _overview(report),
                        *(_section(result, report) for result in report.results),
                        _about(report),
                    ),
                    class_="page",
                ),
                script(code),
            ),
            lang="en",
        )
    )


def _resource(name: str) -> str:
    place = resources.files("aclbroker.pipeline.report")
    return place.joinpath(name).read_text(encoding="utf-8")


def _content_policy(css: str, code: str) -> str:
    def source(content: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {source(css)}; script-src {source(code)}; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _title(report: AuditReport) -> str:
    if len(report.results) == 1 and not report.unanswered:
        return report.results[0].title
    return "Kafka access analysis"


def _header(report: AuditReport, title: str) -> Markup:
    names = ", ".join(cluster.name for cluster in report.clusters[:_MOST_CLUSTERS])
    if len(report.clusters) > _MOST_CLUSTERS:
        names += f" and {len(report.clusters) - _MOST_CLUSTERS:,} more"
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


def _contents(report: AuditReport, *, has_risk: bool) -> Markup:
    def entry(target: str, title: str, *, marked: bool = False) -> Markup:
        mark = element("span", " !", class_="mark", title="with a warning") if marked else ""
        return element("li", element("a", title, mark, href=f"#{target}"))

    return element(
        "nav",
        element("h2", "Contents"),
        element(
            "ol",
            entry("risk", "Risk") if has_risk else "",
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


def _risk(report: AuditReport) -> Markup:
    acls = risky_acls(report)
    found = risks(report, acls)
    if not found:
        return joined()
    listed = as_table(acls)
    what = "What a proposal changes comes first, and then what gives most."
    return element(
        "section",
        element("h2", "Risk"),
        element("ul", *(_risk_line(*each) for each in _alike(found)), class_="risks"),
        whole_table("risk", "ACLs to look at", what, listed) if acls else "",
        id="risk",
    )


def _alike(found: Sequence[Risk]) -> list[tuple[Risk, list[str]]]:
    """Return the risks with their jobs; one that several looked for and did not find is one."""
    merged: dict[Risk, tuple[Risk, list[str]]] = {}
    for each in found:
        key = each if each.number else each._replace(job=None)
        _, jobs = merged.setdefault(key, (each, []))
        if each.job is not None:
            jobs.append(each.job)
    return list(merged.values())


def _risk_line(risk: Risk, jobs: Sequence[str]) -> Markup:
    why: list[Markup | str] = [risk.why]
    for at, job in enumerate(jobs):
        why += [", " if at else " · " if risk.why else "", element("a", job, href=f"#job-{job}")]
    return element(
        "li",
        element("span", _LEVELS[risk.level], class_="level"),
        element("b", number(risk.number), class_="value"),
        element("div", element("b", name_of(risk.what)), element("p", element("span", *why))),
        class_=risk.level,
    )


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
    found = [
        Figure("in the log", counted(span, "day"), f"{window.first_day} to {window.last_day}"),
        Figure("events", window.events, "decisions of the authorizer"),
        Figure("allowed", window.allowed),
        Figure("denied", window.denied),
        Figure("quarantined", window.quarantined, "lines that are no events"),
    ]
    if report.not_decisions:
        lines = sum(report.not_decisions.values())
        found.append(Figure("not decisions", lines, "lines of other loggers, in no count"))
    if acls:
        note = f"{sum(proposed):,} proposed" if proposed else "in force now"
        found.append(Figure("ACLs", sum(acls), note))
    return figures(found, alert="quarantined" if window.quarantined else "")


def _all_warnings(report: AuditReport) -> Markup:
    lines = [element("li", name_of(each)) for each in report.warnings]
    lines += [
        element("li", element("a", result.title, href=f"#{_id(result)}"), ": ", name_of(each))
        for result in report.results
        for each in result.warnings
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
    return warning(element("ul", *lines)) if lines else joined()


def _section(result: JobResult, report: AuditReport) -> Markup:
    written = {name: report.stored[name] for name in result.outputs if name in report.stored}
    return element(
        "section",
        element("p", result.job, class_="job"),
        element("h2", result.title),
        element("p", name_of(result.summary), class_="lead"),
        *(warning(element("p", name_of(each))) for each in result.warnings),
        figures(result.figures) if result.figures else "",
        *(
            chart_card(chart, f"{result.job}-{at}")
            for at, chart in enumerate(result.charts, start=1)
        ),
        *(table_card(report.compact(table), written) for table in result.tables),
        *(
            whole_table(name, name, f"All rows: {result.outputs[name]}.", report.for_people(table))
            for name, table in written.items()
            if table.count
        ),
        files("Written", [(link_to(name, name), what) for name, what in result.outputs.items()])
        if result.outputs
        else "",
        id=_id(result),
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
            "write such lines, so they count for nothing else. The job ingest keeps each of them.",
        )
        parts.append(element("div", table_card(table), id="quarantine"))
    if report.clusters:
        parts.append(table_card(_clusters(report)))
    if report.inputs:
        parts.append(files("Read", [(name_of(place), what) for place, what in report.inputs]))
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


def _listed(principals: Sequence[str] | frozenset[str]) -> str | None:
    return ", ".join(sorted(principals)) or None
