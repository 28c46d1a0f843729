"""Findings as SARIF 2.1.0, which CI systems show beside the files that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, Final

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(
    tool: str, rules: Mapping[str, str], results: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the log of one run of a command; ``rules`` says what the ids of its rules mean."""
    driver = {
        "name": tool,
        "version": metadata.version("aclbroker"),
        "rules": [{"id": each, "shortDescription": {"text": rules[each]}} for each in rules],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
