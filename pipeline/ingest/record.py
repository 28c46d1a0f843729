"""What a line of a log says, whichever form it has, but for its time."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.acl.bindings import AclOperation, ResourceType


class Record(NamedTuple):
    """The columns of `pipeline.schemas.events` that do not depend on the time."""

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
