"""Results for CI systems, as SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def write_results(
    path: Path, tool: str, rules: Mapping[str, str], results: Sequence[Mapping[str, Any]]
) -> None:
    """Write the results of a command; ``rules`` says what their ids mean. Raises OSError."""
    driver = {
        "name": tool,
        "version": metadata.version("aclbroker"),
        "rules": [{"id": each, "shortDescription": {"text": rules[each]}} for each in rules],
    }
    report = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
