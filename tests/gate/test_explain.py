"""What the gate says of its checks."""

from __future__ import annotations

from aclbroker.acl.authorizer import RequestContext, RuleKind, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.explain import explain
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic

READ_GROUP = AclBinding(
    ResourceType.GROUP,
    "app-",
    PatternType.PREFIXED,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)


async def test_explain_tells_each_check_and_the_acl_that_decided() -> None:
    authorizer = StandardAuthorizer(MemoryStore())
    await authorizer.start()
    session = Session(("User:alice",), "127.0.0.1", "PLAINTEXT")
    context = RequestContext(session, ApiKey.OFFSET_COMMIT, 8, "test", 1)
    await authorizer.create_acls(context, [READ_GROUP])
    topics = [OffsetCommitRequestTopic("orders"), OffsetCommitRequestTopic("orders")]
    request = OffsetCommitRequest("app-1", topics=topics)

    told = explain(authorizer, context, request, Catalog())

    group, topic = told.checks
    assert (group.action.operation, group.action.resource_name) == (AclOperation.READ, "app-1")
    assert group.allowed
    assert group.rule.binding == READ_GROUP
    assert (topic.action.resource_name, topic.action.reference_count) == ("orders", 2)
    assert not topic.allowed
    assert topic.rule.kind is RuleKind.DEFAULT_DENY
    assert told.allowed is None
    assert [entry.name for entry in told.refusal.topics] == ["orders", "orders"]
    await authorizer.close()
