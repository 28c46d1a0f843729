"""Measures the audit pipeline beside Spark's own scan of the same files, and beside DuckDB.

    python -m benchmarks.audit [--events N] [--rounds N] [--large]

Writes benchmarks/AUDIT.md, with --large also of four times as many events. The data is made up
(tools/generate_audit.py) and stays in build/bench-audit for the next run.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aclbroker.acl.files.policy import read_policy
from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.log_content import content
from aclbroker.pipeline.command.log_tables import load
from aclbroker.pipeline.command.options import AuditOptions, Given
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.spark.session import open_session
from benchmarks import environment
from benchmarks.duckdb_what_if import DuckDb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aclbroker.acl.bindings import AclBinding

ROOT = Path(__file__).parent.parent
DATA = ROOT / "build" / "bench-audit"
SUPER_USER = "User:admin"
SIX = (
    "principal STRING, host STRING, operation STRING, resource_type STRING, "
    "resource_name STRING, allowed BOOLEAN"
)


Times = Sequence[float]
"""Seconds of each round."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the result: times of the pipeline, of its peer, and what was aimed at."""

    title: str
    ours: Times
    peer: str
    theirs: Times
    target: str
    is_met: bool | None
    note: str = ""


def main() -> None:
    """Measure, print, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--large", action="store_true", help="also four times as many events")
    options = parser.parse_args()
    told = environment.describe(f"python -m benchmarks.audit {' '.join(sys.argv[1:])}".strip())
    rows = list(_rows(options.events, options.rounds, options.large))
    text = _page(told, rows)
    sys.stdout.write(text)
    (Path(__file__).parent / "AUDIT.md").write_text(text)


def _rows(events: int, rounds: int, large: bool) -> Iterator[Row]:
    jsonl = _data("jsonl", events)
    kafka = _data("kafka", events, "--format", "kafka")
    ephemeral = _data("ephemeral", events, "--ephemeral-hosts", "0.9")
    with _session() as spark:
        yield from _from_json(spark, jsonl, events, rounds)
        yield _from_text(spark, kafka, events, rounds)
    for data in (jsonl, ephemeral):
        shutil.rmtree(data / "tables", ignore_errors=True)
        times = [_command("ingest", data, data / "log", data / "tables").seconds]
        yield Row(f"ingest, {data.name}", times, "", (), "", None, "with session start")
    yield _from_start(jsonl, rounds)
    with _session() as spark:
        yield _from_tables(spark, ephemeral, rounds)
    if large:
        yield _large(jsonl, events)


def _from_json(spark: SparkSession, data: Path, events: int, rounds: int) -> Iterator[Row]:
    log = data / "log"
    duck = DuckDb(_acls(data, "acls"), _acls(data, "proposed"))
    found = _times(
        rounds,
        lambda: _noop(spark.read.schema(SIX).json(str(log))),
        lambda: _what_if(spark, data, log),
        lambda: duck.scan(log),
        lambda: duck.what_if(log, [SUPER_USER]),
        lambda: duck.what_if_of_usage(log, [SUPER_USER]),
    )
    scan, ours, duck_scan, duck_bare, duck_checked = found
    rate = f"{events / statistics.median(ours) / 1000:,.0f}k events/s"
    is_met = _ratio(ours, scan) <= 1.6
    yield Row("what-if, JSON Lines", ours, "Spark's scan", scan, "1.6x", is_met, rate)
    is_met, note = _ratio(ours, duck_checked) <= 1.5, "usage, and the checks that SQL can make"
    yield Row("what-if, JSON Lines", ours, "DuckDB", duck_checked, "1.5x", is_met, note)
    note = "a bare join: no checks, no usage"
    yield Row("what-if, JSON Lines", ours, "DuckDB", duck_bare, "", None, note)
    yield Row("DuckDB's scan", duck_scan, "Spark's scan", scan, "", None)


def _from_text(spark: SparkSession, data: Path, events: int, rounds: int) -> Row:
    log = str(data / "log")

    def ingest() -> None:
        options = AuditOptions("matrix", (log,), str(DATA / "out"), form="kafka", cluster="eu")
        tables = load(spark, options, None)
        content(tables.usage, tables.quarantine, tables.summary and tables.summary())
        spark.catalog.clearCache()

    scan, ours = _times(rounds, lambda: _noop(spark.read.text(log)), ingest)
    rate = events / statistics.median(ours)
    is_met = rate >= 300_000 and _ratio(ours, scan) <= 4
    note = f"{rate / 1000:,.0f}k lines/s"
    return Row("usage of Kafka's log", ours, "Spark's scan", scan, "300k/s, 4x", is_met, note)


def _from_tables(spark: SparkSession, data: Path, rounds: int) -> Row:
    usage = data / "tables" / "usage_daily"
    scan, ours = _times(
        rounds,
        lambda: _noop(spark.read.parquet(str(usage))),
        lambda: _what_if(spark, data, data / "tables"),
    )
    return Row(
        "what-if of tables, 90 % of events from a host of their own",
        *(ours, "Spark's scan", scan, "2.5x", _ratio(ours, scan) <= 2.5),
    )


def _from_start(data: Path, rounds: int) -> Row:
    """Return the row of a command as users run it, beside a bare program that starts Spark, too."""
    bare = [sys.executable, "-c", _SCAN, str(data / "tables" / "usage_daily")]
    # Otherwise it listens on the machine's outer address.
    inside = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    scan, ours = _times(
        rounds,
        lambda: subprocess.run(bare, env=inside, check=True),
        lambda: _command("what-if", data, data / "tables", DATA / "out"),
        warm_ups=0,
    )
    return Row(
        "what-if of tables, with session start",
        *(ours, "a bare scan, with session start", scan, "", None),
    )


_SCAN: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.read.parquet(sys.argv[1]).write.format("noop").mode("overwrite").save()
spark.stop()
"""
"""A program that starts Spark as it is installed, and reads tables once."""


