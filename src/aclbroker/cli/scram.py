"""The arguments of `aclbroker scram add|list|remove`, and `scram add` to the file of a store.

`scram_users` does it on a running cluster. With a file in place of that a user gets a password in
the store of a broker, which need not run: meant for the first administrator, like
`kafka-storage.sh format --add-scram` in Kafka. The change is recorded where the broker's own
changes are: in its audit file or, without one, on standard error. Imports take place only when the
command runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from aclbroker.broker.auth.sasl.scram_credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
)
from aclbroker.cli.cluster import add_cluster_options, failed, told
from aclbroker.cli.scram_users import ScramUsersCommand, read_password

if TYPE_CHECKING:
    from aclbroker.broker.config import Config
    from aclbroker.broker.observability.audit import Audit

_MECHANISMS: Final = [each.mechanism_name for each in ScramMechanism]

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
        import asyncio

        from aclbroker.broker.config import ConfigError, load

        try:
            config = load(self.file)
        except ConfigError as error:
            return failed(*error.problems)
        if config.store.startswith("memory:"):
            return failed(f"aclbroker.store={config.store} keeps nothing over a restart")
        try:
            password = read_password(self.user)
        except ValueError as error:
            return failed(str(error))
        problem = asyncio.run(self._add(config, password))
        if problem:
            return failed(problem)
        told(f"{self.user!r} may log in with {self.mechanism}.")
        return 0

    async def _add(self, config: Config, password: str) -> str | None:
        """Store the credential and record that; return None, or the reason if it cannot be done."""
        from aclbroker.broker.config.store_url import store_url
        from aclbroker.broker.credentials.scram_users import load_users, upsertion_of
        from aclbroker.broker.handlers.changes import altered_scram_users
        from aclbroker.broker.stores import StoreError, open_store
        from aclbroker.protocol.messages.alter_user_scram_credentials import (
            AlterUserScramCredentialsRequest,
        )

        store = open_store(store_url(config.properties), config.properties)
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
        help="list, add and remove SCRAM users, also while no broker runs",
        description="Manage SCRAM users of a cluster, or in the store of a broker, which need not "
        "run.",
        allow_abbrev=False,
    )
    actions = scram.add_subparsers(dest="action", required=True)
    _add_add(actions)
    listed = _action(actions, "list", "list users, all or those named")
    listed.add_argument("users", metavar="USER", nargs="*", type=_user)
    removed = _action(actions, "remove", "remove a user, or one of its passwords")
    removed.add_argument("users", metavar="USER", nargs=1, type=_user)
    removed.add_argument(
        "--mechanism", choices=_MECHANISMS, help="by default all that the user has"
    )


def _add_add(actions: Any) -> None:
    add: argparse.ArgumentParser = actions.add_parser(
        "add",
        help="add a user, or change a user's password",
        description="Add a user, or change a user's password, which is asked for in a terminal, "
        "and read from the first line of standard input without one.",
        allow_abbrev=False,
    )
    add.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="the server.properties of a broker that does not run",
    )
    add.add_argument("user", metavar="USER", type=_user, help="the name, without 'User:'")
    add_cluster_options(add, required=False)
    add.add_argument("--mechanism", choices=_MECHANISMS, default="SCRAM-SHA-512")
    add.add_argument(
        "--iterations",
        metavar="COUNT",
        type=_iterations,
        default=MIN_ITERATIONS,
        help=f"from {MIN_ITERATIONS}, the default, to {MAX_ITERATIONS}",
    )
    add.set_defaults(refuse=add.error)


def _action(actions: Any, name: str, does: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}.", allow_abbrev=False
    )
    add_cluster_options(action)
    return action


def scram_command(options: argparse.Namespace) -> ScramCommand | ScramUsersCommand:
    """Return the command that parsed arguments describe.

    Raises SystemExit as the parser does.
    """
    if options.action != "add":
        mechanism = getattr(options, "mechanism", None)
        return ScramUsersCommand(
            options.action,
            options.bootstrap_server,
            options.command_config,
            tuple(options.users),
            mechanism,
        )
    if (options.file is None) == (options.bootstrap_server is None):
        _refuse(options, "either FILE or --bootstrap-server is required, and not both")
    if options.file is not None and options.command_config is not None:
        _refuse(options, "--command-config is for --bootstrap-server")
    if options.file is not None:
        return ScramCommand(options.file, options.user, options.mechanism, options.iterations)
    return ScramUsersCommand(
        "add",
        options.bootstrap_server,
        options.command_config,
        (options.user,),
        options.mechanism,
        options.iterations,
    )


def _refuse(options: argparse.Namespace, reason: str) -> NoReturn:
    options.refuse(reason)
    raise AssertionError("the parser has ended the process")


def _user(text: str) -> str:
    if not text or text.startswith("User:"):
        raise argparse.ArgumentTypeError("expected a name without 'User:'")
    return text


def _iterations(text: str) -> int:
    allowed = range(MIN_ITERATIONS, MAX_ITERATIONS + 1)
    if not text.isdecimal() or int(text) not in allowed:
        raise argparse.ArgumentTypeError(f"expected {allowed[0]} to {allowed[-1]}")
    return int(text)
