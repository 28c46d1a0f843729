"""The targets of the command's actions: a cluster, or another holder of ACLs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding, AclFilter
    from aclbroker.broker.client.session import Session


class ListTarget(Protocol):
    """A holder of ACLs that can be listed."""

    behind_entries: str
    """The text that Kafka's tool of that kind prints behind the last entry of a resource."""

    def find(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return the ACLs that a filter selects."""


class Target(ListTarget, Protocol):
    """A holder of ACLs that can also be changed."""

    def known(self, acl_filter: AclFilter) -> Collection[AclBinding]:
        """Return existing ACLs, which the command reports and does not add again."""

    def add(self, acls: Sequence[AclBinding]) -> None:
        """Add ACLs."""

    def remove(self, filters: Sequence[AclFilter]) -> None:
        """Remove the ACLs that filters select."""


class ClusterTarget:
    """A cluster, asked by Kafka's requests. Methods raise `ClientError`."""

    behind_entries = ""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, acl_filter: AclFilter) -> Collection[AclBinding]:
        """Return the ACLs that a filter selects."""
        from aclbroker.broker.client.acls import describe_acls

        return describe_acls(self._session, acl_filter)

    def known(self, acl_filter: AclFilter) -> Collection[AclBinding]:
        """Return the ACLs that a filter selects."""
        return set(self.find(acl_filter))

    def add(self, acls: Sequence[AclBinding]) -> None:
        """Create ACLs in one request."""
        from aclbroker.broker.client.acls import create_acls

        create_acls(self._session, acls)

    def remove(self, filters: Sequence[AclFilter]) -> None:
        """Delete what filters select in one request."""
        from aclbroker.broker.client.acls import delete_acls

        delete_acls(self._session, filters)
