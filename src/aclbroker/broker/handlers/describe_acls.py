"""DescribeAcls v0-v3 (KIP-140, KIP-290), answered from cached bytes.

The ACLs of a resource pattern are encoded when they are first described, and the bytes are cached
in the pattern's ``memo`` until its ACLs change.
"""

from __future__ import annotations

from typing import Final

from aclbroker.acl.authorizer import LatestAuthorizer
from aclbroker.acl.listing import AclListing, PatternAcls, by_pattern
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.acls import DISABLED, filter_of
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.turns import wait
from aclbroker.protocol.compile.entries import encode_with_entries, entry_encoder
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from aclbroker.protocol.pieces import Encoded
from aclbroker.turns import in_turns

NOT_CAUGHT_UP: Final = Denial(
    ErrorCode.REQUEST_TIMED_OUT,
    "The ACL store cannot be reached now, so its latest ACLs are not known. Try again.",
)

_KEPT_SINCE: Final = 2
"""The first version whose bytes are cached: all versions from it on encode a pattern alike."""

_ATTEMPTS: Final = 5
"""How often a list is made that others change while they have their turns.

It is to show the ACLs of one moment. All but the first time most patterns have been encoded before.
"""


def describe_acls(
    services: Services, rights: RequestRights, request: DescribeAclsRequest
) -> DescribeAclsResponse | Encoded:
    """Answer with the ACLs that the filter matches, grouped by resource pattern."""
    if services.authorizer is None:
        return DescribeAclsResponse(error_code=DISABLED[0], error_message=DISABLED[1])
    acl_filter = filter_of(request)
    if acl_filter.has_unknown:
        message = "A field of the filter has a value that this broker does not know."
        return DescribeAclsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message)
    if not caught_up(services):
        return DescribeAclsResponse(
            error_code=NOT_CAUGHT_UP.code, error_message=NOT_CAUGHT_UP.message
        )
    version = rights.context.api_version
    for _ in range(_ATTEMPTS):
        listing = services.authorizer.acls(acl_filter)
        if not isinstance(listing, AclListing):
            # A custom authorizer returns single ACLs, which have no place to cache bytes.
            return _response([_encoded(acls, version) for acls in by_pattern(listing)], version)
        if version < _KEPT_SINCE:
            resources = [_encoded(acls, version) for acls in listing.patterns]
        else:
            # Most have been encoded before, which is told without a call.
            resources = [acls.memo or _kept(acls, version) for acls in listing.patterns]
        if listing.is_current():
            break
    return _response(resources, version)


def caught_up(services: Services) -> bool:
    """Wait for what others have changed, where that is wanted; return False if it is not known."""
    authorizer: object = services.authorizer
    waiting = authorizer.catch_up() if isinstance(authorizer, LatestAuthorizer) else None
    return waiting is None or wait(waiting)


def _kept(acls: PatternAcls, version: int) -> bytes:
    encoded = acls.memo = _encoded(acls, version)
    return encoded


def _encoded(acls: PatternAcls, version: int) -> bytes:
    return entry_encoder(DescribeAclsResponse, version)(
        DescribeAclsResource(
            acls.resource_type,
            acls.name,
            acls.pattern_type,
            [AclDescription(*entry) for entry in in_turns(acls.entries)],
        )
    )


def _response(resources: list[bytes], version: int) -> Encoded:
    return encode_with_entries(DescribeAclsResponse(), version, resources)
