"""Many small files of a table become few: nothing is lost or doubled, wherever a run is killed."""

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.ingest import compaction
from aclbroker.pipeline.ingest.compaction import MOST_FILES, SETTLED, compact, reading, sweep

SCHEMA = pa.schema(
    [("name", pa.string()), ("seen", pa.timestamp("us", "UTC")), ("events", pa.int64())]
)
TABLES = {"events": SCHEMA, "usage_daily": SCHEMA}
TIME = datetime(2026, 11, 21, 7, 48, 42, 328001, tzinfo=UTC)
DAY = "cluster=a%2Fb/day=2026-11-21"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "_checkpoints").mkdir()
    return tmp_path


def write(place: Path, count: int, day: str = DAY, table: str = "events", rows: int = 2) -> None:
    """Write as many batches of a file each."""
    for number in range(count):
        columns = {
            "name": [f"{day} {number} {row}" for row in range(rows)],
            "seen": [TIME + timedelta(seconds=number)] * rows,
            "events": [1] * rows,
        }
        directory = place / table / day / f"batch=files-{number:06}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table(columns, SCHEMA), directory / "part-0.zstd.parquet")


def files(place: Path, table: str = "events") -> list[Path]:
    """The files that a reader lists: what is in no directory and has no name that begins with _."""
    found = (place / table).rglob("*.parquet")
    return [each for each in found if not any(part[0] in "._" for part in each.parts[-4:])]


def rows(place: Path, table: str = "events") -> Counter[tuple[object, ...]]:
    tables = [pq.ParquetFile(each).read(use_threads=False) for each in files(place, table)]
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def compacted(place: Path, now: float = 0.0) -> int:
    return compact(place, TABLES, place / "_checkpoints", now)


def test_a_day_of_many_small_files_becomes_one_with_the_same_rows(place: Path) -> None:
    write(place, MOST_FILES + 1)
    write(place, MOST_FILES + 5, table="usage_daily")
    write(place, MOST_FILES, day="cluster=a%2Fb/day=2026-11-22")
    before = rows(place), rows(place, "usage_daily")
    assert compacted(place) == 2
    assert (rows(place), rows(place, "usage_daily")) == before
    assert len([each for each in files(place) if DAY in str(each)]) == 1
    assert len(files(place)) == 1 + MOST_FILES
    assert len(files(place, "usage_daily")) == 1
    assert not (place / "_compacting").exists()
    assert compacted(place) == 0


