"""Brings this program to the workers of a Spark cluster, whose Python needs pyarrow alone."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import aclbroker
from aclbroker import acl, pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE: Final = "aclbroker-pipeline.zip"

_IN_THIS_PROCESS: Final = re.compile(r"local(\[.*\])?")
# A file's time would make each archive a different one.
_TIME: Final = (2020, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> None:
    """Let the workers of a session import `pipeline`, and `acl`, which it needs.

    Workers on this machine, in the master's own process, have them already. What came from an
    archive itself, as with ``spark-submit --py-files``, is shipped by whoever named the archive.
    """
    context = spark.sparkContext
    if is_in_this_process(context.master) or not _home(pipeline).is_dir():
        return
    # Workers fetch the file whenever they start.
    directory = tempfile.mkdtemp(prefix="aclbroker-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = Path(directory, ARCHIVE)
    write_archive(path)
    context.addPyFile(str(path))


def is_in_this_process(master: str) -> bool:
    """Tell whether the workers of a master run on this machine, as part of its own process."""
    return _IN_THIS_PROCESS.fullmatch(master) is not None


def write_archive(path: Path) -> None:
    """Write an archive that Python can import the program from. Raises OSError."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(_modules()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), source.read_bytes())


def _modules() -> Iterator[tuple[str, Path]]:
    modules = "__init__.py", "terminal.py", "turns.py"
    trees = *((aclbroker, name) for name in modules), (acl, "**/*.py"), (pipeline, "**/*.py")
    for package, files in trees:
        home = _home(package)
        folder = package.__name__.replace(".", "/")
        for source in home.glob(files):
            yield f"{folder}/{source.relative_to(home).as_posix()}", source


def _home(package: ModuleType) -> Path:
    return Path(str(package.__file__)).parent
