"""From options to answers: what is read, what is written, and what is said of it."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aclbroker.terminal import is_plain
from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.command.run import ALARMED, DONE, FAILED, INTERRUPTED, REFUSED
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest.json_line import JsonReason
from aclbroker.pipeline.ingest.kafka_line import KafkaReason
from aclbroker.pipeline.ingest.sources import IngestError
from aclbroker.pipeline.jobs import JOBS
from aclbroker.pipeline.report.content import AuditReport
from tests.pipeline.json_lines import record
from tests.pipeline.small_log import CLUSTER, SmallLog, small_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Ask = Callable[..., AuditReport]


@pytest.fixture
def files(tmp_path: Path) -> SmallLog:
    return small_log(tmp_path)


@pytest.fixture
def ask(spark: "SparkSession", tmp_path: Path) -> Ask:
    """Runs a job with arguments as a user gives them; the output is tmp_path/out."""

    def run(*words: str | Path, told: io.StringIO | None = None) -> AuditReport:
        import argparse

        parser = argparse.ArgumentParser()
        add_jobs(parser)
        arguments = [*map(str, words), "--output", str(tmp_path / "out")]
        options = audit_options(parser.parse_args(arguments), arguments)
        progress = Progress(told or io.StringIO())
        return answered(spark, options, read_rules(options, None), progress)

    return run


def test_ingest_writes_tables_that_all_jobs_read_instead_of_the_log(
    ask: Ask, files: SmallLog, tmp_path: Path
):
    told = io.StringIO()
    report = ask("ingest", "--input", files.log, told=told)
    assert report.window is not None
    assert (report.window.events, report.window.allowed, report.window.denied) == (12, 9, 3)
    assert report.quarantined == {JsonReason.JSON.value: 1}
    assert [(each.name, each.events) for each in report.clusters] == [(CLUSTER, 12)]
    assert "batch 0: 13 lines" in told.getvalue()
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} >= {"usage_daily", "quarantine", "ingest.html"}
    page = (out / "ingest.html").read_text()
    assert "12" in page
    assert "\u202e" not in page
    again = ask("matrix", "--input", out, "--days", "2026-01-02..2026-01-31")
    assert again.window is not None
    assert (str(again.window.first_day), again.window.events) == ("2026-01-02", 7)


def test_ingest_goes_on_with_a_log_that_is_empty_since_it_was_rotated(
    ask: Ask, files: SmallLog
) -> None:
    log = files.log / "audit-1.jsonl"
    ask("ingest", "--input", log)
    with log.open("a") as file:
        file.write(log.read_text().partition("\n")[0] + "\n")
    log.rename(files.log / "audit-1.jsonl.1")
    log.write_bytes(b"")
    report = ask("ingest", "--input", log)
    assert report.window is not None
    assert report.window.events == 8


def test_a_file_of_which_no_line_is_an_event_is_named(ask: Ask, files: SmallLog) -> None:
    (files.log / "odd.log").write_text("2026-01-01: Principal = User:x may not\n" * 3)
    for job in ("matrix", "ingest"):
        report = ask(job, "--input", files.log)
        assert report.is_unread
        assert "odd.log (3: does not begin as a record of the authorizer)" in report.warnings[0]
    assert not ask("ingest", "--input", files.log).is_unread


def test_a_log_of_another_logger_beside_it_is_left_out_and_named(ask: Ask, files: SmallLog) -> None:
    (files.log / "server.log").write_text("[2026-01-01 00:00:00,000] INFO started (x)\n" * 3)
    for job in ("matrix", "ingest"):
        report = ask(job, "--input", files.log)
        assert not report.is_unread
        assert report.quarantined == {JsonReason.JSON.value: 1}
        assert report.not_decisions == {KafkaReason.OTHER.value: 3}
        (warning,) = report.warnings
        assert warning.startswith("No line of these files is of an authorizer; they were left out")
        assert "server.log" in warning


def test_copies_of_a_log_count_once_and_are_named(ask: Ask, files: SmallLog) -> None:
    log = files.log / "audit-1.jsonl"
    data = log.read_bytes()
    (files.log / "audit-1.jsonl.1").write_bytes(data[: data.index(b"\n") + 1])
    (files.log / "copy.jsonl.gz").write_bytes(gzip.compress(data))
    (files.log / "_copy.jsonl").write_bytes(data)
    (files.log / ".hidden.jsonl").write_bytes(data)
    report = ask("matrix", "--input", files.log)
    assert report.window is not None
    assert report.window.events == 12
    assert report.warnings == [
        f"{files.log}/.hidden.jsonl is hidden by its name, and was left out.",
        f"{files.log}/_copy.jsonl is hidden by its name, and was left out.",
        f"{files.log}/copy.jsonl.gz is a copy of {log}, and counts once.",
        f"{files.log}/audit-1.jsonl.1 is a copy of {log}, and counts once.",
    ]


def test_all_runs_every_job_that_the_files_allow_and_says_why_not_of_others(
    ask: Ask, files: SmallLog, tmp_path: Path
):
    told = io.StringIO()
    report = ask(
        "all", "--input", files.log, "--acls", files.acls, "--proposed", files.proposed,
        "--acls", f"elsewhere={files.acls}", "--super-user", "elsewhere=User:root", told=told,
    )  # fmt: skip
    assert report.warnings == [
        "The log holds nothing of cluster elsewhere: what was given for it is left out."
    ]
    assert {each.job for each in report.results} | set(report.unanswered) == (
        set(JOBS) - {"ingest"}
    )
    assert report.unanswered["diff"] == "it needs --other"
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(f'id="job-{each.job}"' in page for each in report.results)
    assert "User:bob\\u202e\\n&lt;b&gt;" in page.replace('<span class="esc">', "").replace(
        "</span>", ""
    )
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [each["job"] for each in found["results"]] == [each.job for each in report.results]
    tables = {out["name"]: out for each in found["results"] for out in each["outputs"]}
    assert (tables["what-if/flips"]["rows"], tables["what-if/flips"]["csv"]) == (
        1, "what-if/flips.csv"
    )  # fmt: skip
    assert tables["matrix/decisions"]["csv"] is None
    sarif = json.loads((tmp_path / "out" / "findings.sarif").read_text())
    rules = {each["ruleId"] for each in sarif["runs"][0]["results"]}
    assert rules >= {"newly-denied", "denied"}
    csv = (tmp_path / "out" / "matrix" / "use.csv").read_text()
    assert csv.count("\n") == 1 + tables["matrix/use"]["rows"]
    assert "bob\\u202e\\n<b>" in csv
    assert "log: " in told.getvalue()
    assert "13 lines, " in told.getvalue()


def test_inputs_that_do_not_fit_are_refused_with_what_there_is(
    ask: Ask, files: SmallLog, tmp_path: Path
):
    with pytest.raises(InputError, match=f"is of cluster x, .* the log is of {CLUSTER}"):
        ask("redundant", "--input", files.log, "--acls", f"x={files.acls}")
    hostile = tmp_path / "hostile.log"
    hostile.write_text(f"{record(cluster_id=chr(27) + '[2J' + chr(10) + 'forged')}\n")
    with pytest.raises(InputError) as refused:
        ask("redundant", "--input", hostile, "--acls", f"x={files.acls}")
    assert is_plain(str(refused.value))
    assert r"the log is of \x1b[2J\nforged: write" in str(refused.value)
    with pytest.raises(InputError, match=r"holds no events in these days, and 1 line.*JSON L"):
        ask("matrix", "--input", files.log, "--until", "2025-12-31")
    with pytest.raises(InputError, match=r"--output .* lies within --input"):
        ask("matrix", "--input", tmp_path)
    with pytest.raises(IngestError, match="cannot be read"):
        ask("matrix", "--input", tmp_path / "nothing")


def test_the_exit_statuses_are_those_of_other_commands_and_two_of_its_own():
    assert (DONE, REFUSED, FAILED) == (0, 1, 2)
    assert (ALARMED, INTERRUPTED) == (3, 130)
