"""What a line of a log says besides its time, in whichever form it is written."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.acl.hosts import canonical, matches_nobody


class Record(NamedTuple):
    """The columns of `pipeline.schemas.events` that do not depend on the time, and the broker.

    ``broker``: which broker decided, None if the line does not say.
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
"""How a principal begins. The type is a class's choice; a space in it makes the text doubtful.

So does a bracket: then a class has printed itself around the principal, as those of `unwrapped` do.
"""

_OAUTH: Final = re.compile(
    r"OAuthKafkaPrincipal\((?P<principal>.*?)"
    r"(?:, groups: (?:null|\[[^\[\]]*\]))?, session: [^,]*, token: [^,]*\)",
    re.DOTALL,
)


def unwrapped(principal: str) -> str:
    """Return the principal that a known class prints itself around, or else the text as it is.

    That is Strimzi's OAuthKafkaPrincipal. Its groups are none that Kafka's authorizer looks at.
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
    # Characters that a path cannot have take three bytes there.
    size = len(text.encode(errors="replace")) + 2 * sum(not each.isalnum() for each in text)
    return "\0" not in text and 0 < size <= _LONGEST_CLUSTER


_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\](?::[0-9]{1,5})?")
_WITH_PORT: Final = re.compile(
    r"([0-9.]+|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?:%[0-9A-Za-z._-]+)?):[0-9]{1,5}"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F.:]+(?:%[0-9A-Za-z._-]+)?")


@lru_cache(maxsize=100_000)
def address_of(host: str) -> str | None:
    """Return the address that a text is, in the form of `broker.acl.hosts`; None if it is none.

    It may be as Java prints one: ``/10.0.0.1``, ``name/10.0.0.1``, ``10.0.0.1:53123``, ``[::1]:1``.
    """
    printed = host.rpartition("/")[2]
    found = _BRACKETED.fullmatch(printed) or _WITH_PORT.fullmatch(printed)
    address = found[1] if found else printed
    if not _ADDRESS.fullmatch(address) or matches_nobody(address):
        return None
    return canonical(address)


def canonical_host(host: str) -> str:
    """Return the address that a text is, and any other text as it is."""
    return address_of(host) or host
