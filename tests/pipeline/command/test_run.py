"""The command as a process: its exit status, and that it is quiet when it is ended or not read."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import toolchain
from tests.support.process import wait_for

toolchain.require_spark()

from aclbroker.pipeline.command.engine import Engine
from tests.pipeline.small_log import SmallLog, small_log

PATIENCE = 600.0

pytestmark = [pytest.mark.apart, pytest.mark.timeout(2 * PATIENCE)]


@pytest.fixture
def files(tmp_path: Path) -> SmallLog:
    return small_log(tmp_path)


def started(files: SmallLog, directory: Path, *words: str) -> "subprocess.Popen[bytes]":
    """The command, whose output goes to ``directory``; what it tells, to the files there."""
    command = [
        *(sys.executable, "-m", "aclbroker", "audit", "what-if", "--input", str(files.log)),
        *("--acls", str(files.acls), "--output", str(directory / "out"), *words),
    ]
    with (directory / "errors").open("wb") as errors:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, process_group=0, env=os.environ
        )


@pytest.mark.parametrize(
    "engine", [Engine.AUTO, Engine.LOCAL, pytest.param(Engine.SPARK, marks=pytest.mark.thorough)]
)
def test_more_than_is_accepted_ends_with_status_3_when_all_is_written_and_nobody_need_read_it(
    files: SmallLog, tmp_path: Path, engine: Engine
):
    output = tmp_path / "out"
    words = ("--proposed", str(files.proposed), "--fail-on", "newly-denied=4", "--engine", engine)
    process = started(files, tmp_path, *words)
    assert process.stdout is not None
    # As `head` does.
    process.stdout.close()
    assert process.wait(PATIENCE) == 3
    text = (tmp_path / "errors").read_text()
    assert "audit what-if: failed on newly-denied: what-if counts 5 events" in text
    assert "Traceback" not in text
    assert "BrokenPipe" not in text
    found = json.loads((output / "summary.json").read_text())
    assert found["results"][0]["alarms"] == {"newly-denied": 5, "newly-allowed": 0, "drift": 0}
    assert (output / "what-if/flips.csv").read_text().count("\n") == 2
    sarif = json.loads((output / "findings.sarif").read_text())
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == ["newly-denied"]


@pytest.mark.thorough
def test_interrupted_it_ends_with_status_130_and_one_line(files: SmallLog, tmp_path: Path):
    told = tmp_path / "errors"
    setting = ("--proposed-allow-everyone-if-no-acl-found", "true")
    process = started(files, tmp_path, *setting, "--engine", "spark")
    assert process.stdout is not None
    process.stdout.close()
    wait_for("Spark", lambda: "Spark on" in told.read_text() or None, PATIENCE)
    # As a terminal does: to each process of the group.
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    begun, _, ended = told.read_text().partition("Spark on")
    # The JVM itself may tell of a module; Spark tells nothing.
    assert [line for line in begun.splitlines() if "incubator" not in line] == []
    assert ended.splitlines()[1:] == ["aclbroker audit what-if: interrupted"]
