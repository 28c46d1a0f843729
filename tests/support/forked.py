"""Commands in processes that begin with the imports of the product behind them.

A Python process needs most of a second to import the broker and the clients that tests use. Here a
server imports them once and forks itself for each command. For a test of the start itself, of its
imports or of its memory, run the real command.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ACLBROKER = "aclbroker.cli:main"
PYTEST = "pytest:console_main"

_PRELOADED = (
    "aclbroker.broker.memory",
    "aclbroker.broker.server.run",
    "aclbroker.cli",
    "aclbroker.testing.acl_broker",
    "confluent_kafka.admin",
    "pytest",
)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(list(_PRELOADED))


def run(
    entry: str,
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run an entry point (``module:function``) with arguments, as `subprocess.run` does a command.

    The process has only the variables of ``environment``, or those of this process. Raises
    TimeoutError with the output of a command that does not end in time; the command is killed.
    """
    variables = dict(os.environ if environment is None else environment)
    with TemporaryDirectory() as directory:
        output, errors = Path(directory, "stdout"), Path(directory, "stderr")
        process = _context.Process(
            target=_become, args=(entry, list(words), cwd, variables, output, errors)
        )
        process.start()
        process.join(seconds)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        printed = [each.read_text() if each.exists() else "" for each in (output, errors)]
        process.close()
    if status is None:
        raise TimeoutError(f"{entry} {words}: not within {seconds:g} s\n{''.join(printed)}")
    return subprocess.CompletedProcess([entry, *words], status, *printed)


def _become(
    entry: str,
    words: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    output: Path,
    errors: Path,
) -> None:
    """Be the command: this is all that the forked process does."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    for number, path in enumerate((Path(os.devnull), output, errors)):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    module, _, function = entry.partition(":")
    sys.argv = [module.partition(".")[0], *words]
    sys.exit(getattr(importlib.import_module(module), function)())
