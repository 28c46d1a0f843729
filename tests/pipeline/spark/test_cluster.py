"""On a Spark cluster of two workers whose Python has pyarrow, and nothing of this program."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from tests.pipeline.small_log import small_log
from tests.support.spark_cluster import ADDRESS, SparkCluster, bare_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

C1 = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What starts soon need not run fast."""

COLUMNS = ["principal", "operation", "resource_name", "events"]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    cluster = SparkCluster(tmp_path, workers=2)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.mark.apart
def test_workers_need_no_more_than_pyarrow_and_answer_the_same(
    master: str, tmp_path: Path, spark: "SparkSession"
):
    files = small_log(tmp_path)
    python = bare_python(tmp_path / "venv", "pyarrow", "numpy")
    for module in ("pipeline", "broker", "pandas"):
        found = subprocess.run([python, "-I", "-c", f"import {module}"], stderr=subprocess.DEVNULL)
        assert found.returncode != 0
    settings = {
        "spark.pyspark.python": python,
        "spark.driver.host": ADDRESS,
        "spark.driver.bindAddress": ADDRESS,
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": C1,
        "spark.executor.extraJavaOptions": C1,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    output = tmp_path / "out"
    command = [sys.executable, "-m", "aclbroker.pipeline", "what-if", "--input", files.log]
    command += ["--acls", files.acls, "--proposed", files.proposed]
    command += ["--output", output, "--master", master]
    command += [word for name, value in settings.items() for word in ("--spark", f"{name}={value}")]
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, "SPARK_LOCAL_IP": ADDRESS},
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr)
    assert done.returncode == 0
    assert "5  Newly denied: events" in done.stdout
    rows = spark.read.parquet(f"{output}/what-if/flips").select(*COLUMNS).collect()
    assert [tuple(row) for row in rows] == [("User:alice", "WRITE", "pay.in", 5)]
    # Each worker has run something.
    assert len(list(tmp_path.glob("work/*/*/stderr"))) == 2
