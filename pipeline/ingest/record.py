"""What a line of a log says besides its time, in whichever form it is written."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.acl.hosts import canonical


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


PRINCIPAL_FORM: Final = "[^ :]+:"
"""How a principal begins. The type is a class's choice; a space in it makes the text doubtful."""

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


@lru_cache(maxsize=100_000)
def canonical_host(host: str) -> str:
    """Return what `broker.acl.hosts.canonical` does; kept, since a log repeats its hosts."""
    return canonical(host)