def _large(small: Path, events: int) -> Row:
    large = _data("large", events * 4)
    few = _command("what-if", small, small / "log", DATA / "out")
    many = _command("what-if", large, large / "log", DATA / "out")
    each = few.seconds / events, many.seconds / (events * 4)
    size = sum(file.stat().st_size for file in (large / "log").iterdir()) / 2**30
    note = (
        f"{each[1] / each[0]:.2f}x per event of {events:,}; {size:.1f} GiB of log, "
        f"{many.memory / 2**30:.1f} GiB of memory at most"
    )
    is_met = each[1] <= each[0] and many.memory <= 6 * 2**30
    return Row(
        f"what-if, {events * 4:,} events, with session start",
        *([many.seconds], f"{events:,} events", [few.seconds], "1x per event, 6 GiB", is_met, note),
    )


def _what_if(spark: SparkSession, data: Path, source: Path) -> None:
    """Do all that the command does, but to start Spark and to read the ACLs."""
    options = AuditOptions(
        "what-if",
        (str(source),),
        str(DATA / "out"),
        acls=(Given(None, str(data / "acls.yaml")),),
        proposed=(Given(None, str(data / "proposed.yaml")),),
        super_users=(Given(None, SUPER_USER),),
    )
    rules = read_rules(options, None)
    _started.append(time.perf_counter())
    gc.freeze()
    answered(spark, options, rules, Progress())
    gc.unfreeze()
    spark.catalog.clearCache()


_WARM_UPS: Final = 2
"""So many rounds are not counted: the JVM compiles what it runs, and Python's workers start."""

_started: list[float] = []
"""When the work began that is to be measured, if not at once."""


def _times(
    rounds: int, *works: Callable[[], object], warm_ups: int = _WARM_UPS
) -> list[list[float]]:
    """Return the times of each in seconds; in each round all have their turn."""
    times: list[list[float]] = [[] for _ in works]
    for number in range(-warm_ups, rounds):
        for work, found in zip(works, times, strict=True):
            _started.clear()
            began = time.perf_counter()
            work()
            if number >= 0:
                found.append(time.perf_counter() - (_started[0] if _started else began))
    return times


