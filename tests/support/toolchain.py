"""Finds the toolchains of the tested clients and fetches their pinned packages once.

A missing toolchain skips the test with the reason, except where CI=true: there it fails.
Everything fetched or compiled lives in `cache_dir()`, in directories named after a hash of what
they were made from, so a changed pin makes a new directory and nothing is ever half there.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

CLIENTS = Path(__file__).parents[1] / "clients"
# Read at import, because tests of the pipeline set XDG_CACHE_HOME to a temporary directory.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def missing(reason: str) -> NoReturn:
    """Skip the running test, or fail it where CI=true: there every client has to be tested."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; tests skip nothing when CI=true", pytrace=False)
    pytest.skip(reason)


def require(program: str) -> str:
    """The path of a program on PATH, or `missing`."""
    return shutil.which(program) or missing(f"{program} is not on PATH")


@functools.cache
def _java_on_this_machine() -> tuple[str | None, int, str]:
    home = os.environ.get("JAVA_HOME")
    beside = shutil.which("java", path=f"{home}/bin") if home else None
    java = beside or shutil.which("java")
    if java is None:
        return None, 0, ""
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    return java, int(version[1]) if version else 0, told


def require_java(minimum: int = 11) -> str:
    """The `java` of JAVA_HOME or PATH if it is at least Java `minimum`, or `missing`."""
    java, version, _ = _java_on_this_machine()
    if java is None:
        missing("java is neither in JAVA_HOME nor on PATH")
    if version < minimum:
        missing(f"{java} is Java {version}; Java {minimum} or newer is needed")
    return java


def java_version() -> str:
    """All that `java -version` prints, or `missing`."""
    require_java()
    return _java_on_this_machine()[2]


def require_spark() -> None:
    """Skip the module that calls it, or fail it where CI=true, unless Spark can run here."""
    version = _java_on_this_machine()[1]
    if importlib.util.find_spec("pyspark") is None:
        reason = "pyspark is not installed: make setup-spark"
    elif version < 17:
        reason = f"Spark needs Java 17 or newer, in JAVA_HOME or on PATH; found {version or 'none'}"
    else:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; tests skip nothing when CI=true", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def cache_dir() -> Path:
    """Where downloads and compiled drivers are kept between test runs."""
    directory = CACHE / "aclbroker-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def cached(name: str, made_from: list[str], make: Callable[[Path], None]) -> Path:
    """The directory that `make` fills, made once for the same `name` and `made_from`.

    `make` gets an empty directory, which is renamed when it returns; of several test runs at
    the same time one makes it and the others wait.
    """
    key = hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]
    directory = cache_dir() / f"{name}-{key}"
    if directory.exists():
        return directory
    with _locked(cache_dir() / f"{name}-{key}.lock"):
        if not directory.exists():
            unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_dir()))
            try:
                make(unfinished)
                unfinished.rename(directory)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return directory


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    """Run a build command; RuntimeError with all that it printed if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} exited {done.returncode}:\n{done.stdout}")
