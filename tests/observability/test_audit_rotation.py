"""Audit files that are rotated by size and by time, and how much of them is kept."""

import io
import json
import os
from pathlib import Path

import pytest

from aclbroker.broker.observability import logs
from aclbroker.broker.observability.audit_file import AuditFile
from aclbroker.broker.observability.audit_rotation import Rotation
from tests.observability.auditing import NOON


class Clock:
    now = NOON

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    stream = io.StringIO()
    logs.configure(form="json", stream=stream)
    return stream


def files(directory: Path) -> list[Path]:
    """The rotated files, the oldest first, and the present one."""
    return [*sorted(directory.glob("audit.*")), directory / "audit"]


def rotated(directory: Path, clock: Clock, *limits: int) -> AuditFile:
    return AuditFile(str(directory / "audit"), Rotation(*limits), 0, clock)


def test_no_file_is_larger_than_its_limit_and_no_line_is_lost(tmp_path: Path, clock: Clock):
    file = rotated(tmp_path, clock, 1000)
    lines = [f"{number:099}" for number in range(95)]
    for start in range(0, 95, 19):
        file.write(lines[start : start + 19])
    file.write(["x" * 3000])
    file.write(["after"])
    file.close()
    found = files(tmp_path)
    assert [path.stat().st_size for path in found] == [*[1000] * 9, 500, 3001, 6]
    assert "".join(path.read_text() for path in found).split() == [*lines, "x" * 3000, "after"]
    assert found[0].name.startswith("audit.20261121T120000.0")


def test_a_file_is_rotated_when_its_period_is_over(tmp_path: Path, clock: Clock):
    file = rotated(tmp_path, clock, 0, 3600)
    for line in ("a", "b"):
        file.write([line])
    clock.now += 3600
    file.write(["c"])
    clock.now += 7200
    file.write(["d"])
    file.close()
    assert [path.read_text() for path in files(tmp_path)] == ["a\nb\n", "c\n", "d\n"]


def test_a_file_of_an_earlier_period_is_rotated_after_a_restart(tmp_path: Path, clock: Clock):
    path = tmp_path / "audit"
    path.write_text("old\n")
    os.utime(path, (NOON - 3600, NOON - 3600))
    file = rotated(tmp_path, clock, 0, 3600)
    file.write(["new"])
    file.close()
    assert [path.read_text() for path in files(tmp_path)] == ["old\n", "new\n"]


def test_the_oldest_files_are_deleted_and_no_others(
    tmp_path: Path, clock: Clock, stream: io.StringIO
):
    others = [tmp_path / name for name in ("audit.1", "audit.old", "audit2", "audit.20261121")]
    for path in others:
        path.write_text("x" * 5000)
    file = rotated(tmp_path, clock, 100, 0, 350)
    for number in range(10):
        file.write([f"{number:079}"])
        own = [path for path in tmp_path.iterdir() if path not in others]
        assert sum(path.stat().st_size for path in own) <= 350
    file.close()
    kept = [path for path in files(tmp_path) if path not in others]
    assert [int(path.read_text()) for path in kept] == [6, 7, 8, 9]
    assert all(path.exists() for path in others)
    [first, *_] = map(json.loads, stream.getvalue().splitlines())
    assert first["event"] == "old audit files deleted"
    assert len(first["deleted"]) == 1


def test_a_file_that_others_moved_away_is_left_where_it_is(tmp_path: Path, clock: Clock):
    file = rotated(tmp_path, clock, 100)
    file.write(["x" * 90])
    (tmp_path / "audit").rename(tmp_path / "moved")
    file.write(["y" * 90])
    file.write(["z" * 90])
    file.close()
    assert (tmp_path / "moved").read_text() == "x" * 90 + "\n"
    assert [path.read_text()[0] for path in files(tmp_path)] == ["y", "z"]


def test_a_link_to_a_file_stays_a_link(tmp_path: Path, clock: Clock):
    (tmp_path / "real").mkdir()
    (tmp_path / "audit").symlink_to(tmp_path / "real" / "audit")
    file = rotated(tmp_path, clock, 100)
    for line in ("x" * 90, "y" * 90):
        file.write([line])
    file.close()
    assert (tmp_path / "audit").is_symlink()
    assert [path.read_text()[0] for path in files(tmp_path / "real")] == ["x", "y"]


def test_a_pipe_is_never_rotated(tmp_path: Path, clock: Clock):
    os.mkfifo(tmp_path / "audit")
    reader = os.open(tmp_path / "audit", os.O_RDWR | os.O_NONBLOCK)
    file = rotated(tmp_path, clock, 100, 60)
    for line in ("x" * 90, "y" * 90):
        file.write([line])
        clock.now += 60
    file.close()
    assert os.read(reader, 1000) == b"x" * 90 + b"\n" + b"y" * 90 + b"\n"
    os.close(reader)
    assert len(list(tmp_path.iterdir())) == 1


def test_if_rotating_fails_the_file_stays_in_use(tmp_path: Path, clock: Clock, stream: io.StringIO):
    directory = tmp_path / "gone"
    directory.mkdir()
    file = AuditFile(str(directory / "audit"), Rotation(100), 3600, clock)
    file.write(["x" * 90])
    directory.rename(tmp_path / "here")
    for _ in range(3):
        file.write(["y" * 90])
    file.close()
    assert (tmp_path / "here" / "audit").read_text().count("\n") == 4
    [error] = map(json.loads, stream.getvalue().splitlines())
    assert error["event"] == "audit file cannot be rotated"
