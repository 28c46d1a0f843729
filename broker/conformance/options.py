"""Reads the suite's command config, which has the properties of the super user and of another user.

The properties without a prefix are the super user's. Those with the prefix ``conformance.user.``
belong to the other user, who plays all other roles. A property that is missing there is taken from
the super user, except for the credentials.
"""

from __future__ import annotations

from typing import Final

from aclbroker.broker.client.command_config import (
    CommandConfigError,
    login_of,
    read_command_config,
)
from aclbroker.broker.conformance.session import Target

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
