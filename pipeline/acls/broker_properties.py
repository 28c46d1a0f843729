"""What a broker's server.properties says about who is allowed without any ACL."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import javaproperties

# What Java's String.trim() removes, which Kafka applies to every value.
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))


class PropertiesError(ValueError):
    """A file that cannot be used; the message names it and what is wrong."""


class BrokerSettings(NamedTuple):
    """The settings that decide beside the ACLs, as in `pipeline.acls.ruleset.Ruleset`.

    ``broker_listener`` is that of the brokers, in upper case, on which ``broker_users`` may do
    everything.
    """

    super_users: frozenset[str] = frozenset()
    broker_users: frozenset[str] = frozenset()
    broker_listener: str = ""
    allow_everyone_if_no_acl_found: bool = False
    cidr: bool = False


def read_broker_properties(path: str) -> BrokerSettings:
    """Read the settings with Kafka's rules: ISO-8859-1, the last of two lines counts.

    Settings of our broker alone (``broker.users``, ``aclbroker.acl.host.cidr``) are not set in the
    file of a Kafka, and so have no effect there. Raises PropertiesError, and OSError if the file
    cannot be read.
    """
    values = client_properties(path)
    listener = values.get("inter.broker.listener.name") or values.get(
        "security.inter.broker.protocol", "PLAINTEXT"
    )
    return BrokerSettings(
        _principals(path, values, "super.users"),
        _principals(path, values, "broker.users"),
        listener.upper(),
        _boolean(path, values, "allow.everyone.if.no.acl.found"),
        _boolean(path, values, "aclbroker.acl.host.cidr"),
    )


def client_properties(path: str) -> dict[str, str]:
    """Return the properties of a Kafka client's file. Raises OSError and PropertiesError."""
    try:
        found = javaproperties.loads(Path(path).read_bytes().decode("iso-8859-1"))
    except javaproperties.InvalidUEscapeError:
        raise PropertiesError(f"{path}: a \\u is not followed by four hexadecimal digits") from None
    return {name: value.strip(_JAVA_BLANKS) for name, value in found.items()}


def _principals(path: str, values: dict[str, str], name: str) -> frozenset[str]:
    items = (item.strip() for item in values.get(name, "").split(";"))
    principals = frozenset(item for item in items if item)
    for principal in principals:
        if ":" not in principal:
            raise PropertiesError(
                f"{path}: {name}: {principal!r} is not Type:name; several are separated by ';'"
            )
    return principals


def _boolean(path: str, values: dict[str, str], name: str) -> bool:
    text = values.get(name, "false").lower()
    if text not in ("true", "false"):
        raise PropertiesError(f"{path}: {name} must be true or false; {text!r} is not")
    return text == "true"
