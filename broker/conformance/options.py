"""The command config: a Kafka client's properties file, and what else the suite must know.

The properties without a prefix are the super user's. Those with the prefix ``conformance.user.``
are the other user's, who plays all other roles; what is not set there is as the super user has it,
except the credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.auth.sasl.jaas import PLAIN_LOGIN_MODULE, JaasError, parse_jaas
from aclbroker.broker.config import ConfigError
from aclbroker.broker.config.properties import Setting, read_properties
from aclbroker.broker.conformance.connection import Login
from aclbroker.broker.conformance.session import Target

USER_PREFIX: Final = "conformance.user."
_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")


class OptionsError(Exception):
    """The options or the command config cannot be used; no message holds a secret."""


def read_login(bootstrap_server: str, command_config: str | None) -> Login:
    """Return how to log in by a Kafka client's properties file, or without one by PLAINTEXT.

    Raises `OptionsError`.
    """
    settings: Mapping[str, Setting] = {}
    if command_config is not None:
        try:
            settings, _ = read_properties(command_config)
        except ConfigError as error:
            raise OptionsError(str(error)) from error
    return _login(bootstrap_server, settings, "")


def read_target(bootstrap_server: str, command_config: str) -> Target:
    """Return the broker and the users that the options name; raises `OptionsError`."""
    try:
        settings, _ = read_properties(command_config)
    except ConfigError as error:
        raise OptionsError(str(error)) from error
    super_user = _login(bootstrap_server, settings, "")
    own_server = settings.get(f"{USER_PREFIX}bootstrap.servers")
    user = _login(own_server.value if own_server else bootstrap_server, settings, USER_PREFIX)
    if user.username is None:
        raise OptionsError(
            f"{USER_PREFIX}security.protocol must be SASL_PLAINTEXT: whose ACLs the suite replaces "
            "must have a name"
        )
    if user.username == super_user.username:
        raise OptionsError(f"{USER_PREFIX}sasl.jaas.config must name another user")
    return Target(super_user, user)


def _login(server: str, settings: Mapping[str, Setting], prefix: str) -> Login:
    host, port = _address(server)
    protocol = _value(settings, prefix, "security.protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise OptionsError(f"{prefix}security.protocol is {protocol}, not one of {_PROTOCOLS}")
    if protocol == "PLAINTEXT":
        return Login(host, port)
    mechanism = _value(settings, prefix, "sasl.mechanism", "GSSAPI")
    if mechanism != "PLAIN":
        raise OptionsError(f"{prefix}sasl.mechanism is {mechanism}; only PLAIN is supported")
    jaas = settings.get(f"{prefix}sasl.jaas.config")
    if jaas is None:
        raise OptionsError(f"{prefix}sasl.jaas.config is missing")
    username, password = _credentials(jaas)
    return Login(host, port, username, password)


def _value(settings: Mapping[str, Setting], prefix: str, name: str, default: str) -> str:
    setting = settings.get(prefix + name) or settings.get(name)
    return setting.value if setting else default


def _credentials(jaas: Setting) -> tuple[str, str]:
    try:
        entry = parse_jaas(jaas.value)
    except JaasError as error:
        raise OptionsError(f"{jaas.name}: {error}") from error
    if entry.login_module != PLAIN_LOGIN_MODULE:
        raise OptionsError(f"{jaas.name}: the login module is not PlainLoginModule")
    try:
        return entry.options["username"], entry.options["password"]
    except KeyError as error:
        raise OptionsError(f"{jaas.name}: there is no {error.args[0]}") from None


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise OptionsError(f"{server!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
