"""Both engines have the same answers: tables, reports, and what programs read."""

import argparse
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain
from tests.support.process import wait_for

toolchain.require_spark()

from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.engine import log_files
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.frames import LOCAL, SPARK, use
from aclbroker.pipeline.local.session import LocalSession
from tests.pipeline import kafka_lines
from tests.pipeline.small_log import CLUSTER, SmallLog, event, small_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ODD = "eu/1 =%é"
"""A cluster whose name is escaped in the name of a directory."""

TABLES = {
    *("matrix/use", "matrix/decisions", "unused/acls", "unused/opened", "denials/denied"),
    *("redundant/covered", "redundant/contradictions", "denials/remedies", "recommend/opened"),
    *("what-if/flips", "what-if/causes", "diff/flips", "diff/causes"),
    *(f"anomalies/{name}" for name in ("principals", "hosts", "grants", "spikes")),
}

PATIENCE = 120.0


class Engines:
    """Runs the same command on both, each with an output of its own."""

    def __init__(self, session: "SparkSession", directory: Path) -> None:
        self.spark = session
        self.directory = directory

    def place(self, engine: str) -> Path:
        return self.directory / engine

    def run(self, engine: str, job: str, *words: str | Path) -> None:
        parser = argparse.ArgumentParser()
        add_jobs(parser)
        arguments = [job, *map(str, words), "--output", str(self.place(engine) / job)]
        options = audit_options(parser.parse_args(arguments), arguments)
        rules = read_rules(options, None)
        is_local = engine == "local"
        session: Any = LocalSession(log_files) if is_local else self.spark
        use(LOCAL if is_local else SPARK)
        try:
            answered(session, options, rules, Progress(io.StringIO()))
        finally:
            use(SPARK)

    def both(self, job: str, *words: str | Path) -> None:
        for engine in ("spark", "local"):
            self.run(engine, job, *words)

    def tables(self, engine: str, job: str) -> set[str]:
        """The tables that were written, by name."""
        place = self.place(engine) / job
        return {
            str(each.parent.relative_to(place))
            for each in place.rglob("_SUCCESS")
            if "_checkpoints" not in str(each)
        }

    def assert_same_table(self, job: str, table: str) -> None:
        """Spark finds the same columns and the same rows in both, and as many directories."""
        one, other = (
            self.spark.read.parquet(str(self.place(engine) / job / table))
            for engine in ("spark", "local")
        )
        assert one.schema.simpleString() == other.schema.simpleString(), table
        assert counted_rows(one) == counted_rows(other), table
        directories = [
            {
                str(file.parent.relative_to(self.place(engine)))
                for file in (self.place(engine) / job / table).rglob("*.parquet")
                # Spark writes a file without rows for a table that is not parted.
            }
            for engine in ("spark", "local")
        ]
        assert directories[0] == directories[1]

    def assert_same_files(self, job: str) -> None:
        """All other files say the same, but for the name of the directory and the time."""
        places = [self.place(engine) / job for engine in ("spark", "local")]
        names = [
            {str(each.relative_to(place)) for each in place.rglob("*") if is_text(each)}
            for place in places
        ]
        assert names[0] == names[1]
        for name in sorted(names[0]):
            assert said(places[0] / name) == said(places[1] / name), name


def is_text(path: Path) -> bool:
    return path.suffix in (".csv", ".json", ".sarif", ".yaml", ".sh") and "_" not in path.parts[-2]


def said(path: Path) -> Any:
    text = path.read_text()
    for engine in ("spark", "local"):
        text = text.replace(f"/{engine}/", "/ENGINE/")
    if path.suffix == ".csv":
        head, *rows = csv.reader(text.splitlines())
        return head, Counter(map(tuple, rows))
    if path.name == "summary.json":
        found = json.loads(text)
        found["written"] = ""
        return found
    if path.suffix == ".sarif":
        (run,) = json.loads(text)["runs"]
        # Of results of equal weight any may be the first.
        return run["tool"], Counter(json.dumps(each, sort_keys=True) for each in run["results"])
    return text


