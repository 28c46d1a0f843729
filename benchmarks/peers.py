"""What is compared, as its user installs it: made in the cache of the tests on first use."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

from tests.support.packages import compiled_go, compiled_java, java_command, kafka_jars
from tests.support.toolchain import cached, run

_HERE = Path(__file__).parent
_ROOT = _HERE.parent

AS_IN_PRODUCTION = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
"""The flags that Kafka's own start script gives a JVM, and a log of warnings only."""


def aclbroker() -> list[str]:
    """Return the command of this checkout in an environment without the developers' packages.

    Some of its dependencies import what they find of those, which takes time and memory.
    """
    lock = _ROOT / "requirements" / "runtime.lock"

    def install(directory: Path) -> None:
        venv.create(directory, with_pip=True)
        pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        run([*pip, "--require-hashes", "--no-deps", "-r", str(lock)], cwd=directory)
        run([*pip, "--no-deps", "--no-build-isolation", "-e", str(_ROOT)], cwd=directory)

    made_from = [sys.version, str(_ROOT), lock.read_text(), (_ROOT / "pyproject.toml").read_text()]
    return [str(cached("aclbroker", made_from, install) / "bin" / "python"), "-m", "aclbroker"]


# Half a million ACLs, twice while they are loaded, and room to spare for the collector.
_MEASURED = (*AS_IN_PRODUCTION, "-Xms3g", "-Xmx3g")


def authorizer_loop(flags: tuple[str, ...] = _MEASURED) -> list[str]:
    """Return the command of the JVM that asks Kafka's authorizer."""
    jars = kafka_jars()
    sources = ("AuthorizerLoop.java", "Authorizers.java", "Decider.java")
    classes = compiled_java("java-authorizer", jars, *sources, root=_HERE / "java", release=17)
    return java_command("AuthorizerLoop", classes, jars, minimum=17, flags=flags)


def go_program(name: str) -> str:
    """Return the path of one of our Go programs: ``kfake`` or ``load``."""
    return str(compiled_go("go-benchmarks", _HERE / "go") / name)
