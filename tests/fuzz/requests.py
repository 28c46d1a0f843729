"""Requests of every API key and version, to be damaged; undamaged, each is answered at once."""

from __future__ import annotations

import dataclasses
from typing import Any

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.requests import filled
from tests.support.client import request_frame

NAMES = ("open-1", "shut-1")
"""One that a user may have rights to, one not; see `RIGHTS`."""

RIGHTS = [
    AclCreation(resource_type, "open-", 4, "User:alice", "*", 2, 3) for resource_type in (2, 3, 5)
]
"""All operations on topics, groups and transactional ids that begin like the first of `NAMES`."""


def request_payloads(topic_id: bytes) -> list[bytes]:
    """Return requests without the length of their frame: of each version one that is empty, one
    with `NAMES`, one with a topic's id in place of its name; of the ACL APIs one that does
    something.
    """
    messages: list[tuple[int, Any]] = []
    for key, api in APIS.items():
        messages += [(key, api.request()), (key, filled(key, NAMES))]
        messages.append((key, _with_ids(filled(key, NAMES), topic_id)))
    messages += [
        (ApiKey.DESCRIBE_ACLS, DescribeAclsRequest(2, "made", 3, "User:carol", "*", 3, 3)),
        (ApiKey.CREATE_ACLS, CreateAclsRequest([_creation("made"), _creation("made too")])),
        (ApiKey.DELETE_ACLS, DeleteAclsRequest([_filter("made"), _filter("made too")])),
    ]
    for key, message in messages:
        if key == ApiKey.PRODUCE:
            message.acks = 1  # with 0, no answer would come
    payloads = (
        _payload(key, version, message)
        for key, message in messages
        for version in APIS[key].versions
    )
    return list(dict.fromkeys(payloads))


def _with_ids(item: Any, topic_id: bytes) -> Any:
    """Set every id in a message, and return it."""
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if value == ZERO_UUID:
            setattr(item, field.name, topic_id)
        for entry in value if isinstance(value, list) else [value]:
            if dataclasses.is_dataclass(entry):
                _with_ids(entry, topic_id)
    return item


def _creation(name: str) -> AclCreation:
    return AclCreation(2, name, 3, "User:carol", "*", 3, 3)


def _filter(name: str) -> DeleteAclsFilter:
    return DeleteAclsFilter(2, name, 3, "User:carol", "*", 3, 3)


def _payload(key: int, version: int, message: Any) -> bytes:
    return request_frame(key, version, message, 0x0A0B0C0D, "fuzz")[4:]
