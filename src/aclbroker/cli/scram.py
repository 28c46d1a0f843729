"""The arguments of `aclbroker scram add`, which gives a user a password while no broker runs.

It is meant for the first administrator, like `kafka-storage.sh format --add-scram` in Kafka. Later
users are added with kafka-configs.sh. The change is recorded where the broker's own changes are: in
its audit file or, without one, on standard error. Its imports take place only when the command
runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aclbroker.broker.auth.sasl.scram_credentials import MAX_ITERATIONS, MIN_ITERATIONS
from aclbroker.broker.config import Config, ConfigError, load
from aclbroker.broker.config.values import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from aclbroker.broker.observability.audit import Audit

_RECORDED_AS: Final = "aclbroker scram add"
"""What the audit log calls this command."""


@dataclass(frozen=True, slots=True)
class ScramCommand:
    """Store a user's SCRAM credential in the store that a configuration names."""

    file: str
    user: str
    mechanism: str
    iterations: int

    def run(self) -> int:
        """Store the credential; return 0, or 1 and the reason on standard error if it failed."""
        try:
            config = load(self.file)
        except ConfigError as error:
            return _failed(*error.problems)
        if not config.store.startswith("sqlite:"):
            return _failed(f"aclbroker.store={config.store} keeps nothing over a restart")
        try:
            password = _password(self.user)
        except ValueError as error:
            return _failed(str(error))
        problem = asyncio.run(self._add(config, password))
        if problem:
            return _failed(problem)
        sys.stdout.write(f"{self.user!r} may log in with {self.mechanism}.\n")
        return 0

    async def _add(self, config: Config, password: str) -> str | None:
        """Store the credential and record that; return None, or the reason if it cannot be done."""
        from aclbroker.broker.credentials.scram_users import load_users, upsertion_of
        from aclbroker.broker.handlers.changes import altered_scram_users
        from aclbroker.broker.stores import StoreError, open_store
        from aclbroker.protocol.messages.alter_user_scram_credentials import (
            AlterUserScramCredentialsRequest,
        )

        store = open_store(config.store)
        try:
            await store.open()
            users = await load_users(store, b"")
            # Before the change is made: nothing is changed that cannot be recorded.
            audit = _opened_audit(config, await store.cluster_id())
            change = upsertion_of(self.user, password, self.mechanism, self.iterations)
            outcomes = await users.alter([], [change])
            request = AlterUserScramCredentialsRequest([], [change])
            audit.changed_by(_RECORDED_AS, altered_scram_users(request, outcomes))
            audit.close()
        except (StoreError, _NotRecorded) as error:
            return str(error)
        finally:
            await store.close()
        return outcomes[self.user].error_message


class _NotRecorded(Exception):
    """A change could not be recorded; the text says why."""


def _opened_audit(config: Config, cluster_id: str) -> Audit:
    """Return the audit log as the broker has it. Raises `_NotRecorded`."""
    from aclbroker.broker.observability.audit import Audit
    from aclbroker.broker.observability.logs import configure

    try:
        return Audit(config, cluster_id, configure(config.log_level, config.log_format))
    except OSError as error:
        reason = error.strerror or error
        text = f"aclbroker.audit.file={config.audit_file}: cannot be opened: {reason}"
        raise _NotRecorded(text) from error


def add_scram(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    scram = commands.add_parser(
        "scram",
        help="give a user a SCRAM password while no broker runs",
        description="Manage SCRAM users in the store of a broker that does not run.",
        allow_abbrev=False,
    )
    actions = scram.add_subparsers(dest="action", required=True)
    add = actions.add_parser(
        "add",
        help="add a user, or change a user's password",
        description="Add a user, or change a user's password, which is asked for in a terminal, "
        "and read from the first line of standard input without one.",
        allow_abbrev=False,
    )
    add.add_argument("file", metavar="FILE", help="the broker's server.properties")
    add.add_argument("user", metavar="USER", type=_user, help="the name, without 'User:'")
    add.add_argument("--mechanism", choices=SCRAM_MECHANISMS, default="SCRAM-SHA-512")
    add.add_argument(
        "--iterations",
        metavar="COUNT",
        type=_iterations,
        default=MIN_ITERATIONS,
        help=f"from {MIN_ITERATIONS}, the default, to {MAX_ITERATIONS}",
    )


def scram_command(options: argparse.Namespace) -> ScramCommand:
    """Return the command that parsed arguments describe."""
    return ScramCommand(options.file, options.user, options.mechanism, options.iterations)


def _user(text: str) -> str:
    if not text or text.startswith("User:"):
        raise argparse.ArgumentTypeError("expected a name without 'User:'")
    return text


def _iterations(text: str) -> int:
    allowed = range(MIN_ITERATIONS, MAX_ITERATIONS + 1)
    if not text.isdecimal() or int(text) not in allowed:
        raise argparse.ArgumentTypeError(f"expected {allowed[0]} to {allowed[-1]}")
    return int(text)


def _password(user: str) -> str:
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {user}: ")
        if getpass.getpass("Once more: ") != password:
            raise ValueError("the passwords are not the same")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise ValueError("the password is empty")
    return password


def _failed(*lines: str) -> int:
    for line in lines:
        sys.stderr.write(f"aclbroker: {line}\n")
    return 1
