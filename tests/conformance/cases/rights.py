"""What a user may do by the ACLs that name her."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases.scenario import Scenario, Step, as_admin, as_alice
from tests.conformance.requests import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    acl,
    create,
    delete,
    describe,
    describe_cluster,
    matching,
)


def right(operation: int, **values: Any) -> dict[str, Any]:
    """Return an ACL that allows alice an operation on the cluster, but for ``values``."""
    fields: dict[str, Any] = {
        "resource_type": CLUSTER,
        "name": CLUSTER_NAME,
        "principal": "User:alice",
    }
    return acl(operation=operation, **(fields | values))


RIGHTS = {
    "no right": (),
    "describe": (right(DESCRIBE),),
    "alter": (right(ALTER),),
    "all": (right(ALL),),
    "cluster action": (right(CLUSTER_ACTION),),
    "alter configs": (right(ALTER_CONFIGS),),
    "describe configs": (right(DESCRIBE_CONFIGS),),
    "create": (right(CREATE),),
    "read": (right(READ),),
    "write": (right(WRITE),),
    "delete": (right(DELETE),),
    "idempotent write": (right(IDEMPOTENT_WRITE),),
    "all but alter": (right(ALL), right(ALTER, permission=DENY)),
    "all but describe": (right(ALL), right(DESCRIBE, permission=DENY)),
    "alter, denied all": (right(ALTER), right(ALL, permission=DENY)),
    "alter, denied read": (right(ALTER), right(READ, permission=DENY)),
    "alter, denied to all": (right(ALTER), right(ALTER, principal="User:*", permission=DENY)),
    "alter, denied elsewhere": (right(ALTER), right(ALTER, host="10.0.0.1", permission=DENY)),
    "alter for anybody": (right(ALTER, principal="User:*"),),
    "alter for a group of her name": (right(ALTER, principal="Group:alice"),),
    "alter for a user type in lower case": (right(ALTER, principal="user:alice"),),
    "alter for a user in capitals": (right(ALTER, principal="User:ALICE"),),
    "alter for any group": (right(ALTER, principal="Group:*"),),
    "alter by a prefix": (right(ALTER, pattern_type=PREFIXED),),
    "alter from this host": (right(ALTER, host="127.0.0.1"),),
    "alter from this host in IPv6": (right(ALTER, host="::ffff:127.0.0.1"),),
    "alter from another host": (right(ALTER, host="127.0.0.2"),),
    "alter from a subnet": (right(ALTER, host="127.0.0.0/8"),),
    "alter from a host name": (right(ALTER, host="localhost"),),
    "alter from an empty host": (right(ALTER, host=""),),
    "alter on a topic named like the cluster": (right(ALTER, resource_type=TOPIC),),
}
"""ACLs under which alice tries all of `PROBES`."""

PROBES = (
    describe(resource_type=GROUP),
    create(acl(GROUP, "g"), acl(name="")),
    create(),
    delete(matching(GROUP, "g"), matching(TOPIC, "")),
    delete(),
)


def rights() -> list[Scenario]:
    """Return what alice may do, and is told that she may, by each set of ACLs."""
    return [
        Scenario(
            f"alice with {name}",
            (
                *(as_admin(create(*acls)) if acls else ()),
                Step("alice", describe_cluster(), 1),
                *as_alice(*PROBES),
            ),
            (3,) if acls else (1, 2, 3),
        )
        for name, acls in RIGHTS.items()
    ]
