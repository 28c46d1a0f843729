"""A JVM starts from the classes that an earlier one left, and does without them if need be."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.spark.java import java_version
from pipeline.spark.jvm import jvm_options
from tests.support import toolchain

_MAIN = """\
public class Main {
  public static void main(String[] words) { System.out.println(String.join(" ", words)); }
}
"""


def cached(place: Path, java: str | None = "17.0.15") -> str:
    return jvm_options(java, "4.1.0", {"XDG_CACHE_HOME": str(place)})


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    toolchain.require_java()
    source = tmp_path / "Main.java"
    source.write_text(_MAIN)
    # Only classes of a jar are archived.
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    subprocess.run(
        ["jar", "--create", "--file", "main.jar", "Main.class"], cwd=tmp_path, check=True
    )
    return tmp_path / "main.jar"


def run(compiled: Path, options: str) -> list[str]:
    """Return what is printed of Main: where it was loaded from, and what it says."""
    java = shutil.which("java")
    assert java
    words = [java, *options.split(), "-Xlog:class+load", "-cp", str(compiled), "Main", "it runs"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True)
    assert printed.stderr == ""
    lines = printed.stdout.splitlines()
    return [line for line in lines if " Main source" in line or "runs" in line]


def test_the_second_session_loads_the_classes_that_the_first_one_archived(
    compiled: Path, tmp_path: Path
):
    version = java_version(os.environ)
    first = run(compiled, cached(tmp_path, version))
    second = run(compiled, cached(tmp_path, version))
    assert [line.partition("source: ")[2] for line in (first[0], second[0])] == [
        compiled.as_uri().replace("///", "/"),
        "shared objects file (top)",
    ]
    assert first[1] == second[1] == "it runs"


def test_an_archive_that_was_cut_off_is_written_anew(compiled: Path, tmp_path: Path):
    version = java_version(os.environ)
    run(compiled, cached(tmp_path, version))
    (archive,) = (tmp_path / "aclbroker").iterdir()
    archive.chmod(0o600)
    archive.write_bytes(bytes(1000))
    run(compiled, cached(tmp_path, version))
    assert "shared objects file (top)" in run(compiled, cached(tmp_path, version))[0]


def test_each_java_and_each_spark_has_an_archive_of_its_own(tmp_path: Path):
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    options = {
        jvm_options(java, spark, cache) for java in ("17", "21") for spark in ("4.1.0", "4.2.0")
    }
    assert len(options) == 4
    assert all(str(tmp_path) in each for each in options)


@pytest.mark.parametrize("name", ["two words", 'quoted"', "a'b", "back\\slash"])
def test_a_directory_that_options_cannot_name_is_not_used(tmp_path: Path, name: str):
    place = tmp_path / name
    place.mkdir()
    assert "Archive" not in cached(place)
    assert list(place.iterdir()) == []


def test_without_a_directory_or_a_version_there_is_no_archive(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    assert "Archive" not in cached(file)
    assert "Archive" not in cached(tmp_path, None)
    assert "Archive" not in jvm_options("17", "4.1.0", {"XDG_CACHE_HOME": "relative"})
