"""DescribeAcls v0-v3 (KIP-140, KIP-290), answered from cached bytes.

The ACLs of a resource pattern are encoded when they are first described, and the bytes are cached
in the pattern's ``memo`` until its ACLs change. If many patterns have to be encoded, other
connections are served in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final

from aclbroker.broker.acl.authorizer import Authorizer
from aclbroker.broker.acl.bindings import AclFilter
from aclbroker.broker.acl.listing import AclListing, PatternAcls, by_pattern
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.acls import DISABLED, filter_of
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.compile.entries import encode_with_entries, entry_encoder
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_KEPT_SINCE: Final = 2
"""The first version whose bytes are cached: all versions from it on encode a pattern alike."""

_SLICE: Final = 500
"""How many patterns are encoded, in a few milliseconds, before other connections are served."""


def describe_acls(
    services: Services, rights: RequestRights, request: DescribeAclsRequest
) -> DescribeAclsResponse | bytes | Coroutine[Any, Any, bytes]:
    """Answer with the ACLs that the filter matches, grouped by resource pattern."""
    if services.authorizer is None:
        return DescribeAclsResponse(error_code=DISABLED[0], error_message=DISABLED[1])
    acl_filter = filter_of(request)
    if acl_filter.has_unknown:
        message = "A field of the filter has a value that this broker does not know."
        return DescribeAclsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message)
    version = rights.context.api_version
    listing = services.authorizer.acls(acl_filter)
    if not isinstance(listing, AclListing):
        # A custom authorizer returns single ACLs, which have no place to cache bytes.
        return _response([_encoded(acls, version) for acls in by_pattern(listing)], version)
    found = list(listing.patterns)
    if version < _KEPT_SINCE:
        return _response([_encoded(acls, version) for acls in found], version)
    missing = [acls for acls in found if acls.memo is None]
    if len(missing) > _SLICE:
        return _in_turns(services.authorizer, acl_filter, missing, version)
    return _kept(found, version)


async def _in_turns(
    authorizer: Authorizer, acl_filter: AclFilter, missing: list[PatternAcls], version: int
) -> bytes:
    """Encode the missing patterns slice by slice, then answer with the ACLs as they are by then.

    The final list is made without a pause, so that it shows the ACLs of one moment.
    """
    for start in range(0, len(missing), _SLICE):
        _keep(missing[start : start + _SLICE], version)
        await asyncio.sleep(0)
    listing = authorizer.acls(acl_filter)
    patterns = listing.patterns if isinstance(listing, AclListing) else by_pattern(listing)
    return _kept(list(patterns), version)


def _kept(found: list[PatternAcls], version: int) -> bytes:
    _keep([acls for acls in found if acls.memo is None], version)
    return _response([acls.memo for acls in found], version)


def _keep(missing: Iterable[PatternAcls], version: int) -> None:
    for acls in missing:
        acls.memo = _encoded(acls, version)


def _encoded(acls: PatternAcls, version: int) -> bytes:
    return entry_encoder(DescribeAclsResponse, version)(
        DescribeAclsResource(
            acls.resource_type,
            acls.name,
            acls.pattern_type,
            [AclDescription(*entry) for entry in acls.entries],
        )
    )


def _response(resources: list[bytes], version: int) -> bytes:
    return encode_with_entries(DescribeAclsResponse(), version, resources)
