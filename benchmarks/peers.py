"""The peers' programs, compiled into the cache of the tests on first use."""

from __future__ import annotations

from pathlib import Path

from tests.support.packages import compiled_go, compiled_java, java_command, kafka_jars

_HERE = Path(__file__).parent

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


def authorizer_loop() -> list[str]:
    """Return the command of the JVM that asks Kafka's authorizer."""
    jars = kafka_jars()
    classes = compiled_java(
        "java-authorizer", jars, "AuthorizerLoop.java", root=_HERE / "java", release=17
    )
    # Half a million ACLs, twice while they are loaded, and room to spare for the collector.
    flags = (*AS_IN_PRODUCTION, "-Xms3g", "-Xmx3g")
    return java_command("AuthorizerLoop", classes, jars, minimum=17, flags=flags)


def go_program(name: str) -> str:
    """Return the path of one of our Go programs: ``kfake`` or ``load``."""
    return str(compiled_go("go-benchmarks", _HERE / "go") / name)
