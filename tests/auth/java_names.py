"""Java, and Kafka's own classes on it, as the oracle for names."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.packages import java_command, kafka_clients_jars

PROGRAM = Path(__file__).parent / "java" / "Names.java"
RELEASE = "4.3.0"


class JavaNames:
    """A JVM that answers one question after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: str, *texts: str) -> list[str]:
        """What Java answers: texts, or "!" and the name of an exception's class."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        arguments = (text.encode("utf-16-be", "surrogatepass").hex() for text in texts)
        stdin.write(" ".join([question, *(f".{hexadecimal}" for hexadecimal in arguments)]) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the JVM ended at {question} {texts}")
        return [_decoded(word) for word in answer.rstrip("\n").split(" ")]


def _decoded(word: str) -> str:
    if word.startswith("!"):
        return word
    return bytes.fromhex(word[1:]).decode("utf-16-be", "surrogatepass")


@contextlib.contextmanager
def running_java() -> Iterator[JavaNames]:
    """The JVM, which ends with the context."""
    command = java_command(str(PROGRAM), kafka_clients_jars(RELEASE))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield JavaNames(process)
    finally:
        process.communicate(timeout=30)
