"""Lines for a reader that is slow, gone, or has a full disk: what is lost is counted and told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from aclbroker.broker.observability.log_writer import MOST_WAITING, LogWriter
from tests.support.process import wait_for

SECONDS = 20


def notice(count: int) -> bytes:
    return b"%d lost" % count


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        os.close(descriptor)


def has_lost(writer: LogWriter, count: int) -> bool | None:
    return writer.lost == count or None


def lines_of(reader: int, count: int) -> list[bytes]:
    """Read so many lines."""
    text = b""
    while text.count(b"\n") < count:
        text += os.read(reader, 65_536)
    assert text.endswith(b"\n")
    return text.splitlines()


def stuck(writer: LogWriter, number: int = 0) -> bytes:
    """Give the writer a line that no pipe holds, and wait until it has begun with it."""
    line = b"%d" % number * 1_000_000
    writer.write([line])
    wait_for("the line to be taken", lambda: not writer._waiting or None, SECONDS)
    return line


def test_lines_are_written_in_their_order(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, notice)
    for number in range(1_000):
        writer.write([b"a%d" % number, b"b%d" % number])
    expected = [b"%s%d" % (name, number) for number in range(1_000) for name in (b"a", b"b")]
    assert lines_of(reader, 2_000) == expected
    writer.close(SECONDS)
    assert (writer.lost, writer.is_losing) == (0, False)


def test_what_a_reader_does_not_read_is_bounded_and_the_loss_told_in_its_place(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, notice, 2_000_000)
    first = stuck(writer)
    numbers = [b"%099d" % number for number in range(30_000)]
    for line in numbers:
        writer.write([line])
    writer.write([b"short, behind those that were lost"])
    assert writer._size <= 2_000_000
    kept = 2_000_000 // 100
    lost = len(numbers) - kept + 1
    assert (writer.lost, writer.is_losing) == (lost, True)
    assert lines_of(reader, kept + 2) == [first, *numbers[:kept], notice(lost)]
    writer.write([b"again"])
    assert lines_of(reader, 1) == [b"again"]
    writer.close(SECONDS)
    assert (writer.lost, writer.is_losing) == (lost, False)


def test_the_end_does_not_wait_for_a_reader_who_does_not_come(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, notice)
    line = stuck(writer)
    writer.close(0.01)
    assert writer._thread is not None
    assert writer._thread.is_alive()
    # It must not write to what has the descriptor's number after the test.
    assert lines_of(reader, 1) == [line]
    writer._thread.join(SECONDS)


def test_what_waits_is_written_at_the_end(pipe):
    reader, descriptor = pipe
    writer = LogWriter(descriptor, notice)
    writer.write(b"%d" % number for number in range(5_000))
    writer.close(SECONDS)
    assert lines_of(reader, 5_000) == [b"%d" % number for number in range(5_000)]


def test_a_line_is_in_a_file_at_once(tmp_path: Path):
    path = tmp_path / "log"
    with path.open("ab") as file:
        writer = LogWriter(file.fileno(), notice)
        for number in range(100):
            writer.write([b"%d" % number])
            assert path.read_bytes().endswith(b"%d\n" % number)
        writer.write([b"x" * MOST_WAITING] * 2)
        writer.close(SECONDS)
    assert path.stat().st_size > 2 * MOST_WAITING
    assert writer.lost == 0


def test_lines_that_a_full_disk_did_not_take_are_told_when_it_takes_some_again(tmp_path: Path):
    path = tmp_path / "log"
    with path.open("ab") as file, open("/dev/full", "ab") as full:
        descriptor = os.dup(full.fileno())
        writer = LogWriter(descriptor, notice)
        for expected in (1, 2, 3):
            writer.write([b"lost"])
            wait_for("its loss", partial(has_lost, writer, expected), SECONDS)
        assert writer.is_losing
        os.dup2(file.fileno(), descriptor)
        writer.write([b"kept"])
        writer.close(SECONDS)
        os.close(descriptor)
    assert path.read_bytes() == b"3 lost\nkept\n"
    assert (writer.lost, writer.is_losing) == (3, False)


@pytest.mark.parametrize("is_file", [False, True])
def test_a_line_that_was_cut_off_stays_on_its_own(pipe, tmp_path: Path, monkeypatch, is_file):
    class TakesThree:
        """A disk with room for three bytes, and then for any number."""

        def __init__(self) -> None:
            self.took = b""
            self.full = False

        def __call__(self, descriptor: int, data: memoryview) -> int:
            if self.full:
                self.full = False
                raise OSError(28, "No space left on device")
            self.full = not self.took
            taken = bytes(data[:3] if self.full else data)
            self.took += taken
            return len(taken)

    disk = TakesThree()
    with (tmp_path / "log").open("ab") as file:
        writer = LogWriter(file.fileno() if is_file else pipe[1], notice)
        monkeypatch.setattr(os, "write", disk)
        writer.write([b"a", b"bcdef", b"g"])
        wait_for("the loss", lambda: writer.lost == 2 or None, SECONDS)
        assert writer.is_losing
        writer.write([b"h"])
        writer.close(SECONDS)
    assert (writer.lost, writer.is_losing) == (2, False)
    assert disk.took == b"a\nb\n2 lost\nh\n"


def test_a_disk_that_stays_full_does_not_hold_up_the_end():
    with open("/dev/full", "ab") as full:
        writer = LogWriter(full.fileno(), notice)
        writer.write([b"lost"])
        wait_for("its loss", lambda: writer.lost or None, SECONDS)
        writer.close(SECONDS)
        assert writer._thread is not None
        assert not writer._thread.is_alive()


def test_a_descriptor_that_somebody_made_non_blocking_is_waited_for(pipe):
    reader, descriptor = pipe
    os.set_blocking(descriptor, False)
    writer = LogWriter(descriptor, notice)
    line = stuck(writer)
    assert lines_of(reader, 1) == [line]
    writer.close(SECONDS)
    assert writer.lost == 0
