"""A JVM starts from the classes that an earlier one left, and does without them if need be."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aclbroker.pipeline.spark.java import Java, find_java
from aclbroker.pipeline.spark.jvm import installation, jvm_options
from tests.support import toolchain

_MAIN = """\
public class Main {
  public static void main(String[] words) { System.out.println(String.join(" ", words)); }
}
"""


def cached(place: Path, java: Java | None) -> str:
    return jvm_options(java, "4.1.0", {"XDG_CACHE_HOME": str(place)})


@pytest.fixture
def java() -> Java:
    toolchain.require_java()
    found = find_java(os.environ)
    assert found
    return found


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
    compiled: Path, tmp_path: Path, java: Java
):
    first = run(compiled, cached(tmp_path, java))
    second = run(compiled, cached(tmp_path, java))
    assert [line.partition("source: ")[2] for line in (first[0], second[0])] == [
        compiled.as_uri().replace("///", "/"),
        "shared objects file (top)",
    ]
    assert first[1] == second[1] == "it runs"


def test_an_archive_that_was_cut_off_is_written_anew(compiled: Path, tmp_path: Path, java: Java):
    run(compiled, cached(tmp_path, java))
    (archive,) = (tmp_path / "aclbroker").iterdir()
    archive.chmod(0o600)
    archive.write_bytes(bytes(1000))
    run(compiled, cached(tmp_path, java))
    assert "shared objects file (top)" in run(compiled, cached(tmp_path, java))[0]


def test_each_java_and_each_spark_has_an_archive_of_its_own(tmp_path: Path, java: Java):
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    options = {
        jvm_options(java._replace(version=version), spark, cache)
        for version in ("17", "21")
        for spark in ("4.1.0", "4.2.0")
    }
    assert len(options) == 4
    assert all(str(tmp_path) in each for each in options)


def test_a_spark_elsewhere_or_installed_anew_is_another_one(tmp_path: Path):
    homes = [tmp_path / "here", tmp_path / "there"]
    for home in homes:
        (home / "jars").mkdir(parents=True)
        os.utime(home / "jars", (1000, 1000))
    names = [installation("4.1.0", home) for home in homes]
    assert names == [installation("4.1.0", home) for home in homes]
    os.utime(homes[0] / "jars", (2000, 2000))
    names += [installation("4.1.0", homes[0]), installation("4.2.0", homes[0])]
    assert len(set(names)) == 4


def test_the_archives_that_were_used_last_are_kept(tmp_path: Path, java: Java):
    cached(tmp_path, java)
    place = tmp_path / "aclbroker"
    used = place / f"spark-4.1.0-java-{java.version}.jsa"
    others = [place / f"spark-4-{number}.jsa" for number in range(6)]
    for age, archive in enumerate([used, *others]):
        archive.write_bytes(b"classes")
        os.utime(archive, (1000 + age, 1000 + age))
    assert str(used) in cached(tmp_path, java)
    assert sorted(place.iterdir()) == sorted([used, *others[3:]])


@pytest.mark.parametrize("name", ["two words", 'quoted"', "a'b", "back\\slash"])
def test_a_directory_that_options_cannot_name_is_not_used(tmp_path: Path, name: str, java: Java):
    place = tmp_path / name
    place.mkdir()
    assert "Archive" not in cached(place, java)
    assert list(place.iterdir()) == []


def test_a_jvm_that_can_have_no_archive_is_asked_for_none(
    compiled: Path, tmp_path: Path, java: Java
):
    """One without an archive of Java's own classes does not start if it is to write another."""
    options = cached(tmp_path, java._replace(home=tmp_path))
    assert "Archive" not in options
    assert run(compiled, options)[1] == "it runs"
    file = tmp_path / "file"
    file.touch()
    assert "Archive" not in cached(file, java)
    assert "Archive" not in cached(tmp_path, None)
    assert "Archive" not in jvm_options(java, "4.1.0", {"XDG_CACHE_HOME": "relative"})
