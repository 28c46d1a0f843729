"""CreateAcls and DeleteAcls v0-v3 (KIP-140, KIP-290).

Version 0 has no pattern type. The default of the message makes it LITERAL, in creations and in
filters, so a client of that version neither sees nor deletes prefixed ACLs (KIP-290).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, overload

from aclbroker.acl.authorizer import AclCreateResult, AclDeleteResult, Authorizer
from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.changes import created_acls, deleted_acls
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.turns import wait
from aclbroker.protocol.compile import encoder
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from aclbroker.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.pieces import Encoded
from aclbroker.turns import in_turns, pause

# In characters. An error message repeats text of the client, and in old versions no string may have
# more than 32,767 bytes.
_MESSAGE_LIMIT: Final = 1024

_FREED_AT_ONCE: Final = 4096

# On success Kafka 4.3 sends an empty error message, although the protocol's default is null.
_CREATED: Final = AclCreationResult(ErrorCode.NONE, "")

DISABLED: Final = Denial(
    ErrorCode.SECURITY_DISABLED, "No authorizer is configured: authorizer.class.name is empty."
)


def create_acls(
    services: Services, rights: RequestRights, request: CreateAclsRequest
) -> CreateAclsResponse:
    """Create ACLs and return one result for each creation, in the order of the request.

    A creation that fails does not stop the others.
    """
    if services.authorizer is None:
        refusals = [AclCreationResult(*DISABLED) for _ in in_turns(request.creations)]
        return CreateAclsResponse(results=refusals)
    bindings = [_binding(creation) for creation in in_turns(request.creations)]
    results = wait(services.authorizer.create_acls(rights.context, bindings))
    services.audit.changed(rights.context, created_acls(bindings, results))
    return CreateAclsResponse(results=[_creation_result(result) for result in in_turns(results)])


def delete_acls(
    services: Services, rights: RequestRights, request: DeleteAclsRequest
) -> DeleteAclsResponse | Encoded:
    """Delete the ACLs that each filter matches; return one result for each, with those ACLs."""
    if services.authorizer is None:
        return DeleteAclsResponse(
            filter_results=[DeleteAclsFilterResult(*DISABLED) for _ in in_turns(request.filters)]
        )
    results = deleted(services.authorizer, services.audit, rights, request)
    response = DeleteAclsResponse(
        filter_results=[_filter_result(result) for result in in_turns(results)]
    )
    if sum(len(result.bindings) for result in in_turns(results)) <= _FREED_AT_ONCE:
        return response
    encoded = encoder(DeleteAclsResponse, rights.context.api_version)(response)
    for result in in_turns(results):
        let_go(result.bindings)
    return encoded


def deleted(
    authorizer: Authorizer, audit: Audit, rights: RequestRights, request: DeleteAclsRequest
) -> list[AclDeleteResult]:
    """Delete the ACLs that each filter matches, and record that; return the result of each."""
    filters = [filter_of(one) for one in in_turns(request.filters)]
    results = wait(authorizer.delete_acls(rights.context, filters))
    audit.changed(rights.context, deleted_acls(filters, results))
    return results


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter in a message; a code that this broker does not know becomes UNKNOWN."""
    resource_type, pattern_type, operation, permission = _members(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    )
    return AclFilter(
        resource_type,
        request.resource_name_filter,
        pattern_type,
        request.principal_filter,
        request.host_filter,
        operation,
        permission,
    )


def _binding(creation: AclCreation) -> AclBinding:
    resource_type, pattern_type, operation, permission = _members(
        creation.resource_type,
        creation.resource_pattern_type,
        creation.operation,
        creation.permission_type,
    )
    return AclBinding(
        resource_type,
        creation.resource_name,
        pattern_type,
        creation.principal,
        creation.host,
        operation,
        permission,
    )


# Cached, since looking up four enum members takes longer than the rest of the work on an ACL. Only
# 336 combinations are valid.
@lru_cache(maxsize=1024)
def _members(
    resource_type: int, pattern_type: int, operation: int, permission: int
) -> tuple[ResourceType, PatternType, AclOperation, AclPermission]:
    return (
        ResourceType.from_code(resource_type),
        PatternType.from_code(pattern_type),
        AclOperation.from_code(operation),
        AclPermission.from_code(permission),
    )


def _creation_result(result: AclCreateResult) -> AclCreationResult:
    if not result.error_code and not result.error_message:
        return _CREATED
    return AclCreationResult(result.error_code, _limited(result.error_message) or "")


def _filter_result(result: AclDeleteResult) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=result.error_code,
        error_message=_limited(result.error_message),
        matching_acls=_Matching(result.bindings),
    )


class _Matching(Sequence[DeleteAclsMatchingAcl]):
    """Entries of an answer that are made when they are encoded.

    To free as many as there may be would take long, all at once.
    """

    def __init__(self, bindings: Sequence[AclBinding]) -> None:
        self._bindings = bindings

    def __len__(self) -> int:
        return len(self._bindings)

    @overload
    def __getitem__(self, at: int) -> DeleteAclsMatchingAcl: ...

    @overload
    def __getitem__(self, at: slice) -> list[DeleteAclsMatchingAcl]: ...

    def __getitem__(self, at: int | slice) -> DeleteAclsMatchingAcl | list[DeleteAclsMatchingAcl]:
        if isinstance(at, slice):
            return [DeleteAclsMatchingAcl(0, None, *binding) for binding in self._bindings[at]]
        return DeleteAclsMatchingAcl(0, None, *self._bindings[at])


def let_go(bindings: Sequence[AclBinding]) -> None:
    """Free ACLs that are no more, which takes a tenth of a microsecond each, in turns."""
    while isinstance(bindings, list) and bindings:
        del bindings[-_FREED_AT_ONCE:]
        pause()


def _limited(message: str | None) -> str | None:
    return message[:_MESSAGE_LIMIT] if message else None
