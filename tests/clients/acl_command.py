"""Runs kafka-acls.sh of Kafka 4.3.0, that is its class org.apache.kafka.tools.AclCommand."""

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.drivers import LineProcess
from tests.support.accounts import PASSWORDS
from tests.support.packages import compiled_java, java_command, kafka_jars

MAIN_CLASS = "org.apache.kafka.tools.AclCommand"
ENDS_WITHIN = 60.0
_LINE_END = "\x1e"
"""A line end of a command's standard input, which is one field of a line here."""


class Printed(NamedTuple):
    """What a command printed on standard output, and its exit status."""

    out: str
    status: int


class Commands:
    """Runs many commands of Kafka's tools in one JVM, which saves the start of a JVM for each.

    The commands have no terminal, so `--remove` needs `--force`. ``jars`` are Kafka's jars, by
    default of version 4.3.0.
    """

    def __init__(self, log: Path, jars: Path | None = None) -> None:
        jars = jars or kafka_jars()
        classes = compiled_java("java-commands", jars, "CommandLoop.java", "Json.java")
        self._loop = LineProcess(java_command("CommandLoop", classes, jars, minimum=17), log)

    def run(self, *arguments: str, tool: str = MAIN_CLASS) -> Printed:
        """Run one command, of kafka-acls.sh unless it is another tool's class."""
        answer = self.run_whole(*arguments, tool=tool)
        return Printed(answer["out"], answer["status"])

    def run_whole(self, *arguments: str, tool: str = MAIN_CLASS, given: str = "") -> dict[str, Any]:
        """Run one command; return its `status` and what it printed as `out` and `err`.

        ``given`` is the command's standard input.
        """
        lines = given.replace("\n", _LINE_END)
        answer: dict[str, Any] = self._loop.ask("\t".join([tool, lines, *arguments]))
        return answer

    def close(self) -> None:
        """End the JVM."""
        self._loop.close()


def script_command(*arguments: str) -> list[str]:
    """The command that the script `kafka-acls.sh` executes."""
    return [*java_command(MAIN_CLASS, kafka_jars(), minimum=17), *arguments]


def run_script(*arguments: str) -> Printed:
    """Run kafka-acls.sh as the script does: one JVM, no terminal."""
    done = subprocess.run(
        script_command(*arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN,
        check=False,
    )
    return Printed(done.stdout, done.returncode)


def run_in_terminal(answer: str, *arguments: str, command: Sequence[str] = ()) -> Printed:
    """Run kafka-acls.sh, or another command, in a terminal on which the user types `answer`."""
    terminal, end_of_command = pty.openpty()
    with subprocess.Popen(
        [*command, *arguments] if command else script_command(*arguments),
        stdin=end_of_command,
        stdout=end_of_command,
        stderr=end_of_command,
        start_new_session=True,
    ) as process:
        os.close(end_of_command)
        os.write(terminal, f"{answer}\n".encode())
        shown = b""
        try:
            while chunk := os.read(terminal, 4096):
                shown += chunk
        except OSError:
            # So Linux tells that the command has closed its end of the terminal.
            pass
        finally:
            os.close(terminal)
        status = process.wait(ENDS_WITHIN)
    return Printed(shown.decode().replace("\r\n", "\n"), status)


def command_config(
    directory: Path,
    user: str,
    password: str | None = None,
    mechanism: str = "PLAIN",
    options: str = "",
) -> str:
    """The path of a file for `--command-config` with the SASL credentials of a user."""
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    login = f"org.apache.kafka.common.security.{kind}LoginModule"
    credentials = f'username="{user}" password="{password or PASSWORDS[user]}"{options}'
    file = directory / f"{user}.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={login} required {credentials};\n"
    )
    return str(file)


def normalised(out: str) -> list[tuple[str, list[str]]]:
    """What a command printed, as sorted sections of a heading and its sorted lines.

    AclCommand keeps resources and their ACLs in hash maps, and prints the resources of a list in
    the order of a hash of Java enums, which differs between two runs: the order says nothing.
    """
    sections: list[tuple[str, list[str]]] = []
    for line in filter(str.strip, out.splitlines()):
        if line[0].isspace() and sections:
            sections[-1][1].append(line.strip())
        else:
            sections.append((line.strip(), []))
    return sorted((heading, sorted(lines)) for heading, lines in sections)
