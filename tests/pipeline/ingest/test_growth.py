"""What is new in logs that grow and are rotated while they are read: each line, and each once."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest.growth import SETTLED, Plan, looked_since, plan, rotated_from
from aclbroker.pipeline.ingest.layout_search import layout_of
from aclbroker.pipeline.ingest.layouts import OWN
from aclbroker.pipeline.ingest.ledger import Ledger
from aclbroker.pipeline.ingest.ledger_file import LocalFile
from aclbroker.pipeline.ingest.pieces import read_lines
from aclbroker.pipeline.ingest.settling import end_by
from tests.pipeline.kafka_lines import FORGED, line
from tests.support.tables import examples

STAMP = "2026-11-21T07:48:42.328104412Z"


class Reader:
    """Reads the logs of a directory as `ingest` does, without tables."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "_checkpoints" / "ledger.json"
        self.lines: list[bytes] = []

    def load(self) -> tuple[LocalFile, Ledger]:
        """Return what a new run knows."""
        file = LocalFile(self.file)
        return file, file.load() or Ledger()

    def plan(self, *, is_kafka: bool = False, later: float = 0) -> Plan:
        paths = [str(path) for path in self.directory.iterdir() if path.is_file()]
        layout = OWN if is_kafka else None
        return plan(self.load()[1], paths, end_by(time.time() + later, lambda _head, _more: layout))

    def read(self, found: Plan | None = None, batches: int | None = None) -> list[bytes]:
        """Read what is new; of several batches, a file each, those before a kill."""
        found = found or self.plan()
        new: list[bytes] = []
        file, ledger = self.load()
        for read in found.reads[:batches]:
            for lines in read_lines(read.path, read.start, read.end, read.prefix):
                new += lines.array.to_pylist()
            file.commit(ledger, ledger.read([(read.position, read.after)], {}))
        file.commit(ledger, ledger.saw(found.seen, {}))
        self.lines += new
        return new


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def lines(first: int, last: int, filling: str = "x" * 90) -> bytes:
    return b"".join(f"line {number} {filling}\n".encode() for number in range(first, last))


def numbers(found: Sequence[bytes]) -> list[int]:
    return [int(each.split()[1]) for each in found]


def test_a_file_that_grew_is_read_on(reader: Reader, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(lines(0, 5))
    assert numbers(reader.read()) == [0, 1, 2, 3, 4]
    assert reader.read() == []
    with log.open("ab") as file:
        file.write(lines(5, 500))
    assert numbers(reader.read()) == list(range(5, 500))


def test_a_line_without_its_end_waits_until_it_is_whole(reader: Reader, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(lines(0, 3)[:-20])
    found = reader.plan()
    assert [note.split(": ")[1] for note in found.notes] == [
        "the last 78 bytes, no whole line, wait for the next run"
    ]
    assert numbers(reader.read(found)) == [0, 1]
    log.write_bytes(lines(0, 3))
    assert numbers(reader.read()) == [2]


def test_a_last_line_without_an_end_is_read_when_nobody_writes_any_more(
    reader: Reader, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(0, 2)[:-1])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(2, 4)[:-1]))
    assert sorted(numbers(reader.read())) == [0, 2, 3]
    assert numbers(reader.read(reader.plan(later=SETTLED))) == [1]
    # Whoever wrote it goes on after all.
    (tmp_path / "a.jsonl").write_bytes(lines(0, 3))
    assert numbers(reader.read()) == [2]


def test_rotation_by_renaming(reader: Reader, tmp_path: Path) -> None:
    log, first, second = (tmp_path / f"audit.jsonl{end}" for end in ("", ".1", ".2"))
    log.write_bytes(lines(0, 3))
    reader.read()
    with log.open("ab") as file:
        log.rename(first)
        file.write(lines(3, 5))
    log.write_bytes(lines(5, 9))
    assert sorted(numbers(reader.read())) == [3, 4, 5, 6, 7, 8]
    first.rename(second)
    log.rename(first)
    assert reader.read() == []
    assert reader.plan().notes == []


def test_rotation_by_copying_and_cutting_off(reader: Reader, tmp_path: Path) -> None:
    log, copy = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    log.write_bytes(lines(0, 30))
    reader.read()
    with log.open("ab") as file:
        file.write(lines(30, 40))
        file.flush()
        text = log.read_bytes()
        copy.write_bytes(text[:2048])
        assert numbers(reader.read()) == list(range(30, 40))
        copy.write_bytes(text)
        assert reader.read() == []
        os.truncate(log, 0)
        file.write(lines(40, 42))
        file.flush()
        assert numbers(reader.read()) == [40, 41]
        file.write(lines(42, 90))
    assert numbers(reader.read()) == list(range(42, 90))


