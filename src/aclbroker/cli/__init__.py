"""The command `aclbroker`."""

from __future__ import annotations

import sys

import structlog

from aclbroker.broker.config import ConfigError, load
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.run import StartError, run
from aclbroker.cli.arguments import ServeCommand, parse_arguments


def main() -> None:
    """Run the command that the arguments name; end the process with its exit status."""
    command = parse_arguments()
    if not isinstance(command, ServeCommand):
        sys.exit(command.run())
    try:
        config = load(command.file, command.overrides)
    except ConfigError as error:
        for line in (*error.warnings, *error.problems):
            sys.stderr.write(f"aclbroker: {line}\n")
        sys.exit(1)
    output = configure(config.log_level, config.log_format)
    log = structlog.get_logger()
    for line in config.warnings:
        log.warning(line)
    for line in config.notes:
        log.info(line)
    try:
        run(config, output)
    except StartError as error:
        log.critical("cannot start", reason=str(error))
        sys.exit(1)
