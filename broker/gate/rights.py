"""The question that every row of the gate asks: may this session do that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, Authorizer, Decision, RequestContext
from aclbroker.broker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType


class Topics(Protocol):
    """What is known of topics: the gate needs their names where a request has ids."""

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic has it."""

    @property
    def node_id(self) -> int:
        """The id of the broker that answers."""

    @property
    def auto_creates(self) -> bool:
        """Whether a topic that is asked for and missing is created."""

    def id_of(self, name: str) -> bytes:
        """Return the id of a topic that exists."""

    def exists(self, name: str) -> bool:
        """Tell whether there is a topic of that name."""


class Observer(Protocol):
    """Takes note of decisions: for the audit log, and for who asks why."""

    def wanted(self, *, quietly: bool) -> Sequence[bool]:
        """Return which decisions to take note of: of the denied (False) and the allowed ones
        (True). It is asked first, so that what nobody wants to know costs nothing.
        """

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        *,
        quietly: bool = False,
    ) -> None:
        """Take note of decisions that are wanted, each with the resource's name and how often the
        request names it.
        """


class May:
    """The rights of one request's session. Without an authorizer it may do everything."""

    __slots__ = ("_authorizer", "_observer", "context")

    def __init__(
        self, authorizer: Authorizer | None, context: RequestContext, observer: Observer
    ) -> None:
        self.context = context
        self._authorizer = authorizer
        self._observer = observer

    def __call__(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str | None,
        *,
        quietly: bool = False,
    ) -> bool:
        """Decide one action. A null name is never allowed. ``quietly``: it only filters."""
        return bool(self.allowed(operation, resource_type, {name: 1}, quietly=quietly))

    def allowed(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        counts: Mapping[str | None, int],
        *,
        quietly: bool = False,
    ) -> set[str | None]:
        """Return those of the names on which the operation is allowed; ``counts`` has how often
        the request names each.
        """
        if self._authorizer is None:
            return set(counts) - {None}
        context = self.context
        decisions = self._authorizer.authorize(context, operation, resource_type, list(counts))
        if wanted := self._observer.wanted(quietly=quietly):
            decided = [
                (name, count, decision)
                for (name, count), decision in zip(counts.items(), decisions, strict=True)
                if decision.allowed in wanted
            ]
            self._observer.record(context, operation, resource_type, decided, quietly=quietly)
        return {
            name
            for name, decision in zip(counts, decisions, strict=True)
            if decision.allowed and name is not None
        }

    def cluster(self, operation: AclOperation, *, quietly: bool = False) -> bool:
        """Decide an operation on the cluster."""
        return self(operation, ResourceType.CLUSTER, CLUSTER_NAME, quietly=quietly)

    def anywhere(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Decide whether the operation is allowed on any resource of the type (KIP-679)."""
        if self._authorizer is None:
            return True
        decision = self._authorizer.authorize_by_resource_type(
            self.context, operation, resource_type
        )
        if decision.allowed in self._observer.wanted(quietly=False):
            decided = [(ANY_RESOURCE, 1, decision)]
            self._observer.record(self.context, operation, resource_type, decided)
        return decision.allowed
