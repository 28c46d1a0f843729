"""What applications do, as the rights that the requests of their clients need.

Each right is one that the gate asks for in a row of its table; a test compares them. An operation
that another implies is listed with it, since a DENY of it alone stops the client all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules

Op = AclOperation
_TOPIC: Final = ResourceType.TOPIC
_GROUP: Final = ResourceType.GROUP
_CLUSTER: Final = ResourceType.CLUSTER
_TXN_ID: Final = ResourceType.TRANSACTIONAL_ID


class Need(NamedTuple):
    """A right that a request needs, by the name of its API key.

    ``unless_on_cluster`` is an operation on the cluster that does as well. With
    ``unless_write_anywhere`` WRITE on any topic does as well (KIP-679).
    """

    operation: AclOperation
    resource_type: ResourceType
    api: str
    unless_on_cluster: AclOperation | None = None
    unless_write_anywhere: bool = False


PRODUCE: Final = (Need(Op.DESCRIBE, _TOPIC, "METADATA"), Need(Op.WRITE, _TOPIC, "PRODUCE"))
IDEMPOTENT: Final = (
    Need(Op.IDEMPOTENT_WRITE, _CLUSTER, "INIT_PRODUCER_ID", unless_write_anywhere=True),
)
TRANSACTIONAL: Final = (
    Need(Op.DESCRIBE, _TXN_ID, "FIND_COORDINATOR"),
    Need(Op.WRITE, _TXN_ID, "INIT_PRODUCER_ID"),
)
CONSUME: Final = (
    Need(Op.DESCRIBE, _TOPIC, "METADATA"),
    Need(Op.DESCRIBE, _TOPIC, "LIST_OFFSETS"),
    Need(Op.READ, _TOPIC, "FETCH"),
)
IN_GROUP: Final = (
    Need(Op.DESCRIBE, _GROUP, "FIND_COORDINATOR"),
    Need(Op.READ, _GROUP, "JOIN_GROUP"),
    Need(Op.DESCRIBE, _GROUP, "OFFSET_FETCH"),
    Need(Op.READ, _GROUP, "OFFSET_COMMIT"),
)

ACTIVITIES: Final[Mapping[str, tuple[Need, ...]]] = MappingProxyType(
    {
        "produce": PRODUCE,
        "consume": CONSUME,
        "create-topic": (Need(Op.CREATE, _TOPIC, "CREATE_TOPICS", unless_on_cluster=Op.CREATE),),
        "delete-topic": (
            Need(Op.DESCRIBE, _TOPIC, "DELETE_TOPICS", unless_on_cluster=Op.DELETE),
            Need(Op.DELETE, _TOPIC, "DELETE_TOPICS", unless_on_cluster=Op.DELETE),
        ),
        "add-partitions": (Need(Op.ALTER, _TOPIC, "CREATE_PARTITIONS"),),
        "delete-records": (Need(Op.DELETE, _TOPIC, "DELETE_RECORDS"),),
        "describe-topic": (Need(Op.DESCRIBE, _TOPIC, "METADATA"),),
        "describe-topic-configs": (Need(Op.DESCRIBE_CONFIGS, _TOPIC, "DESCRIBE_CONFIGS"),),
        "alter-topic-configs": (Need(Op.ALTER_CONFIGS, _TOPIC, "INCREMENTAL_ALTER_CONFIGS"),),
        "describe-group": (Need(Op.DESCRIBE, _GROUP, "DESCRIBE_GROUPS"),),
        "delete-group": (Need(Op.DELETE, _GROUP, "DELETE_GROUPS"),),
        "list-acls": (Need(Op.DESCRIBE, _CLUSTER, "DESCRIBE_ACLS"),),
        "change-acls": (
            Need(Op.ALTER, _CLUSTER, "CREATE_ACLS"),
            Need(Op.ALTER, _CLUSTER, "DELETE_ACLS"),
        ),
    }
)
"""By what `aclbroker can` calls it: what is needed of a Kafka 4.3."""


class Part(NamedTuple):
    """One right that an activity needs, and whether it is there.

    ``instead`` tells which other right does in its place.
    """

    need: Need
    request: Request
    is_allowed: bool
    instead: str | None = None


def needs_of(
    activity: str, *, group: bool, transactional: bool, idempotent: bool
) -> tuple[Need, ...]:
    """Return what an activity needs; raises ValueError for options that it does not have."""
    if activity not in ACTIVITIES:
        raise ValueError(f"{activity!r} is not one of {', '.join(ACTIVITIES)}")
    if (transactional or idempotent) and activity != "produce":
        raise ValueError(f"{activity} is neither transactional nor idempotent; produce may be")
    if group and activity != "consume":
        raise ValueError(f"{activity} has no group; consume may have one")
    needs = ACTIVITIES[activity]
    if idempotent or transactional:
        needs += IDEMPOTENT if not transactional else TRANSACTIONAL
    return needs + IN_GROUP if group else needs


def parts(
    rules: Rules,
    principal: str,
    host: str,
    needs: tuple[Need, ...],
    names: Mapping[ResourceType, str],
) -> Iterator[Part]:
    """Yield each right that is needed, decided by the authorizer; the activity needs all.

    ``names`` has the names of the topic, the group and so on; the cluster has its own.
    """
    authorizer = rules.authorizer()
    for need in needs:
        name = names.get(need.resource_type, CLUSTER_NAME)
        request = Request(principal, host, need.operation, need.resource_type, name)
        if request.is_allowed(rules, authorizer):
            yield Part(need, request, True)
            continue
        instead = _instead(rules, authorizer, request, need)
        yield Part(need, request, instead is not None, instead)


def _instead(
    rules: Rules, authorizer: StandardAuthorizerData, request: Request, need: Need
) -> str | None:
    if need.unless_on_cluster is not None:
        operation = need.unless_on_cluster
        other = request._replace(operation=operation, resource_type=_CLUSTER, name=CLUSTER_NAME)
        if other.is_allowed(rules, authorizer):
            return f"{operation.name} on CLUSTER"
    if need.unless_write_anywhere:
        session = rules.session(request.principal, request.host)
        if authorizer.authorize_by_resource_type(session, Op.WRITE, _TOPIC).allowed:
            return "WRITE on some TOPIC"
    return None
