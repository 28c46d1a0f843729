"""The command `aclbroker`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from aclbroker.terminal import complain

if TYPE_CHECKING:
    from aclbroker.cli.arguments import ServeCommand


def main() -> None:
    """Run the command that the arguments name; end the process with its exit status.

    Interrupted before a command takes care of that itself, it ends in one line, too.
    """
    try:
        _main()
    except KeyboardInterrupt:
        complain("aclbroker: interrupted")
        sys.exit(130)


def _main() -> None:
    if sys.argv[1:2] == ["acls"]:
        # Nothing but this is imported: it is a tool that people and scripts wait for.
        from aclbroker.cli.acls.command import AclsCommand

        # It ends before there is garbage worth a look.
        gc.disable()
        sys.exit(_unless_nobody_reads(AclsCommand(sys.argv[2:]).run))
    from aclbroker.cli.arguments import ServeCommand, parse_arguments
    from aclbroker.cli.questions import QuestionCommand

    command = parse_arguments()
    if isinstance(command, QuestionCommand):
        # The answers are large and hold no cycles: looking for some would take a third of the time.
        gc.disable()
    if isinstance(command, ServeCommand):
        sys.exit(_serve(command))
    sys.exit(_unless_nobody_reads(command.run))


def _unless_nobody_reads(run: Callable[[], int]) -> int:
    """Run a command; return 1 if who reads its output went away, as `head` does."""
    try:
        status = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would write what is left when it ends, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _import_structlog() -> None:
    """Import structlog without rich, which it would import for a log format that we do not use.

    The import of rich takes a fifth of the broker's start. This is done only where the process is
    the broker's own: in an application, structlog must stay as the application expects it.
    """
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment] # so an import of it fails
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


def _serve(command: ServeCommand) -> int:
    """Run the broker; return 1 if it cannot start, with the reason on standard error or logged."""
    from aclbroker.broker.server.hangup import Hangup

    hangup = Hangup()
    # Imported only now: it takes most of the time of a start, in which a SIGHUP may come.
    _import_structlog()
    from aclbroker.broker.config import ConfigError, load
    from aclbroker.broker.observability.logs import configure, get_logger
    from aclbroker.broker.server.run import run
    from aclbroker.broker.server.start import Start
    from aclbroker.broker.server.start_error import StartError

    overrides = command.overrides
    if command.port is not None:
        overrides = {"listeners": f"PLAINTEXT://127.0.0.1:{command.port}"} | overrides
    read = partial(load, command.file, overrides)
    try:
        config = read()
    except ConfigError as error:
        complain(*(f"aclbroker: {line}" for line in (*error.warnings, *error.problems)))
        return 1
    output = configure(config.log_level, config.log_format)
    start = Start(config, output, read, hangup, command.ready_file)
    nursery = None
    if config.workers > 1:
        from aclbroker.broker.server.workers.nursery import Nursery

        # Before there are threads, which a fork would not take along.
        nursery = Nursery(start)
    with output.writing(None if nursery is None else nursery.lock):
        log = get_logger()
        for line in config.warnings:
            log.warning(line)
        for line in config.notes:
            log.info(line)
        try:
            run(start, nursery)
        except StartError as error:
            log.critical("cannot start", reason=str(error))
            return 1
    return 0
