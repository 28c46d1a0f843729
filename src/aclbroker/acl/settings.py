"""The properties that decide beside the ACLs, by the names of Kafka's StandardAuthorizer.

``broker.users`` is Confluent's, and names with ``aclbroker.`` are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from aclbroker.acl.decisions import BrokerUsers

T = TypeVar("T")

_INT_MAX: Final = 2**31 - 1
_HISTORY: Final = "100000"


class AuthorizerSettings(NamedTuple):
    """Who may do what without any ACL, and whether ACLs' hosts may be subnets (KIP-252)."""

    super_users: frozenset[str]
    broker_users: BrokerUsers
    allow_everyone_if_no_acl_found: bool
    cidr: bool


def authorizer_settings(properties: Mapping[str, str]) -> AuthorizerSettings:
    """Read them from a broker's properties; raises ValueError that names the one at fault."""
    return AuthorizerSettings(
        _principals(properties, "super.users"),
        BrokerUsers(_principals(properties, "broker.users"), inter_broker_listener(properties)),
        _boolean(properties, "allow.everyone.if.no.acl.found"),
        _boolean(properties, "aclbroker.acl.host.cidr"),
    )


def acl_limit(properties: Mapping[str, str]) -> int | None:
    """Return how many ACLs there may be (``aclbroker.acl.limit``), None for any number.

    Raises ValueError.
    """
    form = "a number of ACLs, or empty for no limit"
    return _parsed(properties, "aclbroker.acl.limit", "", parse_limit, form)


def history_changes(properties: Mapping[str, str]) -> int:
    """Return how many of the last changes a store keeps (``aclbroker.store.history.max.changes``).

    Raises ValueError.
    """
    name = "aclbroker.store.history.max.changes"
    return _parsed(properties, name, _HISTORY, parse_count, "a number of changes, 0 for none")


class StaleSettings(NamedTuple):
    """What is done when nothing has been heard of a shared store for long."""

    after_s: float
    denies: bool
    """Whether all but super users are denied everything then."""


def stale_settings(properties: Mapping[str, str]) -> StaleSettings:
    """Read ``aclbroker.store.max.lag.ms`` and ``aclbroker.store.stale``; raises ValueError."""
    name = "aclbroker.store.max.lag.ms"
    lag = _parsed(properties, name, "30000", parse_count, "a number of milliseconds")
    stale = properties.get("aclbroker.store.stale", "serve").strip().lower()
    if stale not in ("serve", "deny"):
        raise ValueError(f"aclbroker.store.stale={stale!r}: allowed: serve, deny")
    return StaleSettings(lag / 1000, stale == "deny")


def reads_latest(properties: Mapping[str, str]) -> bool:
    """Read ``aclbroker.store.read``; raises ValueError."""
    read = properties.get("aclbroker.store.read", "local").strip().lower()
    if read not in ("local", "latest"):
        raise ValueError(f"aclbroker.store.read={read!r}: allowed: local, latest")
    return read == "latest"


def inter_broker_listener(properties: Mapping[str, str]) -> str:
    """Return the name of the listener that brokers use among themselves, in upper case."""
    name = properties.get("inter.broker.listener.name") or properties.get(
        "security.inter.broker.protocol", "PLAINTEXT"
    )
    return name.upper()


def parse_principals(text: str) -> frozenset[str]:
    """Return principals that are separated by semicolons; raises ValueError with a reason."""
    principals = frozenset(item.strip() for item in text.split(";")) - {""}
    for principal in principals:
        if ":" not in principal:
            raise ValueError(f"{principal!r} has no colon")
    return principals


def parse_boolean(text: str) -> bool:
    """Return what ``true`` or ``false`` in any case stands for; raises ValueError with a reason."""
    if text.lower() not in ("true", "false"):
        raise ValueError("not a boolean")
    return text.lower() == "true"


def parse_limit(text: str) -> int | None:
    """Return a number, None for an empty text; raises ValueError with a reason."""
    return parse_count(text) if text else None


def parse_count(text: str) -> int:
    """Return a number from 0; raises ValueError with a reason."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError("not a number")
    if int(text) > _INT_MAX:
        raise ValueError("out of range")
    return int(text)


def _principals(properties: Mapping[str, str], name: str) -> frozenset[str]:
    form = "Type:name, such as User:admin, several separated by ';'"
    return _parsed(properties, name, "", parse_principals, form)


def _boolean(properties: Mapping[str, str], name: str) -> bool:
    return _parsed(properties, name, "false", parse_boolean, "true or false")


def _parsed(
    properties: Mapping[str, str], name: str, default: str, parse: Callable[[str], T], form: str
) -> T:
    text = properties.get(name, default).strip()
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{name}={text!r}: {error}; it must be {form}") from None