def test_what_was_added_is_read_once_though_there_is_a_copy(reader: Reader, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(lines(0, 30))
    reader.read()
    with log.open("ab") as file:
        file.write(lines(30, 40))
    shutil.copy(log, tmp_path / "audit.jsonl.1")
    (tmp_path / "audit.jsonl.2.gz").write_bytes(gzip.compress(log.read_bytes()))
    assert numbers(reader.read()) == list(range(30, 40))
    assert reader.read() == []


def test_compression_changes_nothing(reader: Reader, tmp_path: Path) -> None:
    log, packed = tmp_path / "audit.jsonl.1", tmp_path / "audit.jsonl.1.gz"
    log.write_bytes(lines(0, 30))
    assert len(reader.read()) == 30
    with log.open("ab") as file:
        file.write(lines(30, 33))
    data = gzip.compress(log.read_bytes())
    packed.write_bytes(data[:-9])
    found = reader.plan()
    (note,) = found.notes
    assert "audit.jsonl.1.gz is not whole yet" in note
    packed.write_bytes(data)
    log.unlink()
    assert numbers(reader.read()) == [30, 31, 32]
    assert reader.read() == []
    packed.rename(tmp_path / "audit.jsonl.2.gz")
    assert reader.read() == []
    (tmp_path / "audit.jsonl.2").write_bytes(lines(0, 33))
    assert reader.read() == []


def test_what_is_known_is_not_looked_into_again(reader: Reader, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_bytes(lines(0, 30))
    reader.read()
    log.rename(tmp_path / "audit.jsonl.1")
    log.write_bytes(lines(0, 30))  # a copy, of which the ledger learns
    reader.read()
    status = os.stat(log)
    log.write_bytes(lines(50, 53, "y" * 90) + lines(0, 27))
    assert log.stat().st_size == status.st_size
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not reader.plan().reads
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert len(reader.read()) == 30


def test_there_may_be_more_files_than_can_be_open(reader: Reader, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.log").write_bytes(lines(number, number + 1))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, before[1]))
    try:
        found = reader.plan()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(found.reads) == 300


def test_files_that_begin_alike_are_not_one(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(lines(0, 1))
    (tmp_path / "b.log").write_bytes(lines(0, 1))
    assert numbers(reader.read()) == [0]
    assert reader.read() == []
    (tmp_path / "a.log").write_bytes(lines(0, 1) + lines(10, 14))
    (tmp_path / "b.log").write_bytes(lines(0, 1) + lines(20, 23))
    assert sorted(numbers(reader.read())) == [10, 11, 12, 13, 20, 21, 22]
    (tmp_path / "a.log").write_bytes(lines(0, 1) + lines(10, 15))
    (tmp_path / "b.log").write_bytes(lines(0, 1) + lines(20, 24))
    assert sorted(numbers(reader.read())) == [14, 23]


def test_a_file_of_one_line_is_no_copy_of_another_that_begins_like_it(
    reader: Reader, tmp_path: Path
) -> None:
    """As of two decisions of one moment, which differ in nothing but the topic."""
    (tmp_path / "a.log").write_bytes(lines(0, 1, f"{'x' * 300} topic 1") + lines(1, 9))
    (tmp_path / "b.log").write_bytes(lines(0, 1, f"{'x' * 300} topic 2"))
    assert len(reader.read()) == 10


def test_a_copy_that_stays_behind_is_not_read_when_the_log_goes_on(
    reader: Reader, tmp_path: Path
) -> None:
    for first in (0, 10):
        log = tmp_path / f"{first}.log"
        log.write_bytes(lines(first, first + 1, ""))
        reader.read()
        shutil.copy(log, tmp_path / f"{first}.copy")
        with log.open("ab") as file:
            file.write(lines(first + 1, first + 3))
        assert numbers(reader.read()) == [first + 1, first + 2]


def test_a_broken_record_of_kafka_waits_for_its_rest(reader: Reader, tmp_path: Path) -> None:
    """What a client wrote into the midst of it must not be read on its own."""
    log = tmp_path / "kafka-authorizer.log"
    begin = line(resource="Group:LITERAL:x", request="", rule="", tail="")
    rest = " for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    parts = [line(), begin, FORGED, f"{rest} (kafka.authorizer.logger)", line()]
    whole = "".join(f"{each}\n" for each in parts)
    for cut in (2, 3):
        log.write_text("".join(f"{each}\n" for each in parts[:cut]))
        found = reader.plan(is_kafka=True)
        assert sum(read.end for read in found.reads) == len(line()) + 1
    reader.read(found)
    log.write_text(whole)
    assert len(reader.read(reader.plan(is_kafka=True))) == 4
    # A text of 64 KiB behind it without the rest: it does not come any more.
    log.write_text(f"{begin}\n" + "x" * 70_000 + "\n")
    assert len(reader.read(reader.plan(is_kafka=True))) == 2


def test_a_broken_record_waits_for_its_rest_behind_a_collectors_many_lines(tmp_path: Path) -> None:
    """The envelopes of 3,000 empty lines have more bytes than the longest record."""
    log = tmp_path / "kafka-authorizer.log"
    begin = line(resource="Group:LITERAL:x", request="", rule="", tail="")
    first, *lines = [f"{STAMP} stdout F {each}\n" for each in [line(), begin, *[""] * 3_000]]
    layout = layout_of(first.encode())
    log.write_text(first + "".join(lines))
    found = plan(Ledger(), [str(log)], end_by(time.time(), lambda _head, _more: layout))
    assert [read.end for read in found.reads] == [len(first)]
    # Kafka writes three bytes for each byte of a name that is not UTF-8.
    log.write_text(f"{line()}\n{begin}\n" + ("\ufffd" * 99 + "\n") * 300)
    found = plan(Ledger(), [str(log)], end_by(time.time(), lambda _head, _more: OWN))
    assert [read.end for read in found.reads] == [len(line()) + 1]


def test_rotated_files_of_an_input_that_is_one_file(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    names = ("audit.jsonl.1", "audit.jsonl-20261121.gz", "audit.jsonl.old", "audit.jsonl.2")
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (100 - number, 100 - number))
    assert rotated_from(str(log), 99) == [
        str(tmp_path / "audit.jsonl-20261121.gz"),
        str(tmp_path / "audit.jsonl.1"),
    ]


def test_a_rotated_file_is_looked_for_until_it_is_read_to_its_end() -> None:
    assert looked_since({"/a": 1, "/b": 1}, {"/a": 5}, ["/a", "/other"]) == {"/a": 5, "/b": 1}
    assert looked_since({"/a": 1, "/b": 1}, {"/a": 5, "/b": 6}, ["/a.1"]) == {"/a": 1, "/b": 6}


ACTIONS = st.lists(
    st.sampled_from(
        ["append"] * 4
        + ["append half", "read", "read", "killed", "killed between", "kill late", "rename"]
        + ["copy", "cut off", "compress", "compress half", "remove", "read while moved"]
    ),
    min_size=8,
    max_size=40,
)


class World:
    """A log that somebody writes, rotates and compresses, and a reader; each line is another."""

    def __init__(self, directory: Path, filling: str) -> None:
        self.reader = Reader(directory)
        self.log = directory / "audit.jsonl"
        self.log.write_bytes(b"")
        self.written: list[bytes] = []
        self._numbers = count()
        self._half = b""
        self._filling = filling
        self._copied: Path | None = None
        self._next = count(1)

    def act(self, action: str) -> None:
        getattr(self, f"_{action.replace(' ', '_')}")()

    def _line(self) -> bytes:
        number = next(self._numbers)
        return f"line {number} {self._filling[: number * 37 % 400]}\n".encode()

    def _append(self) -> None:
        if self._copied:
            # What is written between the copy and the cut is lost, whoever reads.
            self._cut_off()
        new = self._half or self._line()
        for data in (new, self._line()):
            self.written.append(data)
        with self.log.open("ab") as file:
            file.write(new[len(new) // 2 if self._half else 0 :] + data)
        self._half = b""

    def _append_half(self) -> None:
        if not self._half and not self._copied:
            self._half = self._line()
            with self.log.open("ab") as file:
                file.write(self._half[: len(self._half) // 2])

    def _read(self) -> None:
        self.reader.read()

    def _killed(self) -> None:
        self.reader.read(batches=0)

    def _killed_between(self) -> None:
        self.reader.read(batches=1)

    def _kill_late(self) -> None:
        self.reader.plan()

    def _rename(self) -> None:
        if not self._half and not self._copied:
            self.log.rename(self.log.with_name(f"audit.jsonl.{next(self._next)}"))
            self.log.write_bytes(b"")

    def _read_while_moved(self) -> None:
        found = self.reader.plan()
        self._rename()
        self.reader.read(found)

    def _copy(self) -> None:
        if not self._half and not self._copied:
            self._copied = self.log.with_name(f"audit.jsonl.{next(self._next)}")
            shutil.copy(self.log, self._copied)

    def _cut_off(self) -> None:
        if self._copied:
            os.truncate(self.log, 0)
            self._copied = None

    def _rotated(self) -> list[Path]:
        found = self.log.parent.glob("audit.jsonl.*")
        return sorted(each for each in found if each != self._copied)

    def _compress_half(self) -> None:
        for path in self._rotated():
            if path.suffix != ".gz":
                packed = path.with_name(f"{path.name}.gz")
                packed.write_bytes(gzip.compress(path.read_bytes())[:-5])
                return

    def _compress(self) -> None:
        for path in self._rotated():
            if path.suffix != ".gz":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
                return

    def _remove(self) -> None:
        self._read()
        for path in self._rotated()[:1]:
            if path.suffix == ".gz" and path.with_suffix("").exists():
                continue
            path.unlink()


@settings(max_examples=examples(250), deadline=None)
@given(ACTIONS, st.sampled_from(["", "y" * 400]))
def test_each_line_is_read_once_whatever_happens(actions: list[str], filling: str) -> None:
    with TemporaryDirectory() as directory:
        world = World(Path(directory), filling)
        for action in [*actions, "append", "read", "read"]:
            world.act(action)
        read = Counter(each + b"\n" for each in world.reader.lines)
        assert read == Counter(world.written)
