"""What a line of a log says besides its time, in whichever form it is written."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.hosts import canonical, matches_nobody


class Record(NamedTuple):
    """The columns of `pipeline.schemas.events` that do not depend on the time, and the broker.

    ``broker`` is the broker that decided; None if the line does not name it.
    """

    cluster: str
    listener: str | None
    principal: str
    other_principals: str | None
    host: str
    operation: str
    resource_type: str
    resource_name: str | None
    api: str | None
    allowed: bool
    rule: str | None
    quiet: bool
    reference_count: int
    client_id: str | None
    source: str
    acls: int | None = None
    first_acls: int | None = None
    broker: str | None = None


PRINCIPAL_FORM: Final = r"[^ :()\[\]]+:"
"""Matches the beginning of a principal. A space or a bracket in its type makes the text doubtful.

A bracket means that a class has printed its own name around the principal (`unwrapped`).
"""

_OAUTH: Final = re.compile(
    r"OAuthKafkaPrincipal\((?P<principal>.*?)"
    r"(?:, groups: (?:null|\[[^\[\]]*\]))?, session: [^,]*, token: [^,]*\)",
    re.DOTALL,
)


def unwrapped(principal: str) -> str:
    """Return the principal inside the text of Strimzi's OAuthKafkaPrincipal, or else the text.

    The groups in that text are dropped, because Kafka's authorizer does not use them.
    """
    found = _OAUTH.fullmatch(principal)
    return principal if found is None else found["principal"]


ASKED: Final = tuple(
    operation
    for operation in AclOperation
    if operation not in (AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL)
)
"""What a request can ask for: ALL stands in ACLs, and never here."""

RESOURCES: Final = tuple(
    t for t in ResourceType if t not in (ResourceType.UNKNOWN, ResourceType.ANY)
)

MOST_REFERENCES: Final = 2**31 - 1
"""The greatest count of references that a table takes."""

LAST_POSITION: Final = 2**63 - 1
"""The greatest position of ACLs that a table takes."""


_LONGEST_CLUSTER: Final = 240


def is_cluster(text: str) -> bool:
    """Tell whether a text can be the name of a cluster, and of the directory of its tables."""
    # A path escapes a character that it cannot contain, which takes three bytes.
    size = len(text.encode(errors="replace")) + 2 * sum(not each.isalnum() for each in text)
    return "\0" not in text and 0 < size <= _LONGEST_CLUSTER


_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](?::[0-9]{1,5})?")
_WITH_PORT: Final = re.compile(
    r"([0-9.]+|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?:%[0-9A-Za-z._-]+)?):[0-9]{1,5}"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F.:]+(?:%[0-9A-Za-z._-]+)?")


@lru_cache(maxsize=100_000)
def address_of(host: str) -> str | None:
    """Return the address in a text, in the form of `acl.hosts`; None if there is none.

    The text may have the forms of Java: ``/10.0.0.1``, ``name/10.0.0.1``, ``10.0.0.1:53123``,
    ``[::1]:1``.
    """
    printed = host.rpartition("/")[2]
    found = _BRACKETED.fullmatch(printed) or _WITH_PORT.fullmatch(printed)
    address = found[1] if found else printed
    if not _ADDRESS.fullmatch(address) or matches_nobody(address):
        return None
    return canonical(address)


def canonical_host(host: str) -> str:
    """Return the address in a text; a text without an address stays as it is."""
    return address_of(host) or host
