"""Calls about ACLs, each made the Kafka request that it stands for.

So they come by the same rights, gate, handlers and audit log as what Kafka's clients send.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable
from http import HTTPStatus
from itertools import count
from typing import Any, Final

from aclbroker.broker.acl.authorizer import RequestContext, Session
from aclbroker.broker.acl.bindings import AclFilter
from aclbroker.broker.acl.listing import AclListing
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.acls import create_acls, deleted, filter_of, let_go
from aclbroker.broker.handlers.acls import delete_acls as answer_deletion
from aclbroker.broker.handlers.answering import answer_request
from aclbroker.broker.handlers.describe_acls import NOT_CAUGHT_UP, caught_up
from aclbroker.broker.handlers.describe_acls import describe_acls as answer_description
from aclbroker.broker.handlers.services import Handler, Services
from aclbroker.broker.mds.errors import ApiError
from aclbroker.broker.mds.messages import Creation, Selection, bindings_json
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from aclbroker.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

Chunks = list[bytes]
"""A long answer, in parts."""

_ATTEMPTS: Final = 5
"""How often a list is made that others change meanwhile; see `handlers.describe_acls`."""

_EVERYTHING: Final = DescribeAclsRequest(1, None, 1, None, None, 1, 1)

_STATUSES: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.POLICY_VIOLATION: HTTPStatus.BAD_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION: HTTPStatus.BAD_REQUEST,
    ErrorCode.SECURITY_DISABLED: HTTPStatus.BAD_REQUEST,
    # The store cannot be reached; the same may be asked again.
    ErrorCode.REQUEST_TIMED_OUT: HTTPStatus.SERVICE_UNAVAILABLE,
}

_numbers = count(1)


class Caller:
    """Who calls: a session, and what its client calls itself."""

    def __init__(self, session: Session, client: str | None) -> None:
        self.session = session
        self.client = client

    def context(self, key: ApiKey) -> RequestContext:
        """Return the context of a request of the newest version of a key."""
        version = max(APIS[key].versions)
        number = next(_numbers) & 0x7FFF_FFFF
        return RequestContext(self.session, key, version, self.client, number)

    async def ask(self, services: Services, key: ApiKey, message: Any, answer: Handler) -> Any:
        """Return the response to a request, which takes turns with those of all others."""
        context = self.context(key)

        def work(services: Services, _session: Session, _frame: bytes) -> Any:
            return answer_request(services, GATE[key], context, message, answer)

        # The head of a frame says what is at work, where that is told.
        head = struct.pack(">hh", key, context.api_version)
        principal = self.session.principals[0]
        made = services.turns.run(principal, work, services, self.session, head)
        return await made if isinstance(made, Awaitable) else made


async def create(services: Services, caller: Caller, creation: Creation) -> None:
    """Create an ACL; raises `ApiError`."""
    message = CreateAclsRequest([AclCreation(*creation.binding)])
    response: CreateAclsResponse = await caller.ask(
        services, ApiKey.CREATE_ACLS, message, create_acls
    )
    [result] = response.results
    _check(caller, result.error_code, result.error_message)


async def search(services: Services, caller: Caller, selection: Selection) -> Chunks:
    """Return the ACLs that a filter selects, as JSON; raises `ApiError`."""
    message = DescribeAclsRequest(*selection.acl_filter)
    found = await caller.ask(services, ApiKey.DESCRIBE_ACLS, message, _listed)
    if isinstance(found, DescribeAclsResponse):
        _check(caller, found.error_code, found.error_message)
        raise RuntimeError("a list without ACLs and without an error")
    chunks: Chunks = found
    return chunks


async def delete(services: Services, caller: Caller, selection: Selection) -> Chunks:
    """Delete the ACLs that a filter selects; return them as JSON. Raises `ApiError`."""
    message = DeleteAclsRequest([DeleteAclsFilter(*selection.acl_filter)])
    found = await caller.ask(services, ApiKey.DELETE_ACLS, message, _deleted)
    if isinstance(found, DeleteAclsResponse):
        [result] = found.filter_results
        _check(caller, result.error_code, result.error_message)
        raise RuntimeError("a deletion without ACLs and without an error")
    chunks: Chunks = found
    return chunks


async def require_describe(services: Services, caller: Caller) -> None:
    """Raise `ApiError` unless the caller may DESCRIBE the cluster."""
    found = await caller.ask(services, ApiKey.DESCRIBE_ACLS, _EVERYTHING, _nothing)
    if isinstance(found, DescribeAclsResponse):
        _check(caller, found.error_code, found.error_message)


async def require_alter(services: Services, caller: Caller) -> None:
    """Raise `ApiError` unless the caller may ALTER the cluster."""
    creation = AclCreation(0, "", 0, "", "", 0, 0)
    message = CreateAclsRequest([creation])
    found = await caller.ask(services, ApiKey.CREATE_ACLS, message, _nothing)
    if isinstance(found, CreateAclsResponse):
        [result] = found.results
        _check(caller, result.error_code, result.error_message)


def _nothing(_services: Services, _rights: RequestRights, _request: Any) -> None:
    """Answer nothing: whether the request may pass is all that is wanted."""


def _listed(
    services: Services, rights: RequestRights, request: DescribeAclsRequest
) -> Chunks | Any:
    if services.authorizer is None:
        return answer_description(services, rights, request)
    if not caught_up(services):
        return DescribeAclsResponse(
            error_code=NOT_CAUGHT_UP.code, error_message=NOT_CAUGHT_UP.message
        )
    acl_filter: AclFilter = filter_of(request)
    chunks: Chunks = []
    for _ in range(_ATTEMPTS):
        listing = services.authorizer.acls(acl_filter)
        if not isinstance(listing, AclListing):
            # What an authorizer of one's own returns is used up before others have their turn.
            return list(bindings_json(list(listing)))
        chunks = list(bindings_json(listing))
        if listing.is_current():
            break
    return chunks


def _deleted(services: Services, rights: RequestRights, request: DeleteAclsRequest) -> Chunks | Any:
    if services.authorizer is None:
        return answer_deletion(services, rights, request)
    [result] = deleted(services.authorizer, services.audit, rights, request)
    if result.error_code:
        raise _error(result.error_code, result.error_message)
    chunks = list(bindings_json(result.bindings))
    let_go(result.bindings)
    return chunks


def _check(caller: Caller, code: int, message: str | None) -> None:
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        principal = caller.session.principals[0][:256]
        raise _error(code, f"{principal} is not permitted to do that. {message or ''}".rstrip())
    if code:
        raise _error(code, message)


def _error(code: int, message: str | None) -> ApiError:
    try:
        known = ErrorCode(code)
    except ValueError:
        return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, message or f"Error {code}.")
    status = _STATUSES.get(known, HTTPStatus.INTERNAL_SERVER_ERROR)
    return ApiError(status, message or f"{known.name}.")
