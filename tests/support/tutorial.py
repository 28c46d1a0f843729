"""Does what a tutorial of docs/ tells its reader to do, and compares what the page shows.

A page has blocks of four kinds, which are what a reader sees, and need no marks of their own:

- a block under a line that is a file's name (`` `acls.yaml`: ``) is that file;
- ``sh`` is typed, in the directory of the files; its last command must end with status 0;
- ``text`` directly behind it is all that it prints, on both outputs;
- ``text`` behind anything else is a line that the broker in the other terminal has printed.

``...`` stands for any text within a line, and for any lines where it is a line of its own. A block
that is `aclbroker serve FILE` is the broker in the other terminal. Each 127.0.0.1:PORT is a free
port.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.kafka import free_ports
from tests.support.process import LoggedProcess, wait_for

BIN = Path(sys.executable).parent
FENCED = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
ADDRESS = re.compile(r"127\.0\.0\.1:[0-9]+")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ENDS_WITHIN = 300.0  # a first run of Maven fetches what it is made of
READY = re.compile(r"\bready version=|\"event\":\"ready\"")


class Block(NamedTuple):
    """A fenced block: its language, its text, the file that it is, and whether it is an output.

    ``of_command`` tells that nothing but an empty line is between it and the ``sh`` block before.
    """

    kind: str
    text: str
    file: str | None
    of_command: bool


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page in their order."""
    before = ""
    end = 0
    for found in FENCED.finditer(page):
        directly = not page[end : found.start()].strip()
        of_command = before == "sh" and directly and not found["file"]
        yield Block(found["kind"], found["text"], found["file"], of_command)
        before, end = found["kind"], found.end()


def with_free_ports(page: str) -> str:
    """The page with another port, which nobody uses, for each one that it names."""
    named = list(dict.fromkeys(ADDRESS.findall(page)))
    free = dict(zip(named, free_ports(len(named)), strict=True))
    return ADDRESS.sub(lambda found: f"127.0.0.1:{free[found[0]]}", page)


def shown_as(shown: str, printed: str) -> bool:
    """Whether a page may show as ``shown`` what was printed."""
    pattern = ""
    for line in shown.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + "\n"
    text = "".join(f"{line}\n" for line in printed.splitlines())
    return re.fullmatch(pattern, text) is not None


class Reader:
    """Somebody who follows a page in an empty directory; `close` ends the broker."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        # What pytest prints is that of a reader who has given it no options.
        self._environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": ""}
        # Maven ends before the second compiler of its JVM has been worth its work.
        self._environment["MAVEN_OPTS"] = "-XX:TieredStopAtLevel=1"
        self._broker: LoggedProcess | None = None
        self.typed: list[str] = []

    def follow(self, page: str) -> None:
        """Do all that the page says; AssertionError for the first thing that is not as it shows."""
        todo = list(blocks(with_free_ports(page)))
        for block, following in zip(todo, [*todo[1:], None], strict=True):
            expected = following.text if following and following.of_command else ""
            if block.file:
                path = self._directory / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.kind == "sh" and block.text.startswith("aclbroker serve "):
                self._serve(block.text, expected)
            elif block.kind == "sh":
                self._type(block.text, expected)
            elif not block.of_command:
                self._look_at_the_broker(block.text)

    def close(self) -> None:
        """End the broker, if the page has started one."""
        if self._broker is not None and self._broker.running.poll() is None:
            self._broker.terminate()

    def _type(self, command: str, expected: str) -> None:
        self.typed.append(command)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_WITHIN,
            check=False,
        )
        printed = COLOURS.sub("", done.stdout)
        assert shown_as(expected, printed), _difference(command, expected, printed)
        assert done.returncode == 0, f"{command}ended with status {done.returncode}"

    def _serve(self, command: str, expected: str) -> None:
        self.typed.append(command)
        words = ["sh", "-c", f"exec {command}"]
        self._broker = LoggedProcess(words, self._directory, "terminal.log", self._environment)
        self._broker.spawn()
        broker = self._broker
        broker.wait_until_ready(lambda: READY.search(broker.new_log_text()), ENDS_WITHIN)
        printed = broker.new_log_text()
        assert shown_as(expected, printed), _difference(command, expected, printed)

    def _look_at_the_broker(self, expected: str) -> None:
        assert self._broker is not None, f"no broker runs that could have printed\n{expected}"
        broker = self._broker
        try:
            wait_for(
                expected,
                lambda: shown_as(f"...\n{expected}...\n", broker.new_log_text()) or None,
                seconds=10,
            )
        except TimeoutError as error:
            log = broker.new_log_text()
            raise AssertionError(_difference("the broker", expected, log)) from error


def _difference(command: str, expected: str, printed: str) -> str:
    return f"{command}\nis shown to print\n{expected}\nbut has printed\n{printed}"
