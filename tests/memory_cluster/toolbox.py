"""Kafka's command-line tools in one JVM, run as one user of a broker."""

from __future__ import annotations

from pathlib import Path

from aclbroker.testing import AclBroker
from tests.clients.acl_command import Commands
from tests.memory_cluster.commands import TOOLS
from tests.memory_cluster.java_programs import java_config, properties_file


class Toolbox:
    """The tools of one user."""

    def __init__(self, commands: Commands, broker: AclBroker, directory: Path, user: str) -> None:
        self._commands = commands
        self._directory = directory
        config = properties_file(directory / f"{user}.properties", java_config(broker, user))
        self._to_broker = (
            *("--bootstrap-server", broker.bootstrap_servers),
            *("--command-config", str(config)),
        )

    def file(self, name: str, text: str) -> Path:
        """Return a file with a text, such as tools read."""
        path = self._directory / name
        path.write_text(text)
        return path

    def run(self, tool: str, *arguments: object) -> tuple[int, str, str]:
        """Run a tool; returns its status and what it wrote to both of its outputs."""
        words = (*self._to_broker, *map(str, arguments))
        told = self._commands.run_whole(*words, tool=TOOLS[tool])
        return told["status"], told["out"], told["err"]

    def runs(self, tool: str, *arguments: object) -> str:
        """Run a tool that succeeds; returns its standard output."""
        status, output, errors = self.run(tool, *arguments)
        assert status == 0, output + errors
        return output

    def table(self, tool: str, *arguments: object) -> list[list[str]]:
        """Run a tool that prints a table; returns the words of its lines below the heading."""
        lines = [each.split() for each in self.runs(tool, *arguments).splitlines() if each.strip()]
        return lines[1:]

    def complains(self, tool: str, *arguments: object) -> str:
        """Run a tool that tells of an error and ends as ever; returns all that it wrote."""
        status, output, errors = self.run(tool, *arguments)
        assert status == 0, output + errors
        assert "Error: " in output, output + errors
        return output + errors

    def fails(self, tool: str, *arguments: object) -> str:
        """Run a tool that fails; returns all that it wrote."""
        status, output, errors = self.run(tool, *arguments)
        assert status == 1, output + errors
        return output + errors
