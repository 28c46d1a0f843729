"""The requests of the comparison over the wire, and whether their answers are what they must be.

The ACLs are numbered: each is of a topic of its own, and ten in a row are of one principal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.exchange import Exchange
from benchmarks.servers import TOPIC
from tests.support.client import request_frame
from tests.support.process import wait_for

PER_PRINCIPAL = 10
REFUSED_TOPICS = 500
TOPIC_AUTHORIZATION_FAILED = 29
VISIBLE_WITHIN = 60.0

_ANY, _MATCH, _LITERAL, _TOPIC, _READ, _ALLOW = 1, 2, 3, 2, 3, 3

_NAMES = [MetadataRequestTopic(name=f"topic-{number}") for number in range(REFUSED_TOPICS)]
REFUSED_METADATA = MetadataRequest(_NAMES, False)
SMALL_METADATA = MetadataRequest([MetadataRequestTopic(name=TOPIC)], False)
METADATA_VERSION = 12
ACLS_VERSION = 3

DESCRIBE_ALL = DescribeAclsRequest(_ANY, None, _ANY, None, None, _ANY, _ANY)


def creation(number: int) -> AclCreation:
    """Return one of the numbered ACLs."""
    principal = f"User:user-{number // PER_PRINCIPAL}"
    return AclCreation(_TOPIC, f"owned-{number}", _LITERAL, principal, "*", _READ, _ALLOW)


def creation_of(principal: str, number: int) -> AclCreation:
    """Return an ACL beside the numbered ones."""
    return AclCreation(_TOPIC, f"single-{number}", _LITERAL, principal, "*", _READ, _ALLOW)


def may_read(principal: str) -> AclCreation:
    """Return the ACL by which a principal may read, and so describe, the topic that exists."""
    return AclCreation(_TOPIC, TOPIC, _LITERAL, principal, "*", _READ, _ALLOW)


def create(*creations: AclCreation) -> bytes:
    """Return a CreateAcls request as a frame."""
    return request_frame(ApiKey.CREATE_ACLS, ACLS_VERSION, CreateAclsRequest(creations))


def describe_principal(principal: str) -> DescribeAclsRequest:
    """Return the request for all ACLs of a principal."""
    return DescribeAclsRequest(_ANY, None, _ANY, principal, None, _ANY, _ANY)


def describe_match(topic: str) -> DescribeAclsRequest:
    """Return the request for all ACLs that apply to a topic."""
    return DescribeAclsRequest(_TOPIC, topic, _MATCH, None, None, _ANY, _ANY)


def delete_principal(principal: str) -> bytes:
    """Return the frame of the request that deletes all ACLs of a principal."""
    acl_filter = DeleteAclsFilter(_ANY, None, _ANY, principal, None, _ANY, _ANY)
    return request_frame(ApiKey.DELETE_ACLS, ACLS_VERSION, DeleteAclsRequest((acl_filter,)))


def deleted(answer: Any) -> int:
    """Return how many ACLs a DeleteAcls request deleted."""
    return sum(len(result.matching_acls) for result in answer.filter_results)


def described(answer: Any) -> int:
    """Return how many ACLs a DescribeAcls answer lists."""
    return sum(len(resource.acls) for resource in answer.resources)


def all_refused(answer: Any) -> bool:
    """Tell whether a Metadata answer refuses all of `REFUSED_METADATA`."""
    codes = [topic.error_code for topic in answer.topics]
    return codes == [TOPIC_AUTHORIZATION_FAILED] * REFUSED_TOPICS


def told(answer: Any) -> bool:
    """Tell whether a Metadata answer describes the one topic of `SMALL_METADATA`."""
    return [topic.error_code for topic in answer.topics] == [0]


class Asked(NamedTuple):
    """A request, the user who asks, and whether an answer is right."""

    user: str
    key: ApiKey
    version: int
    message: Any
    right: Callable[[Any], bool]


def describing(message: DescribeAclsRequest, count: int) -> Asked:
    """Return a DescribeAcls request whose answer lists so many ACLs."""
    return Asked(
        "admin",
        ApiKey.DESCRIBE_ACLS,
        ACLS_VERSION,
        message,
        lambda answer: described(answer) == count,
    )


def checked(exchange: Exchange, asked: Asked) -> bytes:
    """Return a request as a frame once its answer is right; Kafka's may be late.

    Raises TimeoutError if it does not become right.
    """
    _, key, version, message, right = asked
    wait_for(
        f"the right answer to {key.name}",
        lambda: right(exchange.ask(key, version, message)) or None,
        VISIBLE_WITHIN,
    )
    return request_frame(key, version, message)
