"""Requests pass as a whole by the decisions of an authorizer that decides by names alone."""

from __future__ import annotations

from typing import Any

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.config import load
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.whole import Right, WholeRights
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from tests.gate.rights import ByRule, everything

WRITE = Right(AclOperation.WRITE, ResourceType.TOPIC)
ALICE = Session(("User:alice",), "127.0.0.1", "PLAINTEXT")
AUDIT = Audit(load(), "cluster", configure())


def allow(topic: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        PatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.WRITE,
        AclPermission.ALLOW,
    )


class Own(StandardAuthorizer):
    """Decides otherwise than its decisions by name say."""

    def authorize(self, *_asked: Any) -> list[Any]:
        return []


class Open(StandardAuthorizer):
    """One that is started, and whose resources without ACLs are open to everyone."""

    def __init__(self) -> None:
        super().__init__()
        self._data = StandardAuthorizerData(AclIndex(), allow_everyone_if_no_acl_found=True)


def test_an_authorizer_that_decides_in_its_own_way_is_asked_by_the_engine_alone():
    for authorizer in (ByRule(everything), Own()):
        assert WholeRights.of(authorizer, AUDIT, Profile.KAFKA, ()) is None
    assert WholeRights.of(StandardAuthorizer(), AUDIT, Profile.DOCUMENTED, ()) is None
    assert WholeRights.of(StandardAuthorizer(), AUDIT, Profile.KAFKA, ()) is not None


def test_where_acls_of_others_count_the_engine_decides():
    rights = WholeRights.of(Open(), AUDIT, Profile.KAFKA, ())
    assert rights is not None
    assert rights.decisions(ALICE, WRITE) is None
    assert rights.allow(ALICE, WRITE, ["orders"]) is None


def test_decisions_are_other_ones_after_a_change_of_the_peers_acls():
    index = AclIndex([allow("orders")])
    rights = WholeRights(StandardAuthorizerData(index), AUDIT, ())
    before = rights.allow(ALICE, WRITE, ["orders"])
    assert before is not None
    assert rights.decisions(ALICE, WRITE) is before
    assert rights.allow(ALICE, WRITE, ["orders", "payments"]) is None
    index.add(allow("payments"))
    assert rights.decisions(ALICE, WRITE) is not before
    assert rights.allow(ALICE, WRITE, ["orders", "payments"]) is not None
    index.remove(allow("orders"))
    assert rights.allow(ALICE, WRITE, ["orders"]) is None


def test_without_an_authorizer_everything_is_allowed():
    rights = WholeRights.of(None, AUDIT, Profile.KAFKA, ())
    assert rights is not None
    assert rights.allow(ALICE, WRITE, ["orders"]) is not None
    assert not rights.records
