"""The Pythons of this machine, and environments of packages made with them."""

import functools
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tests.support.toolchain import missing, run

ROOT = Path(__file__).parents[2]
LOCKS = ("runtime.lock", "spark.lock")


@functools.cache
def _python(version: str) -> str | None:
    for command in _candidates(version):
        asked = subprocess.run(
            [command, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.stdout.strip() == version:
            return command
    return None


def _candidates(version: str) -> Iterator[str]:
    name = f"python{version}"
    if on_path := shutil.which(name):
        yield on_path
    # The command on PATH may be pyenv's own, which runs only the versions that are chosen.
    if pyenv := shutil.which("pyenv"):
        found = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
        versions = Path(found.stdout.strip()) / "versions"
        yield from sorted(str(each) for each in versions.glob(f"{version}.*/bin/{name}"))


def require_python(version: str) -> str:
    """The command of a Python of this version (as "3.12"), or `missing`."""
    return _python(version) or missing(f"Python {version} is neither on PATH nor with pyenv")


def new_environment(version: str, directory: Path) -> Path:
    """Make a virtual environment without packages; returns its Python."""
    run([require_python(version), "-m", "venv", str(directory)], cwd=directory.parent)
    return directory / "bin" / "python"


def constraints(file: Path) -> Path:
    """Write the versions that the locks have, without hashes: a wheel just built has none there."""
    pins = {
        line.removesuffix("\\").strip()
        for lock in LOCKS
        for line in (ROOT / "requirements" / lock).read_text().splitlines()
        if re.match(r"[a-z0-9]", line)
    }
    file.write_text("\n".join(sorted(pins)) + "\n")
    return file


def lend(python: Path, *packages: str) -> None:
    """Have an environment use the copies that these tests run with: half a gigabyte of Spark's.

    For packages that have nothing compiled. pip takes them for installed.
    """
    [there] = (python.parents[1] / "lib").glob("python*/site-packages")
    here = Path(sysconfig.get_path("purelib"))
    for package in packages:
        for part in (here / package, *here.glob(f"{package}-*.dist-info")):
            (there / part.name).symlink_to(part)
