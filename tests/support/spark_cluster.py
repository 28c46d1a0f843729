"""A Spark cluster on loopback: a standalone master with workers, from pyspark's own jars."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
import venv
from functools import partial
from itertools import pairwise
from pathlib import Path

from tests.support.packages import java_command
from tests.support.process import LoggedProcess, wait_for

ADDRESS = "127.0.0.1"
READY_WITHIN = 60.0

# A daemon that starts fast; what runs on the cluster is not in it.
_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


def bare_python(directory: Path, *packages: str) -> Path:
    """The Python of a new environment in which only these installed packages can be imported."""
    venv.create(directory, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = directory / "lib" / version / "site-packages"
    for name in packages:
        source = _home(name)
        (site_packages / name).symlink_to(source)
        # Where wheels keep the libraries that they bring along.
        libraries = source.with_name(f"{name}.libs")
        if libraries.exists():
            (site_packages / libraries.name).symlink_to(libraries)
    return directory / "bin" / "python"


class SparkCluster:
    """A master and its workers, each with one core, which listen on loopback alone."""

    def __init__(self, directory: Path, workers: int) -> None:
        home = _home("pyspark")
        (core,) = (home / "jars").glob("spark-core_*.jar")
        environment = {
            "SPARK_HOME": str(home),
            # The script that starts workers would find it out.
            "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],
            "SPARK_LOCAL_IP": ADDRESS,
            "PYTHONPATH": "",
        }
        self._directory = directory
        self._workers = workers
        self._java = java_command("", home / "jars", minimum=17, flags=_FLAGS)[:-1]
        self._environment = environment
        self._processes: list[LoggedProcess] = []

    def start(self) -> str:
        """Start all and return the master's URL when every worker has registered."""
        options = ["--host", ADDRESS, "--webui-port", "0"]
        master = self._spawn("master", "master.Master", *options, "--port", "0")
        url = master.wait_until_ready(
            lambda: re.search(r"Starting Spark master at (spark://\S+)", master.log_text()),
            READY_WITHIN,
        )[1]
        for number in range(self._workers):
            where = ["--work-dir", str(self._directory / "work")]
            size = ["--cores", "1", "--memory", "1g"]
            self._spawn(f"worker-{number}", "worker.Worker", *options, *where, *size, url)
        for worker in self._processes[1:]:
            worker.wait_until_ready(partial(_is_registered, worker), READY_WITHIN)
        return url

    def lose_worker(self, tasks: int, seconds: float) -> None:
        """Kill a worker with what it runs, as a machine that is lost, after so many tasks.

        TimeoutError if it has not done these in time.
        """
        worker = self._processes[1].running

        def has_worked() -> list[int] | None:
            executors = _children(worker.pid)
            logs = [log.read_text() for pid in executors for log in self._logs_of(pid)]
            return executors if sum(log.count("Finished task") for log in logs) >= tasks else None

        executors = wait_for(f"{tasks} tasks", has_worked, seconds)
        self._processes[1].kill()
        for pid in executors:
            os.kill(pid, signal.SIGKILL)

    def _logs_of(self, executor: int) -> list[Path]:
        words = Path(f"/proc/{executor}/cmdline").read_text().split("\0")
        named = {name: value for name, value in pairwise(words) if name.startswith("--")}
        if "--executor-id" not in named:
            return []
        directory = self._directory / "work" / named["--app-id"] / named["--executor-id"]
        return list(directory.glob("stderr"))

    def stop(self) -> None:
        """End the workers and the master."""
        for process in reversed(self._processes):
            if process.running.poll() is None:
                process.terminate()

    def _spawn(self, name: str, main_class: str, *arguments: str) -> LoggedProcess:
        command = [*self._java, f"org.apache.spark.deploy.{main_class}", *arguments]
        process = LoggedProcess(command, self._directory, f"{name}.log", self._environment)
        process.spawn()
        self._processes.append(process)
        return process


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in tasks for child in each.read_text().split()]


def _is_registered(worker: LoggedProcess) -> bool | None:
    return "Successfully registered" in worker.log_text() or None


def _home(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
