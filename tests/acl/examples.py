"""Short words for ACLs, sessions and actions in the tests of authorization."""

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex

ALL = AclOperation.ALL
READ = AclOperation.READ
WRITE = AclOperation.WRITE
CREATE = AclOperation.CREATE
DELETE = AclOperation.DELETE
ALTER = AclOperation.ALTER
DESCRIBE = AclOperation.DESCRIBE
DESCRIBE_CONFIGS = AclOperation.DESCRIBE_CONFIGS
ALTER_CONFIGS = AclOperation.ALTER_CONFIGS

TOPIC = ResourceType.TOPIC
GROUP = ResourceType.GROUP
CLUSTER = ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

LITERAL = PatternType.LITERAL
PREFIXED = PatternType.PREFIXED


def allow(
    principal: str = "User:alice",
    operation: AclOperation = READ,
    name: str = "orders",
    *,
    resource_type: ResourceType = TOPIC,
    pattern_type: PatternType = LITERAL,
    host: str = "*",
) -> AclBinding:
    return AclBinding(
        resource_type, name, pattern_type, principal, host, operation, AclPermission.ALLOW
    )


def deny(*args, **kwargs) -> AclBinding:
    return allow(*args, **kwargs)._replace(permission=AclPermission.DENY)


def session(*principals: str, host: str = "192.0.2.7") -> Session:
    return Session(principals or ("User:alice",), host, "PLAINTEXT")


ALICE = session()


def authorizer(*acls: AclBinding, cidr: bool = False, **options) -> StandardAuthorizerData:
    return StandardAuthorizerData(AclIndex(acls, cidr=cidr), **options)


def allowed(
    core: StandardAuthorizerData,
    operation: AclOperation = READ,
    name: str = "orders",
    who: Session = ALICE,
    resource_type: ResourceType = TOPIC,
) -> bool:
    return core.decide(who, Action(operation, resource_type, name)).allowed
