"""Asks the workers of a cluster, before any work, whether they have what this program needs."""

from __future__ import annotations

import importlib
import os
import platform
import re
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.pipeline.spark.session import SparkUnavailableError
from aclbroker.pipeline.spark.shipping import is_in_this_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES: Final = ("numpy", "pyarrow")
_PATIENCE: Final = 60.0
"""How many seconds a standalone cluster may take to start a first executor."""

_PAUSE: Final = 0.1
_TOLD: Final = re.compile(r".*(PYTHON_VERSION_MISMATCH|Cannot run program|ModuleNotFoundError).*")


class Lack(NamedTuple):
    """What the Python of a worker lacks: modules, and files or directories."""

    host: str
    python: str
    modules: tuple[str, ...]
    paths: tuple[str, ...]


def check_workers(spark: SparkSession, inputs: Sequence[str], output: str) -> None:
    """Have each executor look whether its Python can work here, and sees files of this machine.

    Workers in this process can. An ``output`` on this machine is made for it. Raises
    SparkUnavailableError, which says what they lack.
    """
    context = spark.sparkContext
    if is_in_this_process(context.master):
        return
    if context.master.startswith("spark://"):
        _await_executor(context)
    if "://" not in output:
        os.makedirs(output, exist_ok=True)
    local = [os.path.abspath(each) for each in (*inputs, output) if os.path.exists(each)]
    tasks = max(context.defaultParallelism, 2 * _executors(context))
    from py4j.protocol import Py4JJavaError

    try:
        # They are of no place, so that each executor gets some.
        found = context.parallelize(range(tasks), tasks).mapPartitions(_Probe(local)).collect()
    except Py4JJavaError as error:
        raise SparkUnavailableError(
            f"the workers of {context.master} cannot run this program: {_reason(str(error))}; name "
            f"a Python {_VERSION} with numpy and pyarrow that all of them have, with "
            "--spark spark.pyspark.python=PATH"
        ) from error
    if lacks := told(found):
        raise SparkUnavailableError(f"the workers of {context.master} cannot work: {lacks}")


_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


def told(lacks: Iterable[Lack]) -> str:
    """Return what to say of what workers lack, "" if they lack nothing."""
    found = sorted(set(lacks))
    sentences = [
        f"{each.python} on {each.host} has no {' and no '.join(each.modules)}"
        for each in found
        if each.modules
    ] + [
        f"{each.host} has no {', '.join(each.paths)}: put it where all workers see it, or use an "
        "URL that they reach"
        for each in found
        if each.paths
    ]
    more = len(sentences) - _NAMED
    return "; ".join(sentences[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


_NAMED: Final = 4


class _Probe:
    """Looks, in a worker, what is not there."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)

    def __call__(self, numbers: Iterator[int]) -> Iterator[Lack]:
        found = lack(_MODULES, self._paths)
        if found.modules or found.paths:
            yield found


def lack(modules: Sequence[str], paths: Sequence[str]) -> Lack:
    """Return which of these modules and paths this process does not have."""
    missing = tuple(each for each in modules if not _imports(each))
    python = f"Python {platform.python_version()} ({sys.executable})"
    unseen = tuple(each for each in paths if not os.path.exists(each))
    return Lack(socket.gethostname(), python, missing, unseen)


def _imports(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _await_executor(context: Any) -> None:
    end = time.monotonic() + _PATIENCE
    while not _executors(context):
        if time.monotonic() > end:
            raise SparkUnavailableError(
                f"{context.master} has given this program no executor in {_PATIENCE:.0f} seconds: "
                "are there workers that have cores and memory left (spark.executor.memory), and "
                "can they reach this machine (spark.driver.host)?"
            )
        time.sleep(_PAUSE)


def _executors(context: Any) -> int:
    """Return how many executors there are now; the driver counts among them in Spark's list."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def _reason(text: str) -> str:
    """Return the line of Spark's error that says why Python did not start, or else its first."""
    lines = text.splitlines()
    line = next((each for each in lines if _TOLD.match(each)), lines[0] if lines else "")
    return line.strip()
