"""What may be asked for a request, and what is allowed where nobody is asked."""

from __future__ import annotations

import pytest

from aclbroker.broker.acl.bindings import ResourceType
from aclbroker.broker.acl.operations import bit_field, supported_operations
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import ApiKey
from tests.gate.asking import AUDIT
from tests.gate.rights import context


def without_authorizer(key: int, version: int) -> RequestRights:
    return RequestRights(GATE[key], context(key, version), None, AUDIT, Profile.KAFKA)


def test_without_an_authorizer_all_is_allowed_but_null_names() -> None:
    rights = without_authorizer(ApiKey.METADATA, 12)
    assert rights.allowed("describe", ["orders", None]) == {"orders"}
    by_type = without_authorizer(ApiKey.INIT_PRODUCER_ID, 5)
    assert any(by_type.is_moot(need) for need in by_type.applying())
    every_operation = bit_field(supported_operations(ResourceType.TOPIC))
    assert rights.operations(ResourceType.TOPIC, "orders") == every_operation


def test_nothing_can_be_asked_that_the_row_does_not_declare() -> None:
    rights = without_authorizer(ApiKey.HEARTBEAT, 4)
    with pytest.raises(KeyError, match="HEARTBEAT declares no need 'describe'"):
        rights.allowed("describe", ["orders"])
    with pytest.raises(KeyError, match="HEARTBEAT shows no operations of TOPIC"):
        rights.operations(ResourceType.TOPIC, "orders")


def test_a_need_of_other_versions_forbids_nothing() -> None:
    rights = without_authorizer(ApiKey.METADATA, 12)
    assert rights.need("show cluster") is None
    assert rights.holds("show cluster")
