"""Calls about ACLs, each made the Kafka request that it stands for.

So they come by the same rights, gate, handlers and audit log as what Kafka's clients send.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, Final, TypeVar

from aclbroker.acl.authorizer import HostChecker, RequestContext, Session
from aclbroker.acl.bindings import CLUSTER_NAME, AclFilter, AclOperation, ResourceType
from aclbroker.acl.listing import AclListing
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.acls import create_acls, deleted, filter_of, let_go
from aclbroker.broker.handlers.acls import delete_acls as answer_deletion
from aclbroker.broker.handlers.answering import answer_request
from aclbroker.broker.handlers.describe_acls import NOT_CAUGHT_UP, caught_up
from aclbroker.broker.handlers.describe_acls import describe_acls as answer_description
from aclbroker.broker.handlers.services import Handler, Services
from aclbroker.broker.http_api.clusters import Clusters
from aclbroker.broker.http_api.errors import ApiError, shown
from aclbroker.broker.http_api.messages import Creation, Selection, bindings_json
from aclbroker.broker.http_api.reading import wrong
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
from aclbroker.turns import in_turns, pause

T = TypeVar("T")

Chunks = list[bytes]
"""A long answer, in parts."""

_ATTEMPTS: Final = 5
"""How often a list is made that others change meanwhile; see `handlers.describe_acls`."""

_REQUESTS: Final[Mapping[ApiKey, Any]] = {
    ApiKey.CREATE_ACLS: CreateAclsRequest([AclCreation(0, "", 0, "", "", 0, 0)]),
    ApiKey.DELETE_ACLS: DeleteAclsRequest([DeleteAclsFilter(1, None, 1, None, None, 1, 1)]),
    ApiKey.DESCRIBE_ACLS: DescribeAclsRequest(1, None, 1, None, None, 1, 1),
}
"""A request of each key, used only to check the rights that it needs."""

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

    async def ask(self, services: Services, key: ApiKey, message: Any, handler: Handler) -> Any:
        """Return the response to a request, which takes turns with those of all others."""
        context = self.context(key)
        answer = partial(handler, services)
        return await self.in_turns(
            services, key, lambda: answer_request(services, GATE[key], context, message, answer)
        )

    async def in_turns(self, services: Services, key: ApiKey, function: Callable[[], T]) -> T:
        """Return the result of a function, which takes turns with the requests of all clients.

        ``key`` names the work in the log if it takes long. Exceptions of the function pass through.
        """

        def work(_services: Services, _session: Session, _frame: bytes) -> T:
            # Many calls can arrive at once, so each pauses first if the turn is over.
            pause()
            return function()

        head = struct.pack(">hh", key, max(APIS[key].versions))
        principal = self.session.principals[0]
        made = services.turns.run(principal, work, services, self.session, head)
        result: T = await made if isinstance(made, Awaitable) else made
        return result


async def create(services: Services, caller: Caller, creation: Creation) -> None:
    """Create an ACL; raises `ApiError`."""
    message = CreateAclsRequest([AclCreation(*creation.binding)])
    response: CreateAclsResponse = await caller.ask(services, ApiKey.CREATE_ACLS, message, _created)
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


async def require_anywhere(clusters: Clusters, caller: Caller, key: ApiKey) -> None:
    """Raise `ApiError` unless the caller may make calls of a key about at least one cluster.

    It guards bodies that are too long to be read before the rights are known. The record of a
    refusal is one of the server's own cluster.
    """
    context = caller.context(key)
    operation = AclOperation.DESCRIBE if key == ApiKey.DESCRIBE_ACLS else AclOperation.ALTER

    def is_permitted() -> bool:
        return any(
            services.authorizer is None
            or all(
                services.authorizer.authorize(
                    context, operation, ResourceType.CLUSTER, [CLUSTER_NAME]
                )
            )
            for services in in_turns(clusters.ready)
        )

    if not await caller.in_turns(clusters.own, key, is_permitted):
        await _require(clusters.own, caller, key)


async def require_describe(services: Services, caller: Caller) -> None:
    """Raise `ApiError` unless the caller may DESCRIBE the cluster."""
    await _require(services, caller, ApiKey.DESCRIBE_ACLS)


async def require_alter(services: Services, caller: Caller) -> None:
    """Raise `ApiError` unless the caller may ALTER the cluster."""
    await _require(services, caller, ApiKey.CREATE_ACLS)


async def _require(services: Services, caller: Caller, key: ApiKey) -> None:
    """Raise `ApiError` unless the caller may send requests of a key."""
    found = await caller.ask(services, key, _REQUESTS[key], _nothing)
    if isinstance(found, CreateAclsResponse):
        [found] = found.results
    elif isinstance(found, DeleteAclsResponse):
        [found] = found.filter_results
    if found is not None:
        _check(caller, found.error_code, found.error_message)


def _nothing(_services: Services, _rights: RequestRights, _request: Any) -> None:
    """Return None: only the check of the rights before it is wanted."""


def _created(
    services: Services, rights: RequestRights, request: CreateAclsRequest
) -> CreateAclsResponse:
    """Create ACLs; refuse a host that matches no client, as MDS does and Kafka does not."""
    authorizer: object = services.authorizer
    if isinstance(authorizer, HostChecker):
        for creation in request.creations:
            if (fault := authorizer.host_fault(creation.host)) is not None:
                raise wrong("aclBinding.entry.host", f"{shown(creation.host)} {fault}")
    return create_acls(services, rights, request)


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
