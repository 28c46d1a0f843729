"""Files that are renamed while they are read, and are found by how they begin."""

import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from aclbroker.pipeline.ingest import texts
from aclbroker.pipeline.ingest.texts import MovedError, Prefix, Text, digest, is_there, opened

LENGTH = 64


def text_of(number: int) -> bytes:
    return f"{number:06} ".encode() * 20


def prefix_of(number: int) -> Prefix:
    return Prefix(LENGTH, digest(text_of(number)[:LENGTH]))


def written(directory: Path, count: int) -> list[Path]:
    paths = [directory / f"{number:06}.log" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(text_of(number))
    return paths


class Opened(Text):
    """Counts the files that were opened."""

    count = 0

    def __init__(self, path: str) -> None:
        super().__init__(path)
        Opened.count += 1


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Opened]:
    monkeypatch.setattr(texts, "Text", Opened)
    Opened.count = 0
    return Opened


def test_of_a_directory_whose_files_were_all_renamed_each_is_looked_into_once(
    tmp_path: Path, counted: type[Opened]
) -> None:
    count = 200
    paths = written(tmp_path, count)
    for path in paths:
        path.rename(path.with_suffix(".log.1"))
    for number, path in enumerate(paths):
        with opened(str(path), prefix_of(number)) as found:
            assert found.path == f"{path}.1"
    # Once to know how all begin, and each when it is asked for.
    assert counted.count == 2 * count


def test_a_file_that_was_not_renamed_costs_no_look_at_others(
    tmp_path: Path, counted: type[Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written(tmp_path, 20)
    monkeypatch.setattr(os, "scandir", None)
    for number, path in enumerate(paths):
        opened(str(path), prefix_of(number)).close()
    assert counted.count == 20


def test_a_file_is_found_wherever_it_was_renamed_to_last(tmp_path: Path) -> None:
    """Also if the directory has the time that it had when it was listed."""
    path = written(tmp_path, 3)[1]
    for generation in range(1, 5):
        before = path.with_suffix(f".log.{generation - 1}") if generation > 1 else path
        before.rename(path.with_suffix(f".log.{generation}"))
        os.utime(tmp_path, ns=(1, 1))
        with opened(str(path), prefix_of(1)) as found:
            assert found.path == f"{path}.{generation}"


def test_a_file_written_anew_or_gone_is_an_error_that_says_so(tmp_path: Path) -> None:
    path, gone, other = map(str, written(tmp_path, 3))
    Path(path).write_bytes(text_of(7))
    Path(gone).unlink()
    for number, each in enumerate((path, gone)):
        with pytest.raises(MovedError, match="was rotated, or written anew, while it was read"):
            opened(each, prefix_of(number))
        assert not is_there(each, prefix_of(number), LENGTH)
    assert is_there(other, prefix_of(2), len(text_of(2)))
    assert not is_there(other, prefix_of(2), len(text_of(2)) + 1)
    assert not is_there(str(tmp_path / "none" / "a.log"), prefix_of(0), LENGTH)