def _ratio(ours: Times, theirs: Times) -> float:
    """Return the median of the rounds' ratios.

    The speed of a shared machine changes from minute to minute; within a round it changes less.
    """
    return statistics.median(_ratios(ours, theirs))


def _ratios(ours: Times, theirs: Times) -> list[float]:
    return [our / their for our, their in zip(ours, theirs, strict=True)]


@dataclass(frozen=True, slots=True)
class Done:
    """What a command took: seconds, and bytes of all its processes together at most."""

    seconds: float
    memory: int


def _command(job: str, data: Path, source: Path, output: Path) -> Done:
    """Run the command as a user does."""
    arguments = ["--input", str(source), "--output", str(output), "--super-user", SUPER_USER]
    arguments += ["--acls", str(data / "acls.yaml"), "--engine", "spark"]
    if job == "what-if":
        arguments += ["--proposed", str(data / "proposed.yaml")]
    began = time.perf_counter()
    program = [str(Path(sys.executable).with_name("aclbroker")), "audit", job, *arguments]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        most = max(most, _memory(process.pid))
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(program)} ended with {process.returncode}")
    return Done(time.perf_counter() - began, most)


def _memory(root: int) -> int:
    """Return the memory of a process and all below it; what they share counts once (PSS)."""
    total = 0
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ProcessLookupError):
            continue  # it has ended
    return total


@contextmanager
def _session() -> Iterator[SparkSession]:
    spark = open_session()
    try:
        yield spark
    finally:
        spark.stop()


def _noop(found: DataFrame) -> None:
    found.write.format("noop").mode("overwrite").save()


def _acls(data: Path, name: str) -> list[AclBinding]:
    return read_policy(data / f"{name}.yaml").acls


def _data(name: str, events: int, *options: str) -> Path:
    """Return the directory of made-up data, made now unless it is there."""
    data = DATA / f"{name}-{events}"
    if not (data / "truth.json").exists():
        shutil.rmtree(data, ignore_errors=True)
        program = [sys.executable, "tools/generate_audit.py", str(data), "--events", str(events)]
        subprocess.run([*program, "--files", "8", "--seed", "7", *options], cwd=ROOT, check=True)
    return data


def _page(told: dict[str, str], rows: list[Row]) -> str:
    head = "| | pipeline | peer | | ratio | target | |\n"
    head += "| --- | ---: | --- | ---: | ---: | ---: | --- |\n"
    body = "".join(f"{_line(row)}\n" for row in rows)
    about = "".join(f"- {key}: {value}\n" for key, value in told.items() if key in _TOLD)
    return f"# The audit pipeline\n\n{_INTRODUCTION}\n{about}\n{head}{body}"


_TOLD = ("command", "date", "machine", "load", "system", "aclbroker")
_INTRODUCTION = """\
Medians of all rounds; in each round all take their turn in one session, except where a session
start is named. A ratio is the median of the rounds' ratios, with the lowest and the highest behind
it. The scan is Spark's, of the same files, into its noop sink: six columns of JSON Lines, or lines
of text; with a session start it is a program that does nothing else. 100,000 ACLs now, 98,000
proposed. DuckDB, on the same two cores, counts the usage of the log, which other questions need
too, with those of the checks that SQL can make, and joins it with both sets of ACLs; or it joins
the bare lines, unchecked. It writes no tables, and has no other machines to go to.
"""


def _line(row: Row) -> str:
    theirs = ratio = ""
    if row.theirs:
        theirs = f"{statistics.median(row.theirs):.1f} s"
        ratio = f"{_ratio(row.ours, row.theirs):.2f}x"
        ratios = _ratios(row.ours, row.theirs)
        if len(ratios) > 1:
            ratio += f" ({min(ratios):.2f}-{max(ratios):.2f})"
    met = {None: "", True: " (met)", False: " (missed)"}[row.is_met]
    ours = f"{statistics.median(row.ours):.1f} s"
    cells = (row.title, ours, row.peer, theirs, ratio, f"{row.target}{met}")
    return f"| {' | '.join(cells)} | {row.note} |"


if __name__ == "__main__":
    main()
