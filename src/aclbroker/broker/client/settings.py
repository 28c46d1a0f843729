"""The settings of a client: a Kafka client's properties file, which says how to reach a cluster.

Kafka's tools take it as the option ``--command-config``. What cannot be honoured here is an error,
a name that no client of Kafka's has a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.urls import without_login

if TYPE_CHECKING:
    from aclbroker.broker.auth.sasl.jaas import JaasEntry
    from aclbroker.broker.config.setting import Setting

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_REQUEST_TIMEOUT_MS: Final = 30_000
_SETUP_TIMEOUT_MS: Final = 10_000
_LONGEST_MS: Final = 2**31 - 1
_ADDRESS: Final = re.compile(r"(?P<host>[\w%.-]+|\[[\w%.:-]+\]):(?P<port>[0-9]{1,5})", re.ASCII)
_LAST_PORT: Final = 65535

Address = tuple[str, int]
"""A host, without brackets, and a port."""


class ClientSettings(NamedTuple):
    """How a client reaches a cluster and logs in; by default without TLS and without a login.

    ``values`` has all settings as text. ``jaas`` is None where the protocol has no SASL. Timeouts
    are in seconds: to connect, and for each answer.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str = "GSSAPI"
    jaas: JaasEntry | None = None
    client_id: str | None = None
    connect_timeout: float = _SETUP_TIMEOUT_MS / 1000
    request_timeout: float = _REQUEST_TIMEOUT_MS / 1000
    values: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ClientSettings({self.protocol}, {self.mechanism})"


def read_addresses(text: str, option: str = "bootstrap.servers") -> list[Address]:
    """Return the addresses of ``host:port,host:port``; raises `ClientConfigError`."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or int(match["port"]) > _LAST_PORT:
            raise ClientConfigError(f"{option}: {without_login(part)!r} is not HOST:PORT")
        found.append((match["host"].strip("[]"), int(match["port"])))
    if not found:
        raise ClientConfigError(f"{option}: there is no HOST:PORT")
    return found


def read_settings(file: str | None) -> ClientSettings:
    """Return the settings of a properties file, the defaults for None.

    Raises `ClientConfigError` with every problem that the file has.
    """
    return ClientSettings() if file is None else settings_of(*read_given(file))


def read_given(file: str) -> tuple[Mapping[str, Setting], tuple[str, ...]]:
    """Return what stands in a properties file by name, and warnings about it.

    Values that stand elsewhere (`config.providers`) are in their place. Raises `ClientConfigError`.
    """
    # Imported where there is a file: the parser of properties takes time to load.
    from aclbroker.broker.config.model import ConfigError
    from aclbroker.broker.config.properties import read_properties
    from aclbroker.broker.config.providers import resolved

    problems: list[str] = []
    try:
        written, warnings = read_properties(file, may_be_empty=True)
        given = resolved(written, problems)
    except ConfigError as error:
        raise ClientConfigError(*error.problems) from None
    if problems:
        raise ClientConfigError(*problems)
    return given, tuple(warnings)


def settings_of(given: Mapping[str, Setting], warnings: tuple[str, ...] = ()) -> ClientSettings:
    """Return the settings that stand in a file; raises `ClientConfigError`."""
    reader = _Reader(given)
    protocol = reader.protocol()
    settings = ClientSettings(
        protocol=protocol,
        mechanism=reader.text("sasl.mechanism", "GSSAPI"),
        jaas=reader.jaas() if protocol.startswith("SASL_") else None,
        client_id=reader.text("client.id") or None,
        connect_timeout=reader.seconds("socket.connection.setup.timeout.ms", _SETUP_TIMEOUT_MS),
        request_timeout=reader.seconds("request.timeout.ms", _REQUEST_TIMEOUT_MS),
        values={name: each.value for name, each in given.items()},
        warnings=(*warnings, *reader.unknown()),
    )
    reader.check_allowed()
    if reader.problems:
        raise ClientConfigError(*reader.problems)
    return settings


class _Reader:
    """Typed access to what stands in a file; collects what is wrong with it."""

    def __init__(self, given: Mapping[str, Setting]) -> None:
        self.given = given
        self.problems: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        return self.given[name].value if name in self.given else default

    def protocol(self) -> str:
        # Kafka's clients take the name in any case.
        name = self.text("security.protocol", "PLAINTEXT").upper()
        if name in PROTOCOLS:
            return name
        self._refuse("security.protocol", f"allowed: {', '.join(PROTOCOLS)}")
        return "PLAINTEXT"

    def seconds(self, name: str, default: int) -> float:
        text = self.text(name, str(default))
        if not text.isascii() or not text.isdigit() or int(text) > _LONGEST_MS:
            self._refuse(name, f"allowed: milliseconds, 0 to {_LONGEST_MS}")
            return default / 1000
        # A timeout of 0 would mean to Python's sockets that they never wait.
        return max(int(text), 1) / 1000

    def jaas(self) -> JaasEntry | None:
        from aclbroker.broker.auth.sasl.jaas import JaasError, parse_jaas

        setting = self.given.get("sasl.jaas.config")
        if setting is None:
            self.problems.append(
                "sasl.jaas.config is missing; the login stands in it, not in a file of Java's"
            )
            return None
        try:
            return parse_jaas(setting.value)
        except JaasError as error:
            self.problems.append(f"{setting.origin}: {setting.name}: {error}")
            return None

    def check_allowed(self) -> None:
        from aclbroker.broker.client.names import ALLOWED

        for name, allowed in ALLOWED.items():
            if self.text(name) and self.text(name) not in allowed:
                instead = ", ".join(allowed) or "none; leave it out"
                self._refuse(name, f"aclbroker cannot do that; allowed: {instead}")

    def unknown(self) -> list[str]:
        from aclbroker.broker.client.names import is_known
        from aclbroker.broker.config.properties import display_name

        return [
            f"{each.origin}: {display_name(name)} is no setting of Kafka's clients; no effect"
            for name, each in self.given.items()
            if not is_known(name)
        ]

    def _refuse(self, name: str, reason: str) -> None:
        setting = self.given[name]
        # What a provider stands for may be a secret.
        value = setting.value if setting.written is None else setting.written
        self.problems.append(f"{setting.origin}: {name}={value!r}: {reason}")
