"""One line of the audit log, before it has a form: a decision, or equal ones of a period.

What a client chooses is shortened here, so that no line and no memory follows its length.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import Decision, Position, RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.protocol.messages import ApiKey

MOST_CHARACTERS: Final = 256
"""How much of a text is recorded. A topic's name has at most 249 characters."""

MOST_OF_PRINCIPAL: Final = 1024
"""How much of a principal is recorded: the subject of a certificate can be long."""

_MOST_REFERENCES: Final = 2**31 - 1
"""How many references a line may have, that the audit pipeline can read it."""

Name = str | tuple[str, int] | None
"""A resource's name, or what is recorded of it and its full length."""


class Request(NamedTuple):
    """What the lines of one request have in common; ``client_id`` is shortened."""

    api_version: int
    client_id: str | None
    client_id_length: int
    correlation_id: int


class Asked:
    """What is asked, by whom and from where: all that equal decisions have in common but the name.

    ``heads`` is for whoever writes lines: what is the same in all of them, by the decision.
    """

    __slots__ = ("api_key", "heads", "log_if_denied", "operation", "resource_type", "session")

    def __init__(
        self,
        session: Session,
        api_key: int,
        operation: AclOperation,
        resource_type: ResourceType,
        log_if_denied: bool,
    ) -> None:
        self.session = session
        self.api_key = api_key
        self.operation = operation
        self.resource_type = resource_type
        self.log_if_denied = log_if_denied
        self.heads: dict[bool, Any] = {}

    @property
    def is_of_any_topic(self) -> bool:
        """Whether any topic would do (KIP-679): InitProducerId asks so, and names no topic."""
        return self.resource_type is ResourceType.TOPIC and self.api_key == ApiKey.INIT_PRODUCER_ID


class Record:
    """A decision on the resource of a name, or the equal ones of a period.

    ``count`` is how many it stands for, 0 for a single decision; ``references`` how often their
    requests named the resource, ``first`` and ``last`` when they were made, in seconds since the
    epoch. ``request`` is that of the first one. ``acls`` is the position of the ACLs that made the
    last one, ``first_acls`` of those that made the first; None if they have none.
    """

    __slots__ = (
        "acls",
        "asked",
        "count",
        "decision",
        "first",
        "first_acls",
        "last",
        "name",
        "other_client_ids",
        "references",
        "request",
        "rule",
    )

    def __init__(
        self,
        asked: Asked,
        request: Request,
        name: Name,
        references: int,
        decision: Decision,
        now: float,
        acls: Position | None = None,
    ) -> None:
        self.asked = asked
        self.request = request
        self.name = name
        self.references = references
        self.decision = decision
        # The rule can only be asked for until the ACLs change.
        self.rule = decision.rule
        self.first = self.last = now
        self.first_acls = self.acls = acls
        self.count = 0
        self.other_client_ids = False

    @property
    def allowed(self) -> bool:
        """Whether it was allowed."""
        return self.decision.allowed

    @property
    def text(self) -> str | None:
        """What is kept of the resource's name."""
        return self.name[0] if isinstance(self.name, tuple) else self.name

    def takes(self, decision: Decision, references: int) -> bool:
        """Tell whether another decision on the same name is equal, by the same ACL, and fits."""
        if self.references + references > _MOST_REFERENCES:
            return False
        if decision is self.decision:
            return True
        return decision.allowed == self.decision.allowed and decision.rule == self.rule

    def repeat(
        self, references: int, client_id: str | None, now: float, acls: Position | None = None
    ) -> None:
        """Count an equal decision. ``client_id`` is shortened."""
        if not self.count:
            self.first = self.last = now
            self.first_acls = acls
        elif now > self.last:  # the clock may have been set back
            self.last = now
        self.acls = acls
        self.count += 1
        self.references += references
        if client_id != self.request.client_id:
            self.other_client_ids = True

    def repeats(self) -> Record:
        """Return a record of what repeats this decision: of nothing yet."""
        return Record(self.asked, self.request, self.name, 0, self.decision, self.last, self.acls)


def name_of(name: str | None) -> Name:
    """Return what is kept of a resource's name."""
    if name is None or len(name) <= MOST_CHARACTERS:
        return name
    return name[:MOST_CHARACTERS], len(name)


def shortened(text: str | None) -> str | None:
    """Return what is kept of a text."""
    return text if text is None or len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS]


def request_of(context: RequestContext) -> Request:
    """Return what is kept of a request."""
    client_id = context.client_id
    length = 0 if client_id is None else len(client_id)
    return Request(context.api_version, shortened(client_id), length, context.correlation_id)
