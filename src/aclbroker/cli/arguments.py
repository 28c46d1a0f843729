"""Parses the command line: `aclbroker serve [FILE] [--override name=value ...]` and the others."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, NoReturn

from aclbroker.cli.acls.command import AclsCommand
from aclbroker.cli.acls.options import add_acls
from aclbroker.cli.audit import AuditCommand, add_audit, audit_command
from aclbroker.cli.conformance import ConformanceCommand, add_conformance, conformance_command
from aclbroker.cli.migrate.command import MigrateCommand, add_migrate, migrate_command
from aclbroker.cli.policy.command import PolicyCommand, add_policy, policy_command
from aclbroker.cli.questions import (
    NAMES,
    QuestionCommand,
    add_questions,
    question_command,
)
from aclbroker.cli.run import RunCommand, add_run, run_command
from aclbroker.cli.scram import ScramCommand, add_scram, scram_command
from aclbroker.cli.scram_users import ScramUsersCommand
from aclbroker.cli.store import StoreCommand, add_store, store_command
from aclbroker.cli.tokens import TokensCommand, add_tokens, tokens_command
from aclbroker.terminal import printable

Command = (
    AclsCommand
    | AuditCommand
    | ConformanceCommand
    | MigrateCommand
    | PolicyCommand
    | QuestionCommand
    | RunCommand
    | ScramCommand
    | ScramUsersCommand
    | StoreCommand
    | TokensCommand
)
"""A command that runs and ends, unlike the server."""


_LAST_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """Run the broker with a properties file, if one is given, and overrides of its settings.

    ``ready_file`` is written once clients are let in, with the addresses of all listeners as JSON.
    """

    file: str | None
    overrides: dict[str, str]
    port: int | None = None
    """The port on 127.0.0.1 of a listener without logins, in place of the listeners of the file."""

    ready_file: Path | None = None


class _Parser(argparse.ArgumentParser):
    """Says how to give a value that looks like an option.

    A cluster's id may: until KAFKA-13741, in 3.2, Kafka made some that begin with a hyphen.
    """

    def error(self, message: str) -> NoReturn:
        found = _VALUE_MISSED.fullmatch(message)
        if found:
            message += f" (one that begins with a hyphen is given as {found[1]}=-...)"
        super().error(printable(message))


_VALUE_MISSED: Final = re.compile(
    r"argument (?:.*/)?(--[\w-]+): expected (?:one|at least one) argument"
)


def parse_arguments(arguments: Sequence[str] | None = None) -> ServeCommand | Command:
    """Return the command that the arguments describe, by default those of the process.

    Raises SystemExit after --help and --version, and, with status 2 and a message that says what is
    allowed, if the arguments are wrong.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["acls"]:
        # It has the options of Kafka's tool, and that tool's way to read them.
        return AclsCommand(words[1:])
    parser = command_parser(words)
    options, rest = parser.parse_known_args(words)
    if rest:
        parser.error(f"unrecognized arguments: {_without_values(rest)}{_suggested(parser, rest)}")
    if options.command == "serve":
        return ServeCommand(options.file, dict(options.override), options.port, options.ready_file)
    if options.command == "audit":
        return audit_command(options, words)
    return _COMMANDS[options.command](options)


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], Command]]] = {
    "conformance": conformance_command,
    "migrate": migrate_command,
    "policy": policy_command,
    "run": run_command,
    "scram": scram_command,
    "store": store_command,
    "tokens": tokens_command,
    **dict.fromkeys(NAMES, question_command),
}


def command_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line; ``words`` are the arguments it is for."""
    parser = _Parser(
        prog="aclbroker", description="Kafka's ACLs, managed and decided.", allow_abbrev=False
    )
    version = f"aclbroker {metadata.version('aclbroker')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve",
        help="run the broker",
        description="Run the broker until SIGTERM or SIGINT.",
        allow_abbrev=False,
    )
    serve.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a Kafka-style server.properties; without it the broker serves this machine only, "
        "on 127.0.0.1:9092",
    )
    serve.add_argument(
        "--override",
        metavar="NAME=VALUE",
        type=_override,
        action="append",
        default=[],
        help="a setting that wins over the file; may be given several times",
    )
    serve.add_argument(
        "--port",
        metavar="PORT",
        type=_port,
        help="listen on 127.0.0.1 alone, on this port, or on a free one for 0",
    )
    serve.add_argument(
        "--ready-file",
        metavar="FILE",
        type=Path,
        help="a file that is written once clients are let in, with the addresses as JSON",
    )
    add_acls(commands)
    add_migrate(commands)
    add_policy(commands)
    add_run(commands)
    add_scram(commands)
    add_store(commands)
    add_tokens(commands)
    add_conformance(commands)
    add_questions(commands)
    # It has ten jobs with forty options each, which no other command should spend time on.
    add_audit(commands, with_options="audit" in words[:1])
    return parser


def _override(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        # The message leaves out the text, because it may contain a password.
        raise argparse.ArgumentTypeError("expected NAME=VALUE, such as node.id=7")
    return name.strip(), value


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to {_LAST_PORT}")
    return int(text)


def _without_values(words: Sequence[str]) -> str:
    """The words for a message, which must not show the value of a setting: it may be a password."""
    names = [(word, *word.partition("=")) for word in words]
    return " ".join(f"{name}=..." if equals else word for word, name, equals, _ in names)


def _suggested(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    known = sorted(options_of(parser))
    for word in words:
        name = word.partition("=")[0]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        # An option of another command is no mistake of spelling.
        if word.startswith("-") and close and close[0] != name:
            return f"; did you mean {close[0]}?"
    return ""


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a command and of the commands within it."""
    found: set[str] = set()
    for action in parser._actions:
        found.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found |= options_of(inner)
    return found
