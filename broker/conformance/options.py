"""Reads what the suite is told: of which keys to play cases, and whom to be.

The command config has the properties of the super user and of another user.

The properties without a prefix are the super user's. Those with the prefix ``conformance.user.``
belong to the other user, who plays all other roles. A property that is missing there is taken from
the super user, except for the credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from aclbroker.broker.client.command_config import (
    CommandConfigError,
    login_of,
    read_command_config,
)
from aclbroker.broker.conformance.session import Target
from aclbroker.protocol.messages import APIS, ApiKey

USER_PREFIX: Final = "conformance.user."


def read_target(bootstrap_server: str, command_config: str) -> Target:
    """Return the broker and its two users; raises `CommandConfigError`."""
    settings = read_command_config(command_config)
    super_user = login_of(bootstrap_server, settings)
    own_server = settings.get(f"{USER_PREFIX}bootstrap.servers")
    server = own_server.value if own_server else bootstrap_server
    user = login_of(server, settings, USER_PREFIX)
    if user.username is None:
        raise CommandConfigError(
            f"{USER_PREFIX}security.protocol must be SASL_PLAINTEXT: whose ACLs the suite replaces "
            "must have a name"
        )
    if user.username == super_user.username:
        raise CommandConfigError(f"{USER_PREFIX}sasl.jaas.config must name another user")
    return Target(super_user, user)


def read_keys(names: Sequence[str]) -> Collection[ApiKey]:
    """Return the API keys of these names, all if there is none.

    Both ``CreateAcls`` and ``CREATE_ACLS`` name a key. Raises `CommandConfigError`.
    """
    known = {_plain(api.name): ApiKey(key) for key, api in APIS.items()}
    unknown = [name for name in names if _plain(name) not in known]
    if unknown:
        listed = ", ".join(sorted(api.name for api in APIS.values()))
        raise CommandConfigError(f"--api {unknown[0]} is unknown; expected one of {listed}")
    return {known[_plain(name)] for name in names or known}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
