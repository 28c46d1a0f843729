"""The command config: a Kafka client's properties file, which says how a user reaches a broker.

Kafka's tools take it as the option ``--command-config``. Only PLAINTEXT, and SASL_PLAINTEXT with
the mechanism PLAIN, are supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.jaas import PLAIN_LOGIN_MODULE, JaasError, parse_jaas
from aclbroker.broker.client.blocking import BlockingClient, ConnectionClosed, NoAnswer, connect
from aclbroker.broker.config import ConfigError
from aclbroker.broker.config.properties import Setting, read_properties

_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")


class CommandConfigError(Exception):
    """The address or the command config cannot be used; the message never holds a secret."""


class LoginError(Exception):
    """The broker did not accept the credentials."""


class ClientLogin(NamedTuple):
    """How one user reaches a broker: by PLAINTEXT without a user name, else by SASL PLAIN."""

    host: str
    port: int
    username: str | None = None
    password: str = ""


def logged_in(login: ClientLogin, timeout: float, client_id: str) -> BlockingClient:
    """Connect, log in and return the client.

    ``timeout`` is in seconds, for connecting and for each answer. Raises `OSError` if the broker
    cannot be reached and `LoginError` if it does not accept the user.
    """
    client = BlockingClient(connect(login.host, login.port, timeout), client_id)
    try:
        if login.username is not None:
            _log_in(client, login.username, login.password)
    except BaseException:
        client.close()
        raise
    return client


def _log_in(client: BlockingClient, username: str, password: str) -> None:
    try:
        answer = client.login(username, password)
    except (ConnectionClosed, NoAnswer) as error:
        raise LoginError(f"{username} cannot log in: no answer") from error
    if answer.error_code:
        raise LoginError(f"{username} cannot log in: {answer.error_message}")


def read_login(bootstrap_server: str, command_config: str | None) -> ClientLogin:
    """Return the login that a command config describes; without one it is PLAINTEXT.

    Raises `CommandConfigError` if the file or the address cannot be used.
    """
    settings = {} if command_config is None else read_command_config(command_config)
    return login_of(bootstrap_server, settings)


def read_command_config(file: str) -> Mapping[str, Setting]:
    """Return the settings of a command config by name; raises `CommandConfigError`."""
    try:
        settings, _ = read_properties(file)
    except ConfigError as error:
        raise CommandConfigError(str(error)) from error
    return settings


def login_of(server: str, settings: Mapping[str, Setting], prefix: str = "") -> ClientLogin:
    """Return the login at HOST:PORT that the settings with a prefix describe.

    A setting that is missing with the prefix is taken without it, except for the credentials.
    Raises `CommandConfigError`.
    """
    host, port = _address(server)
    protocol = _value(settings, prefix, "security.protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise CommandConfigError(
            f"{prefix}security.protocol is {protocol}, not one of {_PROTOCOLS}"
        )
    if protocol == "PLAINTEXT":
        return ClientLogin(host, port)
    mechanism = _value(settings, prefix, "sasl.mechanism", "GSSAPI")
    if mechanism != "PLAIN":
        raise CommandConfigError(f"{prefix}sasl.mechanism is {mechanism}; only PLAIN is supported")
    jaas = settings.get(f"{prefix}sasl.jaas.config")
    if jaas is None:
        raise CommandConfigError(f"{prefix}sasl.jaas.config is missing")
    username, password = _credentials(jaas)
    return ClientLogin(host, port, username, password)


def _value(settings: Mapping[str, Setting], prefix: str, name: str, default: str) -> str:
    setting = settings.get(prefix + name) or settings.get(name)
    return setting.value if setting else default


def _credentials(jaas: Setting) -> tuple[str, str]:
    try:
        entry = parse_jaas(jaas.value)
    except JaasError as error:
        raise CommandConfigError(f"{jaas.name}: {error}") from error
    if entry.login_module != PLAIN_LOGIN_MODULE:
        raise CommandConfigError(f"{jaas.name}: the login module is not PlainLoginModule")
    try:
        return entry.options["username"], entry.options["password"]
    except KeyError as error:
        raise CommandConfigError(f"{jaas.name}: there is no {error.args[0]}") from None


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise CommandConfigError(f"{server!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
