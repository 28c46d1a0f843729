"""What a broker's server.properties says about who is allowed without any ACL."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.acl.files.text_files import TextFileError, properties_of
from aclbroker.acl.settings import authorizer_settings

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
    try:
        found = authorizer_settings(values)
    except ValueError as error:
        raise PropertiesError(f"{path}: {error}") from None
    return BrokerSettings(
        found.super_users,
        found.broker_users.principals,
        found.broker_users.listener,
        found.allow_everyone_if_no_acl_found,
        found.cidr,
    )


def client_properties(path: str) -> dict[str, str]:
    """Return the properties of a Kafka client's file. Raises OSError and PropertiesError."""
    # Most commands are given no such file, and small logs are decided faster than this is imported.
    import javaproperties

    try:
        found = javaproperties.loads(properties_of(Path(path).read_bytes(), path))
    except TextFileError as error:
        raise PropertiesError(str(error)) from None
    except javaproperties.InvalidUEscapeError:
        raise PropertiesError(f"{path}: a \\u is not followed by four hexadecimal digits") from None
    return {name: value.strip(_JAVA_BLANKS) for name, value in found.items()}
