"""Findings as SARIF."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from aclbroker.pipeline.report.content import Source, WrittenTable
from aclbroker.pipeline.report.findings import MOST_RESULTS, RULES, findings_json
from tests.pipeline.report.examples import REPORT, written

ACL = ("cluster", "acl_id", "resource_type", "resource_name", "pattern_type", "principal", "host",
       "operation", "permission")  # fmt: skip
OPENED = ("cluster", "change", "principals", "is_everyone_else", "hosts", "operations",
          "resource_type", "pattern_type", "name", "exceptions", "example")  # fmt: skip
READS = ("c", "1", "TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")
WRITES = ("c", "2", "TOPIC", "a b", "PREFIXED", "User:alice", "10.0.0.1", "WRITE", "DENY")


def run_of(**tables: WrittenTable) -> dict[str, Any]:
    """The run of a SARIF log of some tables, named as in ``what_if__flips``."""
    named = {name.replace("__", "/").replace("_", "-"): each for name, each in tables.items()}
    found = json.loads(findings_json(replace(REPORT, stored=named)))
    assert found["version"] == "2.1.0"
    (run,) = found["runs"]
    run_found: dict[str, Any] = run
    return run_found


def test_each_flip_is_a_result_beside_the_proposed_file():
    run = run_of(what_if__flips=REPORT.stored["what-if/flips"])
    results = run["results"]
    assert Counter(each["ruleId"] for each in results) == {"newly-denied": 85, "newly-allowed": 43}
    assert {each["ruleId"]: each["level"] for each in results} == {
        "newly-denied": "error", "newly-allowed": "warning"
    }  # fmt: skip
    last = results[-1]
    assert last["message"]["text"].endswith(
        ": User:u119 READ on TOPIC User:u119: newly denied, 873 events (without ALLOW READ)"
    )
    places = {
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in results
    }
    assert places == {"policies/new.yaml"}
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)
    assert run["properties"] == {"first_results_of": {"what-if/flips": 812}}


def test_a_finding_is_known_again_when_its_counts_have_changed():
    columns = ("cluster", "principal", "operation", "resource_type", "resource_name", "events")

    def prints(*events: int) -> list[str]:
        rows = [("c", f"User:{at}", "READ", "TOPIC", "t", n) for at, n in enumerate(events)]
        run = run_of(denials__denied=written(columns, rows))
        return [each["partialFingerprints"]["finding/v1"] for each in run["results"]]

    assert prints(1, 2) == prints(5, 6)
    assert len(set(prints(1, 2))) == 2


def test_acls_that_can_go_are_notes_beside_the_file_of_their_cluster():
    table = written((*ACL, "use", "removable"), [
        (*READS, "unmatched", True), (*WRITES, "needed", False)
    ])  # fmt: skip
    sources = [Source("--acls", "eu.yaml", "eu"), Source("--acls", "my acls.yaml", "c")]
    report = replace(REPORT, stored={"unused/acls": table}, sources=sources)
    (result,) = json.loads(findings_json(report))["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("unused", "note")
    assert result["message"]["text"] == (
        "c: ALLOW READ on TOPIC LITERAL orders to User:alice from *: can go (unmatched)"
    )
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "my%20acls.yaml"}


def test_what_covers_what_is_denied_and_what_is_opened_are_results_too():
    run = run_of(
        redundant__covered=written((*ACL, "covered_by"), [(*WRITES, "DENY x")]),
        recommend__opened=written(OPENED, [
            ("c", "opened", "User:a; User:b", False, "*", "READ; WRITE", "TOPIC", "PREFIXED", "a",
             "ab*", "User:a READ TOPIC ac"),
            ("c", "closed", "User:b", True, "10.0.0.1", "READ", "TOPIC", "LITERAL", "x", None,
             None),
        ]),
        matrix__use=written(("principal",), [("User:a",)]),
    )  # fmt: skip
    found = [(each["ruleId"], each["level"], each["message"]["text"]) for each in run["results"]]
    assert found == [
        (
            "redundant",
            "note",
            'c: DENY WRITE on TOPIC PREFIXED "a b" to User:alice from 10.0.0.1: covered by DENY x',
        ),
        (
            "opened",
            "error",
            "c: opened: User:a; User:b: READ; WRITE on TOPIC PREFIXED a but ab* from *, "
            "for example User:a READ TOPIC ac",
        ),
        (
            "closed",
            "note",
            "c: closed: everyone but User:b: READ on TOPIC LITERAL x from 10.0.0.1",
        ),
    ]
    assert run["properties"] == {"first_results_of": {}}


def test_a_table_with_very_many_findings_has_its_first_ones():
    columns = ("cluster", "principal", "operation", "resource_type", "resource_name", "events")
    rows = [("c", "User:a", "READ", "TOPIC", "t", at) for at in range(MOST_RESULTS + 1)]
    run = run_of(denials__denied=written(columns, rows))
    assert len(run["results"]) == MOST_RESULTS
    assert run["properties"] == {"first_results_of": {"denials/denied": MOST_RESULTS + 1}}
