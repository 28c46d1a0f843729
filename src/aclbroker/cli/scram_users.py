"""Lists, adds and removes SCRAM users of a running cluster: any that knows KIP-554."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aclbroker.cli.cluster import failed, on_cluster, told
from aclbroker.terminal import printable

if TYPE_CHECKING:
    from aclbroker.broker.client.session import Session


@dataclass(frozen=True, slots=True)
class ScramUsersCommand:
    """List users, or make or remove one; ``mechanism`` None is all that a user has."""

    action: str
    bootstrap_server: str
    command_config: str | None
    users: Sequence[str]
    mechanism: str | None = None
    iterations: int = 0

    def run(self) -> int:
        """Run the command; return 0, or 1 and the reason on standard error if it failed."""
        do = {"add": self._add, "list": self._list, "remove": self._remove}[self.action]
        return on_cluster(self.bootstrap_server, self.command_config, do)

    def _add(self, session: Session) -> int:
        from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
        from aclbroker.broker.client.scram_users import add_user

        [user], name = self.users, str(self.mechanism)
        try:
            password = read_password(user)
        except ValueError as error:
            return failed(str(error))
        mechanism = ScramMechanism[name.replace("-", "_")]
        add_user(session, user, password, mechanism, self.iterations)
        told(f"{user!r} may log in with {name}.")
        return 0

    def _list(self, session: Session) -> int:
        from aclbroker.broker.client.scram_users import describe_users

        for user in describe_users(session, self.users):
            credentials = ", ".join(
                f"{mechanism.mechanism_name} with {iterations} iterations"
                for mechanism, iterations in user.mechanisms.items()
            )
            told(f"{user.name!r}: {credentials}")
        return 0

    def _remove(self, session: Session) -> int:
        from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
        from aclbroker.broker.client.scram_users import remove_user

        [user] = self.users
        named = [ScramMechanism[self.mechanism.replace("-", "_")]] if self.mechanism else []
        remove_user(session, user, named)
        told(f"{user!r} may not log in with {self.mechanism or 'SCRAM'} any more.")
        return 0


def read_password(user: str) -> str:
    """Ask for a password twice in a terminal; read the first line of standard input without one.

    Raises ValueError if it is empty, or not the same twice.
    """
    if sys.stdin.isatty():
        password = getpass.getpass(f"Password of {printable(user)}: ")
        if getpass.getpass("Once more: ") != password:
            raise ValueError("the passwords are not the same")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise ValueError("the password is empty")
    return password
