"""The branch coverage of a whole run, by the floors of pyproject.toml: `[tool.aclbroker.coverage]`.

A floor is the least that a folder must have, in per cent of its lines and branches, as coverage.py
counts them; the floor of "." is for all that is in no other folder. What is measured is the
processes of pytest: brokers that tests start would need a second longer each, and many are killed.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "build" / "coverage.json"
REST = "."


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


class Coverage:
    """Tells the coverage before pytest's last line, and fails a run in which it is too low.

    A run that skipped something for want of a peer cannot reach everything, and is not failed. In
    CI no peer is missing: what is skipped there is what cannot be tried on that machine.
    """

    def __init__(self) -> None:
        self._found: list[Folder] = []

    def pytest_sessionstart(self) -> None:
        """Forget the run before."""
        REPORT.unlink(missing_ok=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Read what pytest-cov wrote, if the run came that far."""
        if not REPORT.exists():
            return
        self._found = folders(json.loads(REPORT.read_text()), floors())
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        complete = "CI" in os.environ or not reporter.stats.get("skipped")
        if complete and session.exitstatus == 0 and any(each.too_low for each in self._found):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print a line a folder."""
        terminalreporter.section("branch coverage")
        for each in self._found:
            for line in described(each):
                terminalreporter.write_line(line, red=each.too_low)
