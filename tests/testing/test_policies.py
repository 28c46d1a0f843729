"""What of a policy was never used."""

from __future__ import annotations

import pytest

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.files.policy import parse_policy
from aclbroker.testing.decisions import Question
from aclbroker.testing.policies import never_used

POLICY = """\
version: 1
acls:
- principal: User:shop
  rules:
  - topic: orders
    allow: WRITE
  - topic: refunds
    allow: WRITE
"""
REFUNDS = "ALLOW WRITE on TOPIC LITERAL refunds to User:shop from *"


def asked(operation: AclOperation, topic: str | None, principal: str = "User:shop") -> Question:
    return Question(principal, "127.0.0.1", operation, ResourceType.TOPIC, topic)


WRITES_ORDERS = asked(AclOperation.WRITE, "orders")
IS_IDEMPOTENT = asked(AclOperation.WRITE, None)


@pytest.mark.parametrize(("used", "unused"), [
    ([WRITES_ORDERS], [REFUNDS]),
    # A producer of Java's is idempotent by default, whatever it writes to.
    ([WRITES_ORDERS, IS_IDEMPOTENT], [REFUNDS]),
    ([IS_IDEMPOTENT, asked(AclOperation.DESCRIBE, "orders")], [REFUNDS]),
    # It began, and wrote nothing: any of the ACLs may be what let it.
    ([IS_IDEMPOTENT], []),
    ([WRITES_ORDERS, asked(AclOperation.DESCRIBE, "refunds")], []),
    ([WRITES_ORDERS, asked(AclOperation.WRITE, "refunds", "User:other")], [REFUNDS]),
])  # fmt: skip
def test_an_acl_is_used_for_a_topic_or_for_any_topic_if_no_other_was(used, unused):
    assert [acl_text(acl) for acl in never_used(parse_policy(POLICY).acls, used)] == unused


def test_a_deny_is_never_called_unused():
    policy = POLICY.replace("allow: WRITE\n  - topic: refunds", "deny: WRITE\n  - topic: refunds")
    acls = parse_policy(policy).acls
    assert [acl_text(acl) for acl in never_used(acls, [])] == [REFUNDS]
