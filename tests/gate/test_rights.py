"""What may be asked for a request, and what is allowed where nobody is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.operations import bit_field, supported_operations
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import ApiKey
from tests.gate.asking import AUDIT
from tests.gate.rights import ByRule, context, names_that_begin_with


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


def test_many_names_are_decided_in_parts_and_recorded_as_one_is() -> None:
    recorded: list[tuple[str | None, int, bool]] = []
    positions: list[int | None] = []
    changes = iter(range(4))

    class Recording:
        def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
            return (False, True)

        def position(self) -> int:
            # As if the ACLs changed each time that others had their turn.
            return next(changes)

        def record(self, *args: Any, log_if_denied: bool = True, acls: Any = None) -> None:
            recorded.extend((name, count, decision.allowed) for name, count, decision in args[3])
            positions.extend([acls] * len(args[3]))

    authorizer = ByRule(names_that_begin_with("may"))
    asked = context(ApiKey.METADATA, 12)
    rights = RequestRights(GATE[ApiKey.METADATA], asked, authorizer, Recording(), Profile.KAFKA)
    names = {f"{word}-{n}": n + 1 for n in range(1000) for word in ("may", "not")}
    assert rights.allowed("describe", names) == {f"may-{n}" for n in range(1000)}
    assert recorded == [
        (f"{word}-{n}", n + 1, word == "may") for n in range(1000) for word in ("may", "not")
    ]
    assert positions == [part for part in range(4) for _ in range(500)]
