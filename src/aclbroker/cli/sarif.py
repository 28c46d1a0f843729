"""Results for CI systems, as SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aclbroker.pipeline.report.sarif import sarif


def write_results(
    path: Path, tool: str, rules: Mapping[str, str], results: Sequence[Mapping[str, Any]]
) -> None:
    """Write the results of a command; ``rules`` says what their ids mean. Raises OSError."""
    report = sarif(tool, rules, results)
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
