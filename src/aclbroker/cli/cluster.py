"""The options of commands that ask a running cluster, and how they reach it.

Imports take place when a command runs, so that others start fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aclbroker.terminal import complain, put

if TYPE_CHECKING:
    from aclbroker.broker.client.session import Session


def add_cluster_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add --bootstrap-server and --command-config to the options of a command."""
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        required=required,
        help="brokers of the cluster, which are tried in turn",
    )
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a Kafka client's properties file, with the login (docs/acls-command.md)",
    )


def on_cluster(
    bootstrap_server: str, command_config: str | None, do: Callable[[Session], int]
) -> int:
    """Do something with a session, and return the exit status that it returns.

    What comes in the way is told on standard error, and the status is 1 then.
    """
    from aclbroker.broker.client.errors import ClientConfigError, ClientError
    from aclbroker.broker.client.session import open_session
    from aclbroker.broker.client.settings import read_addresses, read_settings

    try:
        settings = read_settings(command_config)
        for warning in settings.warnings:
            complain(f"aclbroker: {warning}")
        addresses = read_addresses(bootstrap_server, "--bootstrap-server")
        with open_session(addresses, settings) as session:
            return do(session)
    except ClientConfigError as error:
        return failed(*error.problems)
    except ClientError as error:
        return failed(f"{error.java_name.rpartition('.')[2]}: {error}")


def failed(*lines: str) -> int:
    """Tell on standard error why a command failed; return its exit status, 1."""
    complain(*(f"aclbroker: {line}" for line in lines))
    return 1


def told(*lines: Any) -> None:
    """Print lines on standard output."""
    put(*map(str, lines))


def confirmed(question: str) -> bool:
    """Ask on standard output, and tell whether standard input answers y."""
    put(f"{question} (y/n)")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() == "y"
