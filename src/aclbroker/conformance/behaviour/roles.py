"""The roles in which stories are told: one user with different ACLs on all that the suite makes."""

from __future__ import annotations

from typing import Final, NamedTuple

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.broker.catalog import INTERNAL_TOPICS
from aclbroker.conformance.behaviour.story import Story
from aclbroker.conformance.resources import PREFIX

_TOPIC, _GROUP, _TRANSACTION = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
)


class Role(NamedTuple):
    """A name, the operations that are allowed on each type of resource, and which versions."""

    name: str
    allowed: tuple[tuple[ResourceType, Op], ...]
    oldest: bool = False
    """Whether requests are sent at the lowest versions instead of the highest."""
    on_cluster: bool = False
    """Whether everything is allowed on the cluster and its internal topics, too."""

    def tells(self, story: Story) -> bool:
        """Return whether a story is told in this role."""
        is_once = self.oldest and story.newest_only
        return not is_once and (story.on_cluster or not self.on_cluster)

    def acls(self, principal: str) -> tuple[AclBinding, ...]:
        """Return the ACLs of the role for a principal.

        Those on the suite's names are prefixed, those on the cluster and internal topics literal.
        """
        places = [(kind, PREFIX, PatternType.PREFIXED, each) for kind, each in self.allowed]
        if self.on_cluster:
            literal = [(ResourceType.CLUSTER, CLUSTER_NAME)]
            literal += [(_TOPIC, name) for name in sorted(INTERNAL_TOPICS)]
            places += [(kind, name, PatternType.LITERAL, Op.ALL) for kind, name in literal]
        return tuple(
            AclBinding(kind, name, pattern, principal, "*", operation, AclPermission.ALLOW)
            for kind, name, pattern, operation in places
        )


_EVERYTHING: Final = tuple((kind, Op.ALL) for kind in (_TOPIC, _GROUP, _TRANSACTION))

ROLES: Final = (
    Role("owner", _EVERYTHING),
    Role("old-owner", _EVERYTHING, oldest=True),
    Role("reader", ((_TOPIC, Op.READ), (_GROUP, Op.READ))),
    Role("writer", ((_TOPIC, Op.WRITE), (_TRANSACTION, Op.WRITE))),
    Role("describer", tuple((kind, Op.DESCRIBE) for kind in (_TOPIC, _GROUP, _TRANSACTION))),
    Role("no-topics", ((_GROUP, Op.ALL), (_TRANSACTION, Op.ALL))),
    Role("topics-only", ((_TOPIC, Op.ALL),)),
    Role("nobody", ()),
    Role("operator", _EVERYTHING, on_cluster=True),
)
"""All roles, in the order in which stories are told in them."""
