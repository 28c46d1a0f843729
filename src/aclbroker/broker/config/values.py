"""The types of values: each says what is allowed and turns text into a Python value."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from aclbroker.acl.hosts import canonical
from aclbroker.acl.settings import parse_boolean, parse_limit, parse_principals
from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.auth.tls.settings import JKS, PEM, PKCS12, TLS_1_2, TLS_1_3
from aclbroker.broker.config.model import (
    BUILT_IN_AUTHORIZER,
    BUILT_IN_PRINCIPAL_BUILDER,
    NO_AUTHORIZER,
    ServerUrl,
)
from aclbroker.broker.config.store_url import (
    CONFLUENT_AUTHORIZER,
    ZOOKEEPER,
    ZOOKEEPER_AUTHORIZERS,
)

if TYPE_CHECKING:
    from aclbroker.broker.auth.mapping.kerberos_name import KerberosRule
    from aclbroker.broker.auth.mapping.ssl_principal_mapping import SslPrincipalMapper

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM_MECHANISMS, "OAUTHBEARER", "GSSAPI")
TLS_PROTOCOLS_SPOKEN = (TLS_1_2, TLS_1_3)
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SERVER_URL = re.compile(r"(?i:(https?))://(\[[0-9a-fA-F:.%]+\]|[0-9a-zA-Z\-._]*):([0-9]{1,5})/?")
_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_KAFKA_AUTHORIZERS = (
    BUILT_IN_AUTHORIZER,
    *ZOOKEEPER_AUTHORIZERS,
    CONFLUENT_AUTHORIZER,
)


class ValueType(NamedTuple):
    """`parse` raises ValueError, with a reason, on a text that is not `allowed`."""

    allowed: str
    parse: Callable[[str], Any]


def integer(low: int, high: int = INT_MAX, never: int | None = None) -> ValueType:
    """An integer from low to high; `never`, if given, is allowed besides and means no limit."""

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError("not an integer")
        value = int(text)
        if value != never and not low <= value <= high:
            raise ValueError("out of range")
        return value

    limits = f"an integer from {low} to {high}"
    return ValueType(limits if never is None else f"{never} (never) or {limits}", parse)


def choice(*allowed: str, also: dict[str, str] | None = None, note: str = "") -> ValueType:
    """One of a few words in any case; `also` maps other spellings to them."""
    words = {word.lower(): word for word in allowed} | (also or {})

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError("unknown")
        return words[text.lower()]

    return ValueType(", ".join([*allowed, *(word.upper() for word in also or {})]) + note, parse)


def nothing_but(value: str, reason: str) -> ValueType:
    """Exactly one value, because any other asks for protection that does not exist here yet."""

    def parse(text: str) -> str:
        if text != value:
            raise ValueError(reason)
        return text

    return ValueType(value or "(must not be set)", parse)


def _csv(text: str) -> tuple[str, ...]:
    # Where ConfigDef's LIST would give an empty item for "a,,b", the stray comma is dropped.
    return tuple(item for item in re.split(r"\s*,\s*", text.strip()) if item)


def _csv_map(text: str) -> tuple[tuple[str, str], ...]:
    # The last colon separates, because a name may be an IPv6 address (Kafka's Csv.parseCsvMap).
    pairs = []
    for item in _csv(text):
        name, colon, value = item.rpartition(":")
        if not colon or not name.strip():
            raise ValueError(f"{item!r} has no colon")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)


def _protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for name, value in _csv_map(text):
        if value.upper() not in SECURITY_PROTOCOLS:
            raise ValueError(f"{value!r} is not a security protocol")
        if name.upper() in protocols:
            raise ValueError(f"listener {name.upper()!r} is there twice")
        protocols[name.upper()] = value.upper()
    return protocols


def _tls_protocols(text: str) -> tuple[str, ...]:
    protocols = _csv(text)
    for name in protocols:
        if name in ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"):
            raise ValueError(f"{name} is broken, and must not be used any more (RFC 8996)")
        if name not in TLS_PROTOCOLS_SPOKEN:
            raise ValueError(f"{name!r} is no version of TLS that is spoken here")
    return protocols or TLS_PROTOCOLS_SPOKEN


def _connections_by_address(text: str) -> dict[str, int]:
    limits: dict[str, int] = {}
    for host, count in _csv_map(text):
        limit = integer(0).parse(count)
        for address in _addresses(host):
            limits[address] = limit
    return limits


def _topics(text: str) -> dict[str, int]:
    topics = {name: integer(1).parse(count) for name, count in _csv_map(text)}
    for name in topics:
        if not is_topic_name(name):
            raise ValueError(f"{name!r} is no topic name")
    return topics


def _addresses(host: str) -> set[str]:
    try:
        found = {str(item[4][0]) for item in socket.getaddrinfo(host.strip("[]"), None)}
    except (OSError, UnicodeError):
        raise ValueError(f"host {host!r} cannot be resolved") from None
    return {canonical(address) for address in found}


def _authorizer(text: str) -> str:
    if text in _KAFKA_AUTHORIZERS:
        return BUILT_IN_AUTHORIZER
    return text if text == NO_AUTHORIZER else _python_class(text)


def _principal_builder(text: str) -> str:
    return text if text == BUILT_IN_PRINCIPAL_BUILDER else _python_class(text)


def _ssl_principal_mapping_rules(text: str) -> SslPrincipalMapper:
    # Imported where a listener has certificates: other brokers start sooner without it.
    from aclbroker.broker.auth.mapping.ssl_principal_mapping import SslPrincipalMapper

    return SslPrincipalMapper(text)


def _kerberos_rules(text: str) -> tuple[KerberosRule, ...]:
    from aclbroker.broker.auth.mapping.kerberos_name import parse_kerberos_rules

    return parse_kerberos_rules(text)


def _python_class(text: str) -> str:
    if _CLASS.fullmatch(text):
        return text
    raise ValueError("not a class that can be loaded here")


def _address(text: str) -> tuple[str, int] | None:
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host:
        raise ValueError("not HOST:PORT")
    return host.strip("[]"), integer(0, 65535).parse(port)


def _jwks_url(text: str) -> str | None:
    if not text:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("file", "http", "https"):
        raise ValueError("not a file:, http: or https: URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL with a user or a password")
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError("not the absolute path of a file on this machine")
    elif not parts.hostname:
        raise ValueError("no host")
    return text


def _claim(text: str) -> str:
    if not text:
        raise ValueError("empty")
    return text


def _store(text: str) -> str:
    path = text.removeprefix("sqlite:///")
    is_file = path not in ("", text) and "\0" not in path
    is_memory = text in ("memory:", "memory://")
    is_zookeeper = text.removeprefix(ZOOKEEPER) not in ("", text)
    if not (is_file or is_memory or is_zookeeper or _TOPIC_URL.fullmatch(text)):
        raise ValueError("not a store")
    return text


def _store_or_cluster(text: str) -> str:
    return text if _CLUSTER_URL.fullmatch(text) else _store(text)


_CLUSTER_URL = re.compile(r"kafka\+acls://[^/\s@]+:[0-9]+")
_TOPIC_URL = re.compile(r"kafka://[^/\s]+:[0-9]+/[a-zA-Z0-9._-]{1,249}")


def _server_urls(text: str) -> tuple[ServerUrl, ...]:
    return tuple(map(_server_url, _csv(text)))


def _server_url(text: str) -> ServerUrl:
    match = _SERVER_URL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not http://HOST:PORT or https://HOST:PORT")
    port = integer(0, 65535).parse(match[3])
    return ServerUrl(match[1].lower(), (match[2] or "").strip("[]") or None, port)


STORE_TYPE = choice(JKS, PKCS12, PEM)
TLS_PROTOCOLS = ValueType(
    f"{', '.join(TLS_PROTOCOLS_SPOKEN)}, separated by commas; empty is all", _tls_protocols
)
BOOLEAN = ValueType("true, false", parse_boolean)
NAMES = ValueType("names separated by commas", _csv)
TEXT = ValueType("a text", str)
OPTIONAL_TEXT = ValueType("a text, or empty", lambda text: text or None)
OPTIONAL_PORT = ValueType(
    "1 to 65535, or empty", lambda text: integer(1, 65535).parse(text) if text else None
)
PATH = ValueType("the path of a file, or empty", lambda text: text or None)
ENDPOINTS = ValueType("NAME://HOST:PORT separated by commas", _csv)
PROTOCOL_MAP = ValueType(
    f"NAME:PROTOCOL separated by commas, protocol one of {', '.join(SECURITY_PROTOCOLS)}",
    _protocol_map,
)
CONNECTIONS_BY_ADDRESS = ValueType(
    "HOST:COUNT separated by commas, each host an address or a name that resolves",
    _connections_by_address,
)
ADDRESS = ValueType("HOST:PORT such as 127.0.0.1:9404, or empty", _address)
METADATA_URLS = ValueType(
    "http://HOST:PORT or https://HOST:PORT, separated by commas", _server_urls
)
TOPICS = ValueType("TOPIC:PARTITIONS separated by commas, such as orders:3", _topics)
PRINCIPALS = ValueType("TYPE:NAME separated by semicolons, such as User:alice", parse_principals)
AUTHORIZER = ValueType(
    f"{', '.join(_KAFKA_AUTHORIZERS)} (all four: the built-in one), package.module:Class, "
    "or empty (no authorizer)",
    _authorizer,
)
PRINCIPAL_BUILDER = ValueType(
    f"{BUILT_IN_PRINCIPAL_BUILDER}, package.module:Class", _principal_builder
)
SSL_PRINCIPAL_MAPPING_RULES = ValueType(
    "DEFAULT, RULE:pattern/replacement/, RULE:pattern/replacement/[LU], separated by commas",
    _ssl_principal_mapping_rules,
)
KERBEROS_RULES = ValueType(
    "DEFAULT, RULE:[n:string](regexp)s/pattern/replacement/g/[LU], separated by commas",
    _kerberos_rules,
)
STORE = ValueType(
    "sqlite:///PATH, with a fourth slash if the path is absolute; "
    "zookeeper://HOST:PORT,HOST:PORT/CHROOT (zookeeper.md); kafka://HOST:PORT,HOST:PORT/TOPIC "
    "(topic-store.md); or memory: (which keeps nothing over a restart)",
    _store,
)
OPTIONAL_STORE = ValueType(
    f"{STORE.allowed}; or empty", lambda text: _store(text) if text else None
)
STORE_OR_CLUSTER = ValueType(
    f"kafka+acls://HOST:PORT,HOST:PORT (a Kafka); or, as aclbroker.store, {STORE.allowed}; or "
    "empty",
    lambda text: _store_or_cluster(text) if text else None,
)
OPTIONAL_COUNT = ValueType(f"{integer(0).allowed}, or empty (no limit)", parse_limit)
JAAS = ValueType(
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD" ... ;',
    str,
)
LOGIN_MODULE = ValueType('LOGIN.MODULE.CLASS required OPTION="VALUE" ... ;', str)
JWKS_URL = ValueType(
    "file:///PATH, http://HOST/PATH or https://HOST/PATH, without a user and a password", _jwks_url
)
CLAIM = ValueType("the name of a claim", _claim)
OAUTHBEARER_JAAS = ValueType(
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'ssl.truststore.location="PATH" ... ;',
    str,
)
KERBEROS_JAAS = ValueType(
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
    'keyTab="PATH" principal="SERVICE/HOST@REALM";',
    str,
)
