"""The modules whose tests took longest, printed at the end of each run."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

ROOT = Path(__file__).parents[2]
DURATIONS = ROOT / "build" / "durations.json"
"""The seconds of each module in the last run, for `scheduling.FIRST`."""

_PRINTED: Final = 10


class Slowest:
    """Adds up the seconds that each module's tests take, with their fixtures."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test: its setup, its call or its teardown."""
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the slowest modules and write the seconds of all."""
        found = sorted(self._seconds.items(), key=lambda each: each[1], reverse=True)
        DURATIONS.parent.mkdir(exist_ok=True)
        DURATIONS.write_text(json.dumps(dict(found), indent=1) + "\n")
        if len(found) > 1:
            total = sum(self._seconds.values())
            terminalreporter.section(f"slowest modules of {len(found)}, {total:.0f} s in all")
            for module, seconds in found[:_PRINTED]:
                terminalreporter.write_line(f"{seconds:7.1f} s  {module}")
