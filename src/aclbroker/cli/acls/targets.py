"""Where ACLs are listed, added and removed: a cluster, by its requests, or something like it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aclbroker.broker.acl.bindings import AclBinding, AclFilter
    from aclbroker.broker.client.session import Session


class ListTarget(Protocol):
    """What has ACLs that can be listed."""

    behind_entries: str
    """What Kafka's tool of that kind prints behind the last entry of a resource."""

    def find(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return the ACLs that a filter selects."""


class Target(ListTarget, Protocol):
    """What has ACLs that can be changed, too."""

    def known(self, acl_filter: AclFilter) -> Collection[AclBinding]:
        """Return the ACLs that are not added again, and are told as those that exist."""

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
