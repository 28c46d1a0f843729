"""Reading pieces of files as lines."""

import bz2
import gzip
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.ingest import pieces
from aclbroker.pipeline.ingest.pieces import LineTooLongError, read_lines
from aclbroker.pipeline.ingest.texts import MovedError, Prefix, digest


def lines_of(path: Path, *starts: int) -> list[bytes]:
    """The lines of a file that is read in pieces which begin at some bytes."""
    bounds = [*starts, path.stat().st_size]
    return [
        line
        for start, end in pairwise(bounds)
        for lines in read_lines(str(path), start, end)
        for line in lines.array.to_pylist()
    ]


def whole(path: Path) -> list[bytes]:
    """The lines of a compressed file."""
    return [line for lines in read_lines(str(path), 0, None) for line in lines.array.to_pylist()]


def expected(text: bytes) -> list[bytes]:
    found = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return found[:-1] if not found[-1] else found


@pytest.fixture(params=[1, 3, 128, 16 << 20], ids=["1 byte", "3 bytes", "128 bytes", "16 MiB"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has files read so many bytes at a time."""
    monkeypatch.setattr(pieces, "_AT_ONCE", request.param)
    monkeypatch.setattr(pieces, "BLOCK", min(request.param, 1 << 18))


TEXTS = st.lists(
    st.sampled_from([b"", b"a", b"bc", b"\r", b"\n", b"\n\n", b"\xff", b"\xef\xbb\xbf"])
)


@pytest.mark.usefixtures("at_once")
def test_each_line_is_read_once_wherever_the_pieces_begin() -> None:
    @given(TEXTS.map(b"".join), st.sets(st.integers(1, 20)))
    @example((b"\n\n" + b"a" * 62) * 4, set())
    @example((b"a" * 63 + b"\n") * 4, set())
    def check(text: bytes, starts: set[int]) -> None:
        with TemporaryDirectory() as directory:
            path = Path(directory, "a.log")
            path.write_bytes(text)
            cuts = sorted(start for start in starts if start < len(text))
            assert lines_of(path, 0, *cuts) == expected(text)

    check()


@pytest.mark.usefixtures("at_once")
def test_a_compressed_file_is_read_as_a_whole(tmp_path: Path) -> None:
    text = b"a\nbc\n\nd"
    zstd = pa.Codec("zstd")
    for name, data in {
        "a.gz": gzip.compress(text[:3]) + gzip.compress(text[3:]),
        "a.bz2": bz2.compress(text),
        "a.zst": zstd.compress(text[:3], asbytes=True) + zstd.compress(text[3:], asbytes=True),
    }.items():
        (tmp_path / name).write_bytes(data)
        assert whole(tmp_path / name) == expected(text)


@pytest.mark.parametrize(("end", "codec"), [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bz2")])
def test_a_compressed_file_that_is_cut_off_is_an_error_and_an_empty_one_is_none(
    tmp_path: Path, end: str, codec: str
) -> None:
    path = tmp_path / f"a.{end}"
    with pa.CompressedOutputStream(str(path), codec) as stream:
        stream.write(b"".join(f"{number}\n".encode() for number in range(1000)))
    data = path.read_bytes()
    for cut in (1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(OSError, match=rf"a\.{end}: .*(?i:truncated|ended|eof)"):
            whole(path)
    path.write_bytes(b"")
    assert whole(path) == []


def test_a_line_that_does_not_fit_into_memory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_AT_ONCE": 10, "BLOCK": 10, "_LONGEST_LINE": 100}.items():
        monkeypatch.setattr(pieces, name, value)
    path = tmp_path / "a.log"
    path.write_bytes(b"a\n" + b"b" * 110 + b"\n")
    with pytest.raises(LineTooLongError, match=r"a\.log: .* more than 100 bytes"):
        lines_of(path, 0)
    path.write_bytes(b"a\n" + b"b" * 99 + b"\nc")
    assert lines_of(path, 0, 50) == [b"a", b"b" * 99, b"c"]


def test_a_compressed_file_is_read_on_from_a_byte_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\nbc\n\nd"))
    for start, rest in {0: ["a", "bc", "", "d"], 2: ["bc", "", "d"], 3: ["", "d"], 8: []}.items():
        found = [
            line for lines in read_lines(str(path), start, None) for line in lines.array.to_pylist()
        ]
        assert found == [line.encode() for line in rest], start


def test_a_file_that_was_renamed_is_read_where_it_lies_now(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    prefix = Prefix(4, digest(b"one\n"))
    path.rename(tmp_path / "a.log.1")
    path.write_bytes(b"three\nfour\n")
    (found,) = read_lines(str(path), 4, 8, prefix)
    assert found.array.to_pylist() == [b"two"]
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress((tmp_path / "a.log.1").read_bytes()))
    (tmp_path / "a.log.1").unlink()
    (found,) = read_lines(str(path), 4, 8, prefix)
    assert found.array.to_pylist() == [b"two"]
    (tmp_path / "a.log.1.gz").unlink()
    with pytest.raises(MovedError, match=r"a\.log was rotated"):
        list(read_lines(str(path), 4, 8, prefix))


def test_a_file_that_is_cut_off_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    lines = read_lines(str(path), 0, 8, Prefix(4, digest(b"one\n")))
    next(lines)
    path.write_bytes(b"")
    with pytest.raises(MovedError, match="cut off"):
        list(lines)