def test_files_that_are_too_much_for_one_become_several(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place, MOST_FILES + 1)
    size = files(place)[0].stat().st_size
    monkeypatch.setattr(compaction, "_MADE", 4 * size)
    before = rows(place)
    assert compacted(place) == 1
    assert rows(place) == before
    assert len(files(place)) == -(-(MOST_FILES + 1) // 4)


def test_the_few_files_of_a_day_to_which_nothing_was_added_become_one(place: Path) -> None:
    write(place, 2)
    newest = max(each.stat().st_mtime for each in files(place))
    assert compacted(place, newest + SETTLED - 1) == 0
    assert compacted(place, newest + SETTLED + 1) == 1
    assert len(files(place)) == 1
    assert compacted(place, newest + 3 * SETTLED) == 0


def test_large_files_stay_as_they_are_and_what_comes_later_is_added(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place, MOST_FILES + 3)
    large = files(place)[3]
    monkeypatch.setattr(compaction, "LARGE", 1 << 15)
    many = pa.table({"name": [os.urandom(9).hex() for _ in range(5_000)]})
    many = many.append_column("seen", pa.array([TIME] * 5_000, SCHEMA.field("seen").type))
    pq.write_table(many.append_column("events", pa.array(range(5_000))), large)
    node, before = large.stat().st_ino, rows(place)
    assert compacted(place) == 1
    assert rows(place) == before
    assert large.stat().st_ino == node
    # Further batches, and what was compacted before is among the small files.
    for number in range(100, 100 + MOST_FILES):
        source = files(place)[0].parent
        if source.name == large.parent.name:
            source = files(place)[1].parent
        directory = place / "events" / DAY / f"batch=files-{number:06}"
        directory.mkdir()
        name = directory / "part.parquet"
        pq.write_table(pa.table({"name": [str(name)], "seen": [TIME], "events": [1]}, SCHEMA), name)
    before = rows(place)
    assert compacted(place) == 1
    assert rows(place) == before
    assert len(files(place)) == 2


def test_times_of_older_files_and_columns_that_they_lack_are_read(place: Path) -> None:
    write(place, MOST_FILES)
    old = place / "events" / DAY / "batch=files-000100" / "part.parquet"
    old.parent.mkdir()
    table = pa.table({"seen": pa.array([TIME], pa.timestamp("us")), "name": ["old"]})
    pq.write_table(table, old, use_deprecated_int96_timestamps=True)
    assert compacted(place) == 1
    assert rows(place)["old", TIME, None] == 1
    assert pq.read_schema(files(place)[0]).equals(SCHEMA)


def test_while_somebody_reads_nothing_is_removed(place: Path) -> None:
    write(place, MOST_FILES + 1)
    (place / "_checkpoints" / compaction.READERS).touch()
    listed = files(place)
    reader = reading(place / "_checkpoints")
    assert reader is not None
    assert compacted(place) == 0
    assert files(place) == listed
    os.close(reader)
    assert compacted(place) == 1


def test_where_directories_cannot_change_places_nothing_is_done(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_exchanged", lambda one, other: False)
    write(place, MOST_FILES + 1)
    listed = files(place)
    assert compacted(place) == 0
    assert files(place) == listed
    assert not (place / "_compacting").exists()


def test_what_killed_runs_left_is_removed_and_nothing_else(place: Path) -> None:
    write(place, 4)
    for left in (
        "_compacting/events/x/day=1",
        "events/.spark-staging-1/cluster=eu",
        "events/_temporary/0",
    ):
        (place / left).mkdir(parents=True)
    stays = place / "events" / DAY / "batch=0123abcd-000007"
    stays.mkdir()
    sweep(place, TABLES, None)
    assert {each.name for each in (place / "events").iterdir()} == {"cluster=a%2Fb"}
    assert not (place / "_compacting").exists()
    assert len(files(place)) == 4
    sweep(place, TABLES, 3)
    assert [each.parent.name for each in sorted(files(place))] == [
        f"batch=files-{number:06}" for number in range(3)
    ]
    assert stays.exists()


# Forks for each step, so that pyarrow is imported once. A step is whatever Python tells its audit
# hooks: each file that is opened, made or removed, and each call of the C library.
_KILLED_AT_EACH_STEP = """
import os, shutil, signal, sys, traceback
from pathlib import Path
import pyarrow.compute
from tests.pipeline.ingest.test_compaction import compacted, rows

STEPS = "open", "os.link", "os.mkdir", "os.remove", "os.rmdir", "ctypes.dlsym"
base, whole = Path(sys.argv[1]), Path(sys.argv[2])
expected = rows(whole)

def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def run(place, step):
    left = step
    def hook(event, arguments):
        nonlocal left
        if event not in STEPS:
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    compacted(place)

def check(place):
    assert rows(place) == expected
    compacted(place)
    assert rows(place) == expected
    assert len(list(place.rglob("*.parquet"))) == 1
    assert not (place / "_compacting").exists()

step, ended = 0, -signal.SIGKILL
while ended:
    step += 1
    place = base / str(step)
    shutil.copytree(whole, place)
    ended = in_child(lambda: run(place, step))
    if ended not in (0, -signal.SIGKILL):
        sys.exit(f"step {step} ended with {ended}")
    if in_child(lambda: check(place)):
        sys.exit(f"killed at step {step}, it lost or doubled rows, or left files")
    shutil.rmtree(place)
print(step)
"""


@pytest.mark.thorough
def test_killed_at_any_step_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    (whole / "_checkpoints").mkdir(parents=True)
    write(whole, MOST_FILES + 1)
    command = [sys.executable, "-c", _KILLED_AT_EACH_STEP, str(tmp_path), str(whole)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    # It was killed while it wrote, before and after the exchange, and while it removed.
    assert int(done.stdout) > 40
