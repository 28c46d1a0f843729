"""Which Java is taken."""

import subprocess
from pathlib import Path

import pytest

from aclbroker.pipeline.spark.java import find_java, write_launcher


def a_java(directory: Path, printed: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '    java.home = {directory}' >&2\necho '{printed}' >&2\n")
    java.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25.0.2" 2026-01-20 LTS', 25),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "11.0.27" 2025-04-15', 11),
        ('java version "1.8.0_202"', 8),
        ("no java", None),
    ],
)
def test_java_is_asked_for_its_version_and_its_home(
    tmp_path: Path, printed: str, major: int | None
):
    home = a_java(tmp_path / "java", printed)
    for environment in ({"JAVA_HOME": str(home)}, {"PATH": f"{tmp_path}:{home}/bin"}):
        java = find_java(environment)
        assert (java and (java.major, java.home)) == (major and (major, home))


def test_java_home_counts_before_the_path(tmp_path: Path):
    old = a_java(tmp_path / "old", 'java version "1.8.0_202"')
    new = a_java(tmp_path / "new", 'openjdk version "17.0.15"')
    assert find_java({"JAVA_HOME": str(old), "PATH": f"{new}/bin"}) == ("1.8.0_202", old)
    assert find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": f"{new}/bin"}) is None
    assert find_java({}) is None


def test_the_launcher_leaves_out_the_module_that_a_small_java_does_not_have(tmp_path: Path):
    write_launcher(tmp_path, "/bin/echo")
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=\"y\" 'z'", ""]
    printed = subprocess.run(
        [tmp_path / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "-cp a b:* -Dx=\"y\" 'z' \n"
