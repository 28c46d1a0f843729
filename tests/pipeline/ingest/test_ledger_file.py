"""The file of a ledger: nothing lost and nothing twice, wherever a run is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import tracemalloc
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest import ledger_file as module
from aclbroker.pipeline.ingest.known_files import Known
from aclbroker.pipeline.ingest.ledger import MARKS, Change, Ledger
from aclbroker.pipeline.ingest.ledger_file import LedgerFile, LocalFile, RemoteFile, ledger_file
from aclbroker.pipeline.ingest.sources import IngestError
from aclbroker.pipeline.local.session import LocalSession


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "_checkpoints" / "ledger.json"


def digest(of: object) -> bytes:
    return blake2b(repr(of).encode(), digest_size=16).digest()


def known(number: int, length: int = 1 << 20, seen: int = 1) -> Known:
    marks = b"".join(digest((number, mark)) for mark in MARKS if mark <= length)
    signatures = tuple(f"64768:{number}:{length}:{each}" for each in range(seen))
    directory = f"/var/log/cluster-{number % 7}/"
    line, tail = digest((number, "line")), digest((number, length))
    return Known(f"{directory}audit-\udcff-{number}.jsonl", length, marks, line, tail, signatures)


def batch(number: int, *files: tuple[int, Known]) -> Change:
    return Change(number, {f"/var/log/{number % 2}.log": number / 8}, files)


COMMITS = (
    batch(1, *((number, known(number)) for number in range(30))),
    batch(2, (3, known(3, 1 << 21)), (30, known(30, 40))),
    Change(2, {"/other": 1.5}, ()),
    batch(3, *((number, known(number, 1 << 22, 4)) for number in range(30))),
    batch(4, (31, known(31, 64))),
)
"""The second, the third and the last are written behind what is there; the fourth is not only."""


def said(ledger: Ledger | None) -> tuple[Any, ...]:
    if ledger is None:
        return 0, {}, []
    files = [ledger.files[position] for position in range(len(ledger.files))]
    return ledger.batch, ledger.newest, files


def states() -> list[tuple[Any, ...]]:
    """What a ledger says after none, one, two ... of the commits."""
    ledger, found = Ledger(), [said(None)]
    for change in COMMITS:
        ledger.apply(change)
        found.append((ledger.batch, dict(ledger.newest), said(ledger)[2]))
    return found


def loaded(path: Path) -> tuple[Any, ...]:
    return said(LocalFile(path).load())


def commit(path: Path, *changes: Change) -> None:
    """Commit in a new run."""
    file = LocalFile(path)
    ledger = file.load() or Ledger()
    for change in changes:
        file.commit(ledger, change)


def test_what_was_committed_is_loaded_by_the_next_run(path: Path) -> None:
    assert LocalFile(path).batch() is None
    for change, state in zip(COMMITS, states()[1:], strict=True):
        commit(path, change)
        assert loaded(path) == state
        assert LocalFile(path).batch() == state[0]


def test_a_commit_is_written_behind_what_is_there(path: Path) -> None:
    commit(path, batch(1, *((number, known(number)) for number in range(1000))))
    before = path.read_bytes()
    commit(path, batch(2, (7, known(7, 1 << 21))))
    text = path.read_bytes()
    assert text.startswith(before)
    assert len(text) - len(before) < 1000
    commit(path, Change(2, {}, ()))
    assert path.read_bytes() == text


@pytest.mark.parametrize("is_new_run", [False, True])
def test_the_file_is_made_anew_when_more_was_written_behind_than_there_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_new_run: bool
) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    commit(path, batch(1, *((number, known(number)) for number in range(20))))
    first, largest = path.stat().st_size, 0
    changes = [batch(number, (number % 20, known(number % 20))) for number in range(2, 300)]
    for some in [[each] for each in changes] if is_new_run else [changes]:
        commit(path, *some)
        largest = max(largest, path.stat().st_size)
    assert largest < 3 * first
    assert loaded(path)[0] == 299
    assert [each.length for each in loaded(path)[2]] == [1 << 20] * 20


def test_of_a_commit_that_was_killed_nothing_counts_wherever_it_was_cut(path: Path) -> None:
    states_before = states()
    commit(path, COMMITS[0])
    for number, change in enumerate(COMMITS[1:], 1):
        before = path.read_bytes()
        commit(path, change)
        after = path.read_bytes()
        for cut in range(len(before), len(after), 3 if len(after) - len(before) < 2000 else 997):
            path.write_bytes(after[:cut])
            assert loaded(path) == states_before[number]
            # What the next run commits is another thing.
            commit(path, batch(9, (0, known(99))))
            assert loaded(path)[0] == 9
            assert loaded(path)[2][0] == known(99)
        path.write_bytes(after)


def killed_at(step: int, work: Callable[[Callable[[], object]], None]) -> tuple[int, bool]:
    """Work in a process that is killed before a line of the ledger's modules is run.

    Return how often the work told that a part is done, and whether it came to its end.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        steps = 0

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal steps
            if "ledger_" not in frame.f_code.co_filename.rpartition("/")[2]:
                return None
            steps += event == "line"
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        try:
            work(lambda: os.write(writing, b"."))
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as file:
        return len(file.read()), status == 0


