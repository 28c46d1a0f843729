"""On a Spark cluster of two workers whose Python has pyarrow, and nothing of this program."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from tests.pipeline.small_log import SmallLog, small_log
from tests.support.spark_cluster import ADDRESS, SparkCluster, bare_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

C1 = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What starts soon need not run fast."""

COLUMNS = ["principal", "operation", "resource_name", "events"]


PATIENCE = 900.0

pytestmark = [
    pytest.mark.apart,
    pytest.mark.timeout(2 * PATIENCE),
    pytest.mark.engines("spark"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkCluster, str]]:
    """A cluster of two workers, and the URL of its master."""
    found = SparkCluster(tmp_path_factory.mktemp("cluster"), workers=2)
    try:
        yield found, found.start()
    finally:
        found.stop()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_python(tmp_path_factory.mktemp("python") / "venv", "pyarrow", "numpy")


def started(
    files: SmallLog, output: Path, master: str, python: Path, partitions: int | None = 2
) -> "subprocess.Popen[str]":
    """Ask what-if on a cluster whose workers have this Python."""
    settings = {
        "spark.pyspark.python": python,
        "spark.driver.host": ADDRESS,
        "spark.driver.bindAddress": ADDRESS,
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": C1,
        "spark.executor.extraJavaOptions": C1,
        "spark.ui.enabled": "false",
    }
    if partitions is not None:
        settings["spark.sql.shuffle.partitions"] = str(partitions)
    command = [sys.executable, "-m", "aclbroker.pipeline", "what-if", "--input", files.log]
    command += ["--acls", files.acls, "--proposed", files.proposed]
    command += ["--output", output, "--master", master]
    command += [word for name, value in settings.items() for word in ("--spark", f"{name}={value}")]
    return subprocess.Popen(
        [str(word) for word in command],
        env={**os.environ, "SPARK_LOCAL_IP": ADDRESS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def flips(spark: "SparkSession", output: Path) -> list[tuple[object, ...]]:
    return [
        tuple(row)
        for row in spark.read.parquet(f"{output}/what-if/flips").select(*COLUMNS).collect()
    ]


def test_workers_need_no_more_than_pyarrow_and_answer_the_same(
    cluster: tuple[SparkCluster, str], python: Path, tmp_path: Path, spark: "SparkSession"
):
    for module in ("pipeline", "broker", "pandas"):
        found = subprocess.run([python, "-I", "-c", f"import {module}"], stderr=subprocess.DEVNULL)
        assert found.returncode != 0
    running = started(small_log(tmp_path), tmp_path / "out", cluster[1], python)
    shown, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, errors
    assert "5  Newly denied: events" in shown
    assert flips(spark, tmp_path / "out") == [("User:alice", "WRITE", "pay.in", 5)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (("pyarrow",), r"cannot work: Python 3\.\S+ \(\S+\) on \S+ has no numpy$"),
        (None, r"cannot run this program: .*Cannot run program.*; name a Python 3\.\d+ with numpy"),
    ],
)
def test_workers_whose_python_lacks_something_are_told_before_any_work(
    cluster: tuple[SparkCluster, str],
    tmp_path: Path,
    packages: tuple[str, ...] | None,
    message: str,
):
    python = tmp_path / "none"
    if packages is not None:
        python = bare_python(tmp_path / "venv", *packages)
    running = started(small_log(tmp_path), tmp_path / "out", cluster[1], python)
    _, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 2, errors
    assert re.search(f"^aclbroker audit what-if: the workers of spark://.* {message}", errors, re.M)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.thorough
def test_a_worker_that_is_lost_changes_no_answer_with_sparks_own_number_of_partitions(
    cluster: tuple[SparkCluster, str], python: Path, tmp_path: Path, spark: "SparkSession"
):
    """The last one with this cluster, which has one worker less then."""
    files = small_log(tmp_path)
    # As many files as give each worker something to do before one is lost.
    for number, path in enumerate(sorted(files.log.iterdir())):
        for copy in range(20):
            text = path.read_text().replace("pay.in", f"pay.in-{number}-{copy}")
            (files.log / f"{path.stem}-{copy}.jsonl").write_text(text)
    running = started(files, tmp_path / "out", cluster[1], python, partitions=None)
    try:
        cluster[0].lose_worker(10, PATIENCE)
        shown, errors = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 0, errors
    assert "105  Newly denied: events" in shown
    expected = [("User:alice", "WRITE", "pay.in", 5)]
    for number in (0, 1):
        expected += [
            ("User:alice", "WRITE", f"pay.in-{number}-{copy}", 2 + number) for copy in range(20)
        ]
    assert sorted(flips(spark, tmp_path / "out")) == sorted(expected)
