"""All results as JSON, for programs; docs/audit-analysis.md describes the form."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from aclbroker.pipeline.analysis.coverage import Coverage
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import Cell, JobResult, Table
from aclbroker.pipeline.report.content import AuditReport, LoggedCluster

VERSION: Final = 1
"""Changes when a key gets another meaning or goes; new keys may come without."""


def summary_json(report: AuditReport) -> str:
    """Return the report as a JSON document of one object."""
    return json.dumps(_summary(report), indent=1, allow_nan=False) + "\n"


def _summary(report: AuditReport) -> dict[str, Any]:
    return {
        "version": VERSION,
        "written": f"{report.written:%Y-%m-%dT%H:%M:%SZ}",
        "command": report.command,
        "window": None if report.window is None else _window(report.window),
        "clusters": [_cluster(each) for each in report.clusters],
        "inputs": [{"place": place, "what": what} for place, what in report.inputs],
        "quarantined": dict(report.quarantined),
        "not_decisions": dict(report.not_decisions),
        "warnings": list(report.warnings),
        "results": [_result(each, report) for each in report.results],
        "unanswered": dict(report.unanswered),
        "refused": {job: dict(alarms) for job, alarms in report.refused.items()},
    }


def _window(window: Window) -> dict[str, Any]:
    return {
        "first_day": str(window.first_day),
        "last_day": str(window.last_day),
        "events": window.events,
        "allowed": window.allowed,
        "denied": window.denied,
        "quarantined": window.quarantined,
    }


def _cluster(cluster: LoggedCluster) -> dict[str, Any]:
    sets = {"acls": cluster.current, "proposed": cluster.proposed, "other": cluster.other}
    counts = {name: None if each is None else len(each.acls) for name, each in sets.items()}
    coverage = None if cluster.coverage is None else _coverage(cluster.coverage)
    return {"name": cluster.name, "events": cluster.events, **counts, "coverage": coverage}


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "unit": "day" if coverage.is_by_day else "hour",
        "logged": coverage.hours,
        "covered": coverage.covered,
        "brokers": [
            {
                "broker": each.broker,
                "logged": each.hours,
                "silent": each.silent,
                "allowed": [[_time(at) for at in times] for times in each.stretches[:_MOST]],
            }
            for each in coverage.brokers[:_MOST]
        ],
    }


_MOST: Final = 100
"""The most brokers of a cluster, and the most stretches with allowed events of a broker."""


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _result(result: JobResult, report: AuditReport) -> dict[str, Any]:
    return {
        "job": result.job,
        "title": result.title,
        "summary": result.summary,
        "alarms": dict(result.alarms),
        "left_out": dict(result.left_out),
        "figures": [
            {"label": each.label, "value": _value(each.value), "note": each.note}
            for each in result.figures
        ],
        "tables": [_table(each) for each in result.tables],
        "warnings": list(result.warnings),
        "outputs": [_output(name, what, report) for name, what in result.outputs.items()],
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "note": table.note,
        "columns": list(table.columns),
        "rows": [_row(each) for each in table.rows],
        "total": table.total,
        "source": table.source or None,
    }


def _output(name: str, what: str, report: AuditReport) -> dict[str, Any]:
    written = report.stored.get(name)
    rows = None if written is None else written.total
    file = None if written is None or written.csv is None else f"{name}.csv"
    return {"name": name, "what": what, "rows": rows, "csv": file}


def _row(row: Sequence[Cell]) -> list[Cell]:
    return [_value(each) for each in row]


def _value(value: Cell) -> Cell:
    # JSON has no NaN, and no infinity.
    return None if isinstance(value, float) and not math.isfinite(value) else value
