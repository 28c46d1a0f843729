"""Describes, creates and deletes the ACLs of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

EVERYTHING: Final = AclFilter()
MOST_FILTERS: Final = 50
"""How many filters a request to delete should have at most.

Kafka holds each against every ACL that there is, which takes up to 70 ms for 100,000 of them, and
answers when it is done with all.
"""

_LITERAL_ONLY: Final = (PatternType.LITERAL, PatternType.ANY)


def describe_acls(session: Session, wanted: AclFilter = EVERYTHING) -> list[AclBinding]:
    """Return the ACLs that a filter selects, in the order of the answer.

    An empty list is a cluster that has none: who may not describe ACLs gets a `RequestRefused` of
    the code CLUSTER_AUTHORIZATION_FAILED. Raises `RequestRefused`, `Unreachable`.
    """
    from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest

    _check_patterns(session, ApiKey.DESCRIBE_ACLS, [wanted.pattern_type])
    answer = session.ask(
        ApiKey.DESCRIBE_ACLS,
        DescribeAclsRequest(
            wanted.resource_type,
            wanted.resource_name,
            wanted.pattern_type,
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission,
        ),
    )
    if answer.error_code:
        raise RequestRefused(answer.error_code, answer.error_message)
    return [_binding(resource, acl) for resource in answer.resources for acl in resource.acls]


def create_acls(session: Session, acls: Sequence[AclBinding]) -> None:
    """Create ACLs in one request; raises `RequestRefused` for the first that was not created."""
    for refused in refusals(session, acls):
        if refused is not None:
            raise refused


def refusals(session: Session, acls: Sequence[AclBinding]) -> list[RequestRefused | None]:
    """Create ACLs in one request; return why each was refused, None for those that were created.

    Raises `RequestRefused` if the request cannot say one of them (KIP-290).
    """
    from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    _check_patterns(session, ApiKey.CREATE_ACLS, [each.pattern_type for each in acls])
    request = CreateAclsRequest([AclCreation(*each) for each in acls])
    return [
        RequestRefused(each.error_code, each.error_message) if each.error_code else None
        for each in session.ask(ApiKey.CREATE_ACLS, request).results
    ]


def delete_acls(session: Session, filters: Sequence[AclFilter]) -> list[AclBinding]:
    """Delete what the filters select, in one request, and return that.

    Raises `RequestRefused` for the first filter, or ACL, that was refused.
    """
    from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    _check_patterns(session, ApiKey.DELETE_ACLS, [each.pattern_type for each in filters])
    request = DeleteAclsRequest([DeleteAclsFilter(*each) for each in filters])
    results = session.ask(ApiKey.DELETE_ACLS, request).filter_results
    _check(results)
    found = [acl for result in results for acl in result.matching_acls]
    _check(found)
    return list(dict.fromkeys(_binding(acl, acl) for acl in found))


def exactly(acl: AclBinding) -> AclFilter:
    """Return the filter that selects an ACL and no other."""
    return AclFilter(*acl)


def _check(results: Iterable[Any]) -> None:
    for each in results:
        if each.error_code:
            raise RequestRefused(each.error_code, each.error_message)


def _check_patterns(session: Session, key: ApiKey, patterns: Iterable[PatternType]) -> None:
    """Raise `RequestRefused` for what version 0 would take for something else (KIP-290)."""
    if session.version(key) > 0:
        return
    for each in _others(patterns):
        raise RequestRefused(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Version 0 only supports literal resource pattern types, not {each.name}.",
        )


def _others(patterns: Iterable[PatternType]) -> Iterator[PatternType]:
    return (each for each in patterns if each not in _LITERAL_ONLY)


def _binding(resource: Any, acl: Any) -> AclBinding:
    return AclBinding(
        ResourceType.from_code(resource.resource_type),
        resource.resource_name,
        PatternType.from_code(resource.pattern_type),
        acl.principal,
        acl.host,
        AclOperation.from_code(acl.operation),
        AclPermission.from_code(acl.permission_type),
    )
