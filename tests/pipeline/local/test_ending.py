"""What a process that decided without Spark leaves behind: nothing that is told as it ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import toolchain

toolchain.require_spark()

_BEGIN = """
import gc
import pyarrow as pa
from aclbroker.pipeline.local import functions as F
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.spark.workers import uncollected
"""
_FUNCTION = """
rows = LocalSession(lambda name: [name]).createDataFrame(pa.table({"x": ["a", "b"]}))
same = F.arrow_udf(lambda column: column, "string")
print([row["x"] for row in rows.select(same("x").alias("x")).collect()])
"""
_KEPT = """
with uncollected():
    pass
print(gc.get_freeze_count() > 0)
"""


@pytest.mark.parametrize(
    ("does", "says"),
    [(_FUNCTION, "['a', 'b']\n"), (_KEPT, "True\n"), (_KEPT + _FUNCTION, "True\n['a', 'b']\n")],
    ids=["function", "kept from the collector", "both"],
)
def test_a_process_that_decided_without_spark_ends_without_a_word(does: str, says: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", _BEGIN + does],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, says, "")
