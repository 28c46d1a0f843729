"""Drives client libraries: a program for each does the steps of a story and prints the answers.

A driver is a program that reads one step a line from standard input

    connect HOST:PORT USER PASSWORD [MECHANISM [token]]
                                       (SASL_PLAINTEXT; PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512;
                                       with a delegation token, where the client can)
    tls CA [IDENTITY]                  (connect through TLS from now on, which is SASL_SSL, or SSL
                                       where the user is -; paths of PEM files: whom to trust, and
                                       the client's own key and certificate)
    create ACL ...                     (one request, where the client can)
    list FILTER
    delete FILTER ...
    disconnect                         (and forget of TLS)

(see `story` for ACL and FILTER) and answers each with one line of JSON: {"result": R}, where R is
null, or for create a list with null or an error's name for each ACL, for list a list of ACLs, and
for delete a list with a list of ACLs or an error's name for each filter; or {"error": NAME} if the
whole request failed. Errors have the names that the client gives them.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.packages import (
    compiled_java,
    go_program,
    java_command,
    kafka_clients_jars,
    node_modules,
)
from tests.support.toolchain import CLIENTS, require

ANSWERS_WITHIN = 60.0


class Answer(NamedTuple):
    """What a step gave: the result, or the name of the error that the client raised."""

    result: Any
    error: str | None = None


class Client(NamedTuple):
    """A client library: the command of its driver, and how it tells of a refusal."""

    command: Callable[[], list[str]]
    refusal: str = "CLUSTER_AUTHORIZATION_FAILED"
    """The client's name of the error that a principal without rights gets."""
    hides_refused_lists: bool = False
    """It gives an empty list instead of that error, with every broker."""


def _java(version: str) -> Client:
    def command() -> list[str]:
        jars = kafka_clients_jars(version)
        bindings = "legacy" if version < "2" else "modern"
        sources = ("Story.java", "Json.java", f"{bindings}/Bindings.java")
        classes = compiled_java(f"java-story-{version}", jars, *sources)
        return java_command("Story", classes, jars)

    return Client(command, "ClusterAuthorizationException")


def _python(library: str) -> list[str]:
    return [sys.executable, str(CLIENTS / "python" / "story.py"), library]


def _node() -> list[str]:
    return [require("node"), str(CLIENTS / "node" / "story.js"), str(node_modules())]


WITH_PATTERN_TYPES = {
    **{f"kafka-clients-{version}": _java(version) for version in ("4.3.0", "2.8.2", "2.0.1")},
    "confluent-kafka": Client(lambda: _python("confluent-kafka"), hides_refused_lists=True),
    "kafka-python": Client(lambda: _python("kafka-python"), "ClusterAuthorizationFailedError"),
    "franz-go": Client(lambda: [str(go_program())]),
    "kafkajs": Client(_node),
}
"""The clients that know pattern types (KIP-290), which Kafka 4 still answers."""

OF_VERSION_ZERO = {f"kafka-clients-{version}": _java(version) for version in ("1.1.1", "0.11.0.3")}
"""The clients that speak version 0 of the ACL requests, which Kafka 4 dropped."""


def parameters(names: Collection[str]) -> list[Any]:
    """The clients as parameters of a test: old versions of Kafka's own only in `make test-all`."""
    old = [name for name in names if name.startswith("kafka-clients-") and "-4." not in name]
    return [pytest.param(each, marks=[pytest.mark.thorough] * (each in old)) for each in names]


class LineProcess:
    """A program that answers each line on standard input with a line of JSON, in some seconds."""

    def __init__(self, command: list[str], log: Path, within: float = ANSWERS_WITHIN) -> None:
        self._log = log
        self._within = within
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                cwd=CLIENTS.parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                encoding="utf-8",
            )

    def ask(self, line: str) -> Any:
        """The answer to `line`; RuntimeError with what it logged if it ends or takes too long."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        # A program that hangs is ended, and so gives an empty line below.
        watchdog = threading.Timer(self._within, self._process.kill)
        watchdog.start()
        try:
            stdin.write(line + "\n")
            stdin.flush()
            answer = stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        if not answer:
            self.close()
            raise RuntimeError(f"no answer to {line!r}:\n{self._log.read_text()}")
        return json.loads(answer)

    @property
    def ended(self) -> bool:
        """The program has ended, by itself or because it took too long."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Tell the program that there are no more lines, and wait until it ends."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


class Driver(LineProcess):
    """The running driver of one client."""

    def __init__(self, client: Client, log: Path) -> None:
        super().__init__(client.command(), log)
        self.client = client

    def step(self, verb: str, *words: str) -> Answer:
        """Do one step (see the module's description)."""
        answer = self.ask(" ".join([verb, *words]))
        return Answer(answer.get("result"), answer.get("error"))