@pytest.mark.thorough
def test_killed_at_any_step_it_knows_what_was_committed_and_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    expected = states()
    ends: set[int] = set()

    def work(tell: Callable[[], object]) -> None:
        file = LocalFile(path)
        ledger = file.load() or Ledger()
        for change in COMMITS:
            file.commit(ledger, change)
            tell()

    is_done, step = False, 1
    while not is_done:
        for each in path.parent.glob("*"):
            each.unlink()
        done, is_done = killed_at(step, work)
        found = loaded(path)
        assert found in expected[done : done + 2]
        ends.add(expected.index(found))
        commit(path, *COMMITS[expected.index(found) :])
        assert loaded(path) == expected[-1]
        assert [each.name for each in path.parent.iterdir()] == ["ledger.json"]
        # Lines of files are alike.
        step += 1 if step < 60 else 29
        assert step < 100_000
    assert ends == {*range(len(COMMITS) + 1)}


@pytest.mark.parametrize("bit", [0x01, pytest.param(0x20, marks=pytest.mark.thorough)])
def test_a_ledger_of_which_any_byte_is_another_is_refused_and_left_as_it_is(
    path: Path, bit: int
) -> None:
    commit(path, batch(1, (0, known(0, 200)), (1, known(1, 50))))
    commit(path, batch(2, (2, known(2, 90))))
    text = path.read_bytes()
    for place in range(len(text)):
        damaged = bytearray(text)
        damaged[place] ^= bit
        path.write_bytes(damaged)
        for look in (LocalFile(path).load, LocalFile(path).batch):
            with pytest.raises(IngestError, match=r"ledger\.json, .* is damaged .*another output"):
                look()
        assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "\n",
        '{"version": 3}\n',
        '{"version": 2}\n',
        '{"version": 1, "batch": 1}',
        '{"version": 1, "batch": 1, "newest": {}, "files": [{}]}',
        '{"version": 1, "batch": 1, "newest": {}, "fil',
    ],
)
def test_what_is_no_ledger_is_refused(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    for look in (LocalFile(path).load, LocalFile(path).batch):
        with pytest.raises(IngestError, match=r"ledger\.json, .* is damaged .*another output"):
            look()
    assert path.read_text() == text


def old(ledger: tuple[Any, ...]) -> str:
    """The ledger as version 0.1 wrote it."""
    number, newest, files = ledger
    said = [
        {
            "path": each.path,
            "length": each.length,
            "marks": [each.marks[i : i + 16].hex() for i in range(0, len(each.marks), 16)],
            "line": each.line.hex(),
            "tail": each.tail.hex(),
            "seen": each.seen,
        }
        for each in files
    ]
    return json.dumps({"version": 1, "batch": number, "newest": newest, "files": said})


def test_an_old_ledger_is_gone_on_with(path: Path) -> None:
    path.parent.mkdir()
    expected = states()
    path.write_text(old(expected[4]))
    assert loaded(path) == expected[4]
    assert LocalFile(path).batch() == expected[4][0]
    assert path.read_text() == old(expected[4])
    commit(path, COMMITS[4])
    assert loaded(path) == expected[5]
    assert path.read_bytes().startswith(b'{"version": 2}\n')
    path.write_text(old(expected[4]))
    commit(path, Change(3, {}, ()))
    assert path.read_bytes().startswith(b'{"version": 2}\n')
    damaged = old(expected[4]).replace(known(3).line.hex(), "00")
    path.write_text(damaged)
    with pytest.raises(IngestError, match="is damaged"):
        LocalFile(path).load()


def test_at_a_url_each_commit_writes_the_ledger_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "local_path", lambda spark, place: None)
    session: Any = LocalSession(lambda name: [])

    def open_file() -> LedgerFile:
        found = ledger_file(session, str(path.parent))
        assert isinstance(found, RemoteFile)
        return found

    assert open_file().load() is None
    assert open_file().batch() is None
    for change, state in zip(COMMITS, states()[1:], strict=True):
        file = open_file()
        ledger = file.load() or Ledger()
        file.commit(ledger, change)
        assert said(open_file().load()) == state
        assert open_file().batch() == state[0]
        before = path.stat().st_mtime_ns, path.read_bytes()
        file.commit(ledger, Change(ledger.batch, {}, ()))
        assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(IngestError, match="is damaged"):
        open_file().load()


@pytest.mark.thorough
def test_a_known_file_takes_less_than_600_bytes_of_memory(path: Path) -> None:
    count = 20_000
    commit(path, batch(1, *((number, known(number)) for number in range(count))))
    tracemalloc.start()
    try:
        ledger = LocalFile(path).load()
        assert ledger is not None
        assert ledger.files.are_seen(["64768:77:1048576:0", "64768:77:1048576:1"]) == [True, False]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 600 * count