def counted_rows(table: Any) -> Counter[str]:
    rows = table.toArrow().to_pylist()
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.fixture
def engines(spark_session: "SparkSession", tmp_path: Path) -> Engines:
    use(SPARK)
    return Engines(spark_session, tmp_path)


@pytest.fixture
def own_log(tmp_path: Path) -> list[str | Path]:
    """Two clusters, more than one day, subnets, sessions of several principals, odd names."""
    words: list[str | Path] = ["--input"]
    logs = []
    for number, cluster in enumerate((ODD, "7")):
        place = tmp_path / f"log-{number}"
        place.mkdir()
        logs.append(small_log(place, cluster))
        more = [
            event(cluster, f"2026-01-{day:02}", hour, who, "WRITE", name, allowed=is_allowed)
            for day in (3, 4, 5)
            for hour in range(day)
            for who in ("alice", "car'ol\u0000;--", "dave")
            for name in ("pay.in", 'odd "name"')
            for is_allowed in ((who == "alice" and name == "pay.in"),)
        ]
        (logs[-1].log / "more.jsonl").write_text("".join(f"{line}\n" for line in more))
    words += [each.log for each in logs]
    for option in ("acls", "proposed"):
        for each in logs:
            words += [f"--{option}", getattr(each, option)]
    return [*words, "--other", logs[0].proposed, "--other", logs[1].proposed]


def test_all_jobs_have_the_same_tables_and_files_of_our_own_log(
    engines: Engines, own_log: list[str | Path]
):
    engines.both("all", *own_log, "--min-events", "1", "--prefixes", "--hosts")
    assert engines.tables("local", "all") == engines.tables("spark", "all") >= TABLES
    for table in sorted(engines.tables("spark", "all")):
        engines.assert_same_table("all", table)
    engines.assert_same_files("all")


@pytest.mark.thorough
def test_all_jobs_have_the_same_tables_and_files_of_a_kafkas_log(engines: Engines, tmp_path: Path):
    log = tmp_path / "kafka-authorizer.log"
    lines = [
        *(
            kafka_lines.line(head=f"[2026-11-{day} 07:48:42,328] INFO", host=f"10.0.{day}.{host}")
            for day in (20, 21, 22)
            for host in range(day)
        ),
        *(kafka_lines.allowed_line(operation="READ") for _ in range(3)),
        kafka_lines.FORGED,
        "no record",
    ]
    log.write_text("".join(f"{line}\n" for line in lines))
    acls, proposed = tmp_path / "acls.yaml", tmp_path / "proposed.yaml"
    rule = "version: 1\ncluster: k\nacls:\n- principal: User:alice\n  rules:\n"
    rule += "  - topic: orders.eu\n    allow: [READ]\n    host: '{}'\n"
    acls.write_text(rule.format("10.0.0.0/16"))
    proposed.write_text(rule.format("127.0.0.1"))
    engines.both(
        *("all", "--input", log, "--cluster", "k", "--zone", "Europe/Berlin", "--cidr"),
        *("--acls", acls, "--proposed", proposed, "--max-drift", "100"),
    )
    assert engines.tables("local", "all") == engines.tables("spark", "all")
    for table in sorted(engines.tables("spark", "all")):
        engines.assert_same_table("all", table)
    engines.assert_same_files("all")


@pytest.mark.thorough
def test_each_engine_reads_what_the_other_one_gathered(
    engines: Engines, own_log: list[str | Path], tmp_path: Path
):
    inputs = own_log[1:3]
    engines.both("ingest", "--input", *inputs, "--acls", own_log[4], "--acls", own_log[6])
    for table in ("events", "usage_daily", "quarantine", "acls"):
        one, other = (
            engines.spark.read.parquet(str(tmp_path / engine / "ingest" / table)).drop("taken_at")
            for engine in ("spark", "local")
        )
        assert one.schema.simpleString() == other.schema.simpleString()
        assert counted_rows(one) == counted_rows(other)
    for engine, other in (("spark", "local"), ("local", "spark")):
        engines.run(engine, "all", "--input", tmp_path / other / "ingest", *own_log[3:])
    for table in sorted(engines.tables("spark", "all")):
        engines.assert_same_table("all", table)


