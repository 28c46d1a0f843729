"""Numbers that a CI run fails on."""

import argparse
from datetime import UTC, datetime

import pytest

from aclbroker.pipeline.command.fail_on import Bound, bounds, impossible, judged
from aclbroker.pipeline.interface.alarms import ALARMS
from aclbroker.pipeline.interface.result import JobResult
from aclbroker.pipeline.jobs import JOBS
from aclbroker.pipeline.report.content import AuditReport


def counted(**alarms: int) -> dict[str, int]:
    return {name.replace("_", "-"): count for name, count in alarms.items()}


def test_several_numbers_are_read_with_the_most_that_is_accepted_of_each():
    assert bounds("newly-denied") == [Bound("newly-denied", 0)]
    assert bounds("unused=20, drift=0") == [Bound("unused", 20), Bound("drift", 0)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("newly", "'newly' is none of newly-denied, newly-allowed, opened, unused, drift"),
        ("unused,", "'' is none of"),
        ("unused=-1", "'-1' is no whole number"),
        ("unused=", "'' is no whole number"),
        ("unused=1%", "'1%' is no whole number"),
    ],
)
def test_a_number_that_nobody_counts_is_refused_with_what_there_is(text: str, said: str):
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        bounds(text)


def test_every_number_is_one_that_a_job_counts():
    assert {job for alarm in ALARMS.values() for job in alarm.jobs} <= set(JOBS)


def test_what_no_job_that_runs_can_count_is_refused_before_it_runs():
    assert impossible([Bound("newly-denied")], ["what-if"]) is None
    assert impossible([Bound("newly-denied"), Bound("unused")], ["what-if", "unused"]) is None
    assert impossible([Bound("unused")], ["matrix", "what-if"]) == (
        "--fail-on unused: the job unused looks for it, and none of these would run"
    )
    assert impossible([Bound("newly-denied")], ["unused"]) == (
        "--fail-on newly-denied: the jobs what-if and diff look for it, and none of these would run"
    )
    assert impossible([Bound("drift"), Bound("drift", 5)], ["what-if"]) == (
        "--fail-on drift is given twice"
    )


def test_a_run_fails_on_more_than_is_accepted_in_any_result():
    results = {"what-if": counted(newly_denied=5, drift=7), "diff": counted(newly_denied=0)}
    assert judged([Bound("newly-denied", 5), Bound("drift", 7)], results) == ([], [])
    found = judged([Bound("newly-denied", 4), Bound("drift")], results)
    assert found.exceeded == [
        "failed on newly-denied: what-if counts 5 events that the other rules deny and those in "
        "force allow, 4 at most are accepted",
        "failed on drift: what-if counts 7 events that the log decides otherwise than the rules in "
        "force",
    ]


def test_a_job_that_refused_has_counted_what_it_refused_for():
    report = AuditReport(
        [JobResult("matrix", "title", "summary")],
        datetime(2026, 1, 1, tzinfo=UTC),
        unanswered={"recommend": "too much drift"},
        refused={"recommend": counted(drift=7)},
    )
    assert judged([Bound("drift", 7)], report.alarms) == ([], [])
    (exceeded,) = judged([Bound("drift")], report.alarms).exceeded
    assert exceeded.startswith("failed on drift: recommend counts 7 events that the log decides")


def test_what_nobody_counted_is_not_taken_for_nothing():
    found = judged([Bound("opened", 9)], {"unused": counted(unused=3)})
    assert found.exceeded == []
    assert found.not_counted == ["--fail-on opened: no job that ran has counted it"]
