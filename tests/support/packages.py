"""The pinned packages of the tested clients, fetched and compiled into the cache on first use."""

import shutil
from pathlib import Path

from tests.support.shared_classes import archive_flags
from tests.support.toolchain import CLIENTS, cached, require, require_java, run

SLF4J = "org.slf4j:slf4j-simple:1.7.36"
KAFKA = ("org.apache.kafka:kafka_2.13:4.3.0", "org.apache.kafka:kafka-tools:4.3.0", SLF4J)
# The logging of a Kafka as it is distributed; it must be of the log4j that Kafka depends on.
LOG4J = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"

# Quick to start is worth more than quick to run, for programs that live for seconds.
JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>aclbroker.tests</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions>{}</exclusions></dependency>"
)
_EXCLUSION = "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>"


def jars(name: str, coordinates: tuple[str, ...], without: tuple[str, ...] = ()) -> Path:
    """A directory with the jars of Maven `coordinates` (group:artifact:version) and all theirs.

    Those of `without` (group:artifact) are left out.
    """

    def copy_dependencies(directory: Path) -> None:
        maven = require("mvn")
        require_java()
        pom = directory / "pom.xml"
        exclusions = "".join(_EXCLUSION.format(*line.split(":")) for line in without)
        dependencies = "".join(
            _DEPENDENCY.format(*line.split(":"), exclusions) for line in coordinates
        )
        pom.write_text(_POM.format(dependencies=dependencies))
        goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
        command = [maven, "-q", "-B", "-f", str(pom), goal, f"-DoutputDirectory={directory}"]
        run(command, cwd=directory)

    return cached(name, [DEPENDENCY_PLUGIN, *coordinates, *without], copy_dependencies)


def kafka_jars() -> Path:
    """The jars of a Kafka 4.3.0 broker and of its command line tools."""
    return jars("kafka-4.3.0", KAFKA)


def logging_kafka_jars() -> Path:
    """The jars of a Kafka 4.3.0 broker that logs with log4j 2, as a JVM flag configures it."""
    return jars("kafka-4.3.0-log4j", (KAFKA[0], LOG4J))


def kafka_clients_jars(version: str) -> Path:
    """The jars of the Java client library of one Kafka version."""
    coordinates = (f"org.apache.kafka:kafka-clients:{version}", SLF4J)
    return jars(f"kafka-clients-{version}", coordinates)


def kafka_streams_jars() -> Path:
    """The jars of Kafka Streams 4.3.0 and of its clients.

    RocksDB, ten times as big as all the others, is left out: applications without state need none.
    """
    coordinates = ("org.apache.kafka:kafka-streams:4.3.0", SLF4J)
    return jars("kafka-streams-4.3.0", coordinates, without=("org.rocksdb:rocksdbjni",))


def streams_example_jars() -> Path:
    """The jars of the example applications of Kafka Streams 4.3.0, with RocksDB."""
    coordinates = ("org.apache.kafka:kafka-streams-examples:4.3.0", SLF4J)
    return jars("kafka-streams-examples-4.3.0", coordinates)


def connect_jars() -> Path:
    """The jars of Kafka Connect 4.3.0, of its connectors for files, and of MirrorMaker."""
    coordinates = (
        "org.apache.kafka:connect-mirror:4.3.0",
        "org.apache.kafka:connect-file:4.3.0",
        SLF4J,
    )
    return jars("kafka-connect-4.3.0", coordinates)


def java_command(
    main_class: str, *class_path: Path, minimum: int = 11, flags: tuple[str, ...] = JVM_FLAGS
) -> list[str]:
    """The command that runs a class from directories of jars or of classes.

    Jars stand first on its class path, because a JVM uses no archive of shared classes otherwise.
    """
    java = require_java(minimum)
    of_jars = [path for path in class_path if any(path.glob("*.jar"))]
    entries = [f"{path}/*" for path in of_jars]
    entries += [str(path) for path in class_path if path not in of_jars]
    shared = archive_flags(of_jars[0]) if of_jars else []
    return [java, *shared, *flags, "-cp", ":".join(entries), main_class]


def compiled_java(
    name: str, libraries: Path, *sources: str, root: Path = CLIENTS / "java", release: int = 11
) -> Path:
    """A directory with the classes of `sources` (relative to `root`), in a release of Java."""
    files = [root / source for source in sources]
    options = ["-Xlint:all,-path,-classfile", "-Werror", "--release", str(release)]

    def compile_all(directory: Path) -> None:
        compiler = [require_java(), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        class_path = ":".join(map(str, libraries.glob("*.jar")))
        where = ["-cp", class_path, "-d", str(directory)]
        run([*compiler, *options, *where, *map(str, files)], cwd=directory)

    made_from = [libraries.name, *options, *(file.read_text() for file in files)]
    return cached(name, made_from, compile_all)


def go_program() -> Path:
    """The compiled program of tests/clients/go."""
    return compiled_go("go-kadm", CLIENTS / "go") / "story"


def compiled_go(name: str, module: Path) -> Path:
    """A directory with the compiled programs of a Go module."""
    sources = [*sorted(module.rglob("*.go")), module / "go.mod", module / "go.sum"]

    def build(directory: Path) -> None:
        # The environment's own flags must not decide what the pinned module builds.
        command = [require("go"), "build", "-mod=readonly", "-buildvcs=false"]
        run([*command, "-o", f"{directory}/", "./..."], cwd=module, env={"GOFLAGS": ""})

    return cached(name, [f.read_text() for f in sources], build)


def go_test_binary(package: str) -> Path:
    """The compiled tests of a Go package that the module of tests/clients/go requires."""
    module = CLIENTS / "go"

    def build(directory: Path) -> None:
        command = [require("go"), "test", "-c", "-mod=readonly", "-o", f"{directory}/tests"]
        run([*command, package], cwd=module, env={"GOFLAGS": ""})

    pins = [(module / name).read_text() for name in ("go.mod", "go.sum")]
    return cached(f"go-tests-{package.rpartition('/')[2]}", [package, *pins], build) / "tests"


def node_modules() -> Path:
    """A directory with the installed node_modules of tests/clients/node."""
    manifests = [CLIENTS / "node" / name for name in ("package.json", "package-lock.json")]

    def install(directory: Path) -> None:
        for manifest in manifests:
            shutil.copy(manifest, directory)
        run([require("npm"), "ci", "--no-audit", "--no-fund"], cwd=directory)

    return cached("node-kafkajs", [f.read_text() for f in manifests], install)
