"""The branch coverage of a whole run, by the floors of pyproject.toml: `[tool.aclbroker.coverage]`.

A floor is the lowest coverage that a folder may have, in per cent of its lines and branches, as
coverage.py counts them. The floor of "." is for the files that are in no other folder. Coverage is
measured in the processes of pytest alone: a broker process would take a second longer to start, and
many of them are killed.

With MEASURE=1 in the environment, the folders that decide (those with a floor of their own) are
measured while their own tests run. All other tests run at full speed. `--cov`, which is
pytest-cov's, measures everything. A run of all tests fails below a floor. With MEASURE it may be
`TOLERANCE` below. Some lines run once in a process, such as those that compile a decoder, and a
test that is not measured may be the first that needs them.
"""

import json
import os
import shutil
import tomllib
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "build" / "coverage.json"
REST = "."
TOLERANCE = 0.5
MEASURED_BY = (
    "tests/acl/",
    "tests/authorizer/",
    "tests/cli/",
    "tests/config/",
    "tests/gate/",
    "tests/gateway/test_likeness.py",
    "tests/gateway/test_relay.py",
    "tests/gateway/test_scans.py",
    "tests/handlers/",
    "tests/protocol/",
    "tests/server/test_dispatch.py",
    "tests/server/test_topic_ids.py",
)
"""The tests that must run every branch of the folders with a floor of their own."""

NOT_MEASURED_BY = (
    "tests/acl/reasoning/test_exact.py",
    "tests/acl/reasoning/test_lint_exact.py",
    "tests/cli/test_tutorials.py",
)
"""Tests among these that take long and run no branch that the others do not run."""

_DATA = ROOT / "build" / "coverage"
"""The directory in which each process of pytest leaves what it has measured."""


@dataclass
class Folder:
    """What was run of a folder, and of which files not all was."""

    name: str
    floor: float
    reached: int = 0
    reachable: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def percent(self) -> float:
        """100 for a folder with nothing to run."""
        return 100 * self.reached / self.reachable if self.reachable else 100.0

    @property
    def too_low(self) -> bool:
        return self.percent < self.floor

    def add(self, file: str, found: Mapping[str, Any]) -> None:
        """Add a file of coverage.py's JSON report."""
        counts = found["summary"]
        self.reached += counts["covered_lines"] + counts["covered_branches"]
        self.reachable += counts["num_statements"] + counts["num_branches"]
        lines = [str(line) for line in found["missing_lines"]]
        branches = [f"{start}->{end}" for start, end in found["missing_branches"]]
        if lines or branches:
            self.missing.append(f"{file}: {', '.join(lines + branches)}")


def folders(report: Mapping[str, Any], floors: Mapping[str, float]) -> list[Folder]:
    """What was run of each folder that has a floor."""
    found = {name: Folder(name, floor) for name, floor in floors.items()}
    for file, counted in report["files"].items():
        inside = [name for name in floors if file.startswith(f"{name}/")]
        found[max(inside, key=len, default=REST)].add(file, counted)
    return list(found.values())


def floors() -> dict[str, float]:
    """The floors of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: dict[str, float] = project["tool"]["aclbroker"]["coverage"]
    return found


def described(folder: Folder) -> Iterator[str]:
    """The lines that tell of a folder; where its floor is not reached, with what was not run."""
    name = "the rest" if folder.name == REST else folder.name
    yield f"{name:16} {folder.percent:6.2f} %, at least {folder.floor:g} %"
    if folder.too_low and folder.name != REST:
        yield from (f"    {each}" for each in folder.missing)


class Recorder:
    """Measures the folders that decide, in one process that runs tests."""

    def __init__(self) -> None:
        folders_that_decide = [str(ROOT / name) for name in floors() if name != REST]
        process = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._coverage = coverage.Coverage(
            data_file=str(_DATA / f"{process}.data"), source=folders_that_decide
        )
        self._coverage.start()

    def stop(self) -> None:
        """Pause until a test begins that counts."""
        self._coverage.stop()

    def pytest_collection_finish(self) -> None:
        """Pause: all modules are imported."""
        self.stop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure the tests that count."""
        counts = item.nodeid.startswith(MEASURED_BY)
        counts &= not item.nodeid.startswith(NOT_MEASURED_BY)
        if counts:
            self._coverage.start()
        try:
            return (yield)
        finally:
            if counts:
                self._coverage.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write what was measured."""
        _DATA.mkdir(parents=True, exist_ok=True)
        self._coverage.save()


RECORDER = Recorder() if os.environ.get("MEASURE") else None
"""Begins with the import of this module, because imports run lines of the product, too."""


def combine() -> None:
    """Write one report of what all processes have measured, if they have measured anything."""
    if not _DATA.exists():
        return
    whole = coverage.Coverage(data_file=str(_DATA / "all.data"))
    whole.combine([str(path) for path in _DATA.glob("*.data")])
    whole.json_report(outfile=str(REPORT))


class Coverage:
    """Prints the coverage before pytest's last line, and fails a whole run if it is too low.

    A run that skipped tests because a peer is missing cannot reach everything, and does not fail.
    In CI no peer is missing: the tests skipped there cannot run on that machine at all.
    """

    def __init__(self) -> None:
        self._found: list[Folder] = []

    def pytest_sessionstart(self) -> None:
        """Forget the run before."""
        REPORT.unlink(missing_ok=True)
        shutil.rmtree(_DATA, ignore_errors=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Read what was measured, if the run came that far."""
        combine()
        if not REPORT.exists():
            return
        tolerance = TOLERANCE if RECORDER else 0
        allowed = {name: floor - tolerance for name, floor in floors().items()}
        self._found = folders(json.loads(REPORT.read_text()), allowed)
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        complete = "CI" in os.environ or not reporter.stats.get("skipped")
        config = session.config
        is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        is_whole &= not (config.option.daily or config.option.keyword or config.option.markexpr)
        is_enforced = is_whole and complete and session.exitstatus == 0
        if is_enforced and any(each.too_low for each in self._found):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print a line a folder."""
        terminalreporter.section("branch coverage")
        for each in self._found:
            if not each.reachable:
                continue
            for line in described(each):
                terminalreporter.write_line(line, red=each.too_low)