@pytest.mark.thorough
def test_each_engine_goes_on_where_the_other_one_stopped(engines: Engines, tmp_path: Path):
    files = small_log(tmp_path)
    (tmp_path / "same").mkdir()
    for engine in ("spark", "local"):
        (tmp_path / engine).symlink_to(tmp_path / "same", target_is_directory=True)
    for number, engine in enumerate(("spark", "local", "spark", "local")):
        with (files.log / "audit-0.jsonl").open("a") as log:
            log.write(event(CLUSTER, "2026-01-03", number, "alice", "READ", "orders.eu") + "\n")
        engines.run(engine, "ingest", "--input", files.log)
        found = json.loads((tmp_path / "same/ingest/summary.json").read_text())
        assert found["window"]["events"] == 13 + number
        assert found["window"]["quarantined"] == 1


RUN = """\
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from aclbroker.cli import main
sys.argv = ["aclbroker", *sys.argv[1:]]
sys.exit(main())
"""


def without_java(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir(exist_ok=True)
    return {
        **{name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
        "PATH": str(tmp_path / "bin"),
    }


def audited(tmp_path: Path, *words: str | Path) -> "subprocess.CompletedProcess[str]":
    """What the command did where there is no Java and no pyspark."""
    arguments = [*map(str, words), "--output", str(tmp_path / "out")]
    return subprocess.run(
        [sys.executable, "-c", RUN, "audit", *arguments],
        env=without_java(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def files(tmp_path: Path) -> SmallLog:
    return small_log(tmp_path)


@pytest.mark.parametrize("job", ["all", "ingest"])
def test_a_small_log_is_decided_without_java_on_the_path_and_without_pyspark(
    files: SmallLog, tmp_path: Path, job: str
):
    rules = ("--acls", files.acls, "--proposed", files.proposed)
    done = audited(tmp_path, job, "--input", files.log, *rules)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "12 events: 9 allowed, 3 denied" in done.stdout
    assert "Spark" not in done.stderr
    # Nothing but the steps: DuckDB would complain of what it finds left at the end.
    assert all(line.endswith((" s", " lines/s", " lines")) for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--local-bytes", "100"], "the log has about .* bytes, more than --local-bytes 100 bytes"),
        (["--engine", "spark"], ""),
        (["--master", "local[1]"], ""),
    ],
)
def test_without_pyspark_what_needs_spark_says_so_and_what_to_install(
    files: SmallLog, tmp_path: Path, words: list[str], reason: str
):
    done = audited(tmp_path, "matrix", "--input", files.log, *words)
    assert done.returncode == 2
    assert "Spark is not installed" in done.stderr
    assert "pip install '.[spark]'" in done.stderr
    assert bool(re.search(f"^with Spark: {reason}$", done.stderr, re.MULTILINE)) is bool(reason)


def test_what_only_spark_can_do_is_refused_where_it_is_not_wanted(tmp_path: Path):
    done = audited(tmp_path, "matrix", "--input", "s3a://logs/audit", "--engine", "local")
    assert done.returncode == 2
    assert done.stderr == (
        "aclbroker audit matrix: --engine local cannot do this: s3a://logs/audit is a URL, which "
        "Spark's connectors read\n"
    )


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Press Ctrl-C until the process ends; return what it wrote.

    Once may be too early: a signal that comes after Python last looked for one and before the
    system's read begins is seen when that ends, and this one waits for somebody to write.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            assert time.monotonic() < deadline, "not interrupted"


def test_interrupted_without_spark_it_ends_with_status_130_and_one_line(
    files: SmallLog, tmp_path: Path
):
    # The command waits for somebody to write the rules.
    pipe = tmp_path / "rules.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", RUN, "audit", "what-if", "--input", str(files.log)),
            *("--proposed", str(pipe), "--output", str(tmp_path / "out")),
        ],
        env=without_java(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def opened() -> int | None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads
            return None

    writer = wait_for("the command to read its rules", opened, PATIENCE)
    _, errors = interrupted(process)
    os.close(writer)
    assert (process.returncode, errors) == (130, "aclbroker audit what-if: interrupted\n")
