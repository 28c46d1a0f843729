"""Missing toolchains never pass unnoticed in CI, and what is fetched is whole and fetched once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import toolchain
from tests.support.toolchain import cached, require, require_java, run


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "CACHE", tmp_path)


def test_a_missing_program_skips_the_test_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not on PATH"):
        require("no-such-program")


def test_a_missing_program_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not on PATH"):
        require("no-such-program")


def test_a_java_that_is_too_old_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    require_java()
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="Java 999 or newer is needed"):
        require_java(minimum=999)


def test_runs_at_the_same_time_make_a_directory_once() -> None:
    made: list[Path] = []

    def make(directory: Path) -> None:
        made.append(directory)
        (directory / "jar").write_text("all of it")

    with ThreadPoolExecutor(4) as runs:
        found = list(runs.map(lambda _: cached("jars", ["pin 1"], make), range(4)))
    assert len(set(found)) == len(made) == 1
    assert (found[0] / "jar").read_text() == "all of it"


def test_another_pin_makes_another_directory() -> None:
    one, two = (cached("jars", [pin], lambda directory: None) for pin in ("pin 1", "pin 2"))
    assert one != two


def test_a_download_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def fail_halfway(directory: Path) -> None:
        (directory / "jar").write_text("half of")
        run(["false"], cwd=directory)

    with pytest.raises(RuntimeError, match="false exited 1"):
        cached("jars", ["pin 1"], fail_halfway)
    assert list(tmp_path.rglob("jar")) == []
    directory = cached("jars", ["pin 1"], lambda empty: None)
    assert list(directory.iterdir()) == []
