"""Archives of the classes that Kafka loads (class-data sharing), with which its JVMs start sooner.

A JVM uses an archive if its class path begins with the jars with which the archive was made.
Otherwise, or if it is of another version of Java, the JVM takes no notice of it.
"""

import contextlib
import shutil
import socket
from pathlib import Path

from tests.support.accounts import AUTHORIZER, SASL_PLAIN, properties_text
from tests.support.process import LoggedProcess
from tests.support.toolchain import cached, java_version, require_java, run

_KAFKAS = ("kafka-4.3.0-", "kafka-3.9.1-zookeeper-")
"""How the directories of jars begin with which tests start a Kafka, or its tools."""

_ANY = ("127.0.0.1", 0)
_STARTS_WITHIN = 120.0
_STOPS_WITHIN = 120.0


def archive_flags(jars: Path) -> list[str]:
    """Return the flags of a JVM that uses the archive of a Kafka's jars.

    The archive is made on first use. Other programs have none, and get no flag.
    """
    if not jars.name.startswith(_KAFKAS):
        return []
    archive = cached(
        f"{jars.name}-classes", [jars.name, java_version()], lambda into: _make(jars, into)
    )
    return [f"-XX:SharedArchiveFile={archive / 'classes.jsa'}", "-Xlog:cds*=error"]


def _make(jars: Path, directory: Path) -> None:
    """Write the classes of a Kafka that starts and stops to `classes.jsa`."""
    names = {
        "PLAINTEXT": "PLAINTEXT",
        "SASL_PLAINTEXT": "SASL_PLAINTEXT",
        "CONTROLLER": "PLAINTEXT",
    }
    with contextlib.ExitStack() as probes:
        ports = [probes.enter_context(socket.create_server(_ANY)).getsockname()[1] for _ in names]
    properties = directory / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{ports[-1]}",
        "listeners": ",".join(
            f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)
        ),
        "listener.security.protocol.map": ",".join(map(":".join, names.items())),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(directory / "data"),
        **AUTHORIZER,
        **SASL_PLAIN,
    }
    properties.write_text(properties_text(settings))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    java = [require_java(17), "-XX:+UseSerialGC", quiet, "-cp", f"{jars}/*"]
    formatting = ["kafka.tools.StorageTool", "format", "--cluster-id=MkU3OEVBNTcwNTJENDM2Qk"]
    run([*java, *formatting, f"--config={properties}"], cwd=directory)
    java.insert(1, f"-XX:ArchiveClassesAtExit={directory / 'classes.jsa'}")
    kafka = LoggedProcess([*java, "kafka.Kafka", str(properties)], directory, "kafka.log")

    def serves() -> bool | None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ports[0])):
            return True
        return None

    kafka.spawn()
    kafka.wait_until_ready(serves, _STARTS_WITHIN)
    kafka.terminate(_STOPS_WITHIN)
    shutil.rmtree(directory / "data")
