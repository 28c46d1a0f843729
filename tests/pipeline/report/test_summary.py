"""All results as JSON, as docs/audit-analysis.md describes them."""

import json
from dataclasses import replace

from aclbroker.pipeline.interface.result import Figure, JobResult
from aclbroker.pipeline.report.summary import summary_json
from tests.pipeline.report.examples import MARKUP, REPORT


def test_it_has_all_that_the_report_has_in_the_documented_form():
    found = json.loads(summary_json(REPORT))
    assert list(found) == [
        "version", "written", "command", "window", "clusters", "inputs", "quarantined",
        "not_decisions", "warnings", "results", "unanswered", "refused",
    ]  # fmt: skip
    assert (found["version"], found["written"]) == (1, "2026-02-01T09:30:00Z")
    assert found["window"] == {
        "first_day": "2026-01-01", "last_day": "2026-01-30", "events": 1_000_000,
        "allowed": 950_122, "denied": 49_878, "quarantined": 14,
    }  # fmt: skip
    assert found["clusters"] == [
        {
            "name": MARKUP, "events": 1_000_000, "acls": 1, "proposed": 0, "other": None,
            "coverage": None,
        }
    ]  # fmt: skip
    assert found["quarantined"] == {"cut off": 13, "unknown rule": 1}
    assert found["unanswered"] == {"diff": "needs --other"}
    assert found["refused"] == {}
    what_if, matrix = found["results"]
    assert what_if["alarms"] == {"newly-denied": 5811, "newly-allowed": 0}
    assert what_if["figures"][0] == {
        "label": "events newly denied", "value": 5811, "note": "of 950,122"
    }  # fmt: skip
    assert what_if["tables"][0]["rows"][0] == ["User:alice", "READ", 12345, None]
    assert (what_if["tables"][0]["total"], what_if["tables"][0]["source"]) == (812, "what-if/flips")
    assert what_if["outputs"] == [
        {
            "name": "what-if/flips", "what": "every question whose decision changes", "rows": 812,
            "csv": "what-if/flips.csv",
        }
    ]  # fmt: skip
    assert (matrix["job"], matrix["alarms"]) == ("matrix", {})


def test_what_a_job_without_a_result_has_counted_is_there():
    found = json.loads(summary_json(replace(REPORT, refused={"recommend": {"drift": 7}})))
    assert found["refused"] == {"recommend": {"drift": 7}}


def test_what_json_does_not_know_is_null():
    result = JobResult("j", "t", "s", [Figure("a", float("nan")), Figure("b", float("inf"))])
    found = json.loads(summary_json(replace(REPORT, results=[result], window=None)))
    assert [figure["value"] for figure in found["results"][0]["figures"]] == [None, None]
    assert found["window"] is None
