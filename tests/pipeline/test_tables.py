"""The tables that logs are gathered in: every file once, whatever happens on the way."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from pipeline.ingest import tables
from pipeline.ingest.read import Form, IngestError, Reading, events, lines, usage
from tests.pipeline.kafka_lines import SAMPLE_LINES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READING = Reading(Form.KAFKA, "eu")


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    directory = tmp_path / "landing"
    directory.mkdir()
    return directory


def land(landing: Path, name: str, text: Iterable[str]) -> None:
    """Put a file there whole, as whoever rotates a log does."""
    hidden = landing / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in text))
    hidden.rename(landing / name)


def counted(found: "DataFrame") -> Counter[Any]:
    return Counter(tuple(row) for row in found.collect())
