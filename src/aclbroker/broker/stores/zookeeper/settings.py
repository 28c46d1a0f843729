"""How to reach ZooKeeper: the URL of the store, and Kafka's settings ``zookeeper.*``.

As in Kafka the settings of the authorizer's own connection, ``authorizer.zookeeper.*``, come before
those of the broker's.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from aclbroker.acl.settings import parse_boolean
from aclbroker.broker.auth.sasl.jaas import JaasError, parse_jaas
from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.tls import client_context
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.zookeeper.layout import invalid_name
from aclbroker.broker.urls import without_login

SCHEME: Final = "zookeeper://"
LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_LOGIN: Final = "aclbroker.zookeeper.sasl.jaas.config"
_FORM: Final = "zookeeper://HOST:PORT[,HOST:PORT...][/CHROOT]"
_SERVER: Final = re.compile(
    r"(?:[\w.-]+|\[[0-9A-Fa-f:.%\w]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_PORT: Final = 2181
_LAST_PORT: Final = 65535
_SESSION_MS: Final = 18_000
_INT_MAX: Final = 2**31 - 1
_TLS: Final = "zookeeper.ssl."
_TLS_NAMES: Final = {"protocol": None, "crl.enable": "false", "ocsp.enable": "false"}
"""Settings of TLS to ZooKeeper that are not made here, and the only value that they may have."""


class ZookeeperSettings(NamedTuple):
    """How to reach ZooKeeper. ``chroot`` is "" or begins with a slash; times are in milliseconds.

    ``login`` is a user's name and password for DIGEST-MD5. With ``sets_acls`` nodes that are made
    can be changed by that user alone.
    """

    servers: tuple[str, ...]
    chroot: str = ""
    session_timeout_ms: int = _SESSION_MS
    connection_timeout_ms: int = _SESSION_MS
    sets_acls: bool = False
    login: tuple[str, str] | None = None
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"{SCHEME}{','.join(self.servers)}{self.chroot}"

    def __repr__(self) -> str:
        return f"ZookeeperSettings({self.url})"


def zookeeper_settings(url: str, properties: Mapping[str, str]) -> ZookeeperSettings:
    """Return what a URL and a broker's properties say.

    Raises `StoreError` that names what is wrong, and no password.
    """
    servers, chroot = _parsed(url)
    read = _Reader(properties)
    session = read.milliseconds("session.timeout.ms", _SESSION_MS)
    login = _login(properties.get(_LOGIN, "").strip())
    sets_acls = read.boolean("set.acl")
    if sets_acls and login is None:
        raise StoreError(
            f"zookeeper.set.acl=true, but {_LOGIN} names no user to whom the nodes would belong"
        )
    return ZookeeperSettings(
        servers,
        chroot,
        session,
        read.milliseconds("connection.timeout.ms", session),
        sets_acls,
        login,
        _tls(read) if read.boolean("ssl.client.enable") else None,
    )


def _parsed(url: str) -> tuple[tuple[str, ...], str]:
    """Return the servers and the chroot of a URL."""
    text, shown = url.removeprefix(SCHEME), without_login(url)
    together, slash, path = text.partition("/")
    servers = []
    for server in (each.strip() for each in together.split(",")):
        match = _SERVER.fullmatch(server)
        if match is None or (match["port"] and not 0 < int(match["port"]) <= _LAST_PORT):
            wrong = without_login(server)
            raise StoreError(f"{shown!r}: {wrong!r} is no HOST:PORT of a ZooKeeper; write {_FORM}")
        servers.append(server if match["port"] else f"{server}:{_PORT}")
    path = path.rstrip("/")
    for name in path.split("/") if path else ():
        reason = invalid_name(name)
        if reason is not None:
            raise StoreError(f"{shown!r}: the chroot has {reason}; write {_FORM}")
    return tuple(servers), f"{slash}{path}" if path else ""


def _login(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    wanted = f'{LOGIN_MODULE} required username="USER" password="PASSWORD";'
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise StoreError(f"{_LOGIN}: {error}; it must be: {wanted}") from None
    user, password = entry.options.get("username"), entry.options.get("password")
    if entry.login_module != LOGIN_MODULE or user is None or password is None:
        raise StoreError(f"{_LOGIN}: it must be: {wanted}")
    return user, password


def _tls(read: _Reader) -> ssl.SSLContext:
    for name, only in _TLS_NAMES.items():
        value = read.text(f"ssl.{name}")
        if only is not None and value not in ("", only):
            raise StoreError(f"{_TLS}{name}={value}: aclbroker cannot do that; allowed: {only}")
    values = {f"ssl.{name}": value for name, value in read.starting_with("ssl.").items()}
    try:
        return client_context(values)
    except ClientConfigError as error:
        raise StoreError(f"zookeeper.{error}") from None


class _Reader:
    """Reads settings ``zookeeper.*``, or ``authorizer.zookeeper.*`` where these are given."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def text(self, name: str) -> str:
        own = self._properties.get(f"authorizer.zookeeper.{name}")
        return (self._properties.get(f"zookeeper.{name}", "") if own is None else own).strip()

    def boolean(self, name: str) -> bool:
        text = self.text(name) or "false"
        try:
            return parse_boolean(text)
        except ValueError:
            raise StoreError(f"zookeeper.{name}={text!r}: allowed: true or false") from None

    def milliseconds(self, name: str, default: int) -> int:
        text = self.text(name) or str(default)
        if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= _INT_MAX:
            raise StoreError(f"zookeeper.{name}={text!r}: allowed: milliseconds, 1 to {_INT_MAX}")
        return int(text)

    def starting_with(self, prefix: str) -> dict[str, str]:
        found = {}
        for start in (f"zookeeper.{prefix}", f"authorizer.zookeeper.{prefix}"):
            for name, value in self._properties.items():
                if name.startswith(start) and value.strip():
                    found[name.removeprefix(start)] = value
        return found
