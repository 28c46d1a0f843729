"""Groups that are declared and empty."""

from __future__ import annotations

from typing import Final

from broker.acl.bindings import ResourceType
from broker.gate.may import May
from broker.handlers.services import Services
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_PROTOCOL: Final = "consumer"
_STATE: Final = "Empty"
_TYPE: Final = "classic"
_FIRST_VERSION_THAT_TELLS_OF_NO_GROUP: Final = 6


def list_groups(services: Services, _may: May, request: ListGroupsRequest) -> ListGroupsResponse:
    """Answer with the declared groups, if the filters leave them in."""
    states = {state.lower() for state in request.states_filter} or {_STATE.lower()}
    types = {group_type.lower() for group_type in request.types_filter} or {_TYPE}
    if _STATE.lower() not in states or _TYPE not in types:
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[
            ListedGroup(group_id, _PROTOCOL, _STATE, _TYPE) for group_id in services.catalog.groups
        ]
    )


def describe_groups(
    services: Services, may: May, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Answer that a declared group is empty, and that another is dead or (from 6 on) unknown."""
    tells = may.context.api_version >= _FIRST_VERSION_THAT_TELLS_OF_NO_GROUP
    groups = []
    for group_id in request.groups:
        if group_id in services.catalog.groups:
            group = DescribedGroup(group_id=group_id, group_state=_STATE, protocol_type=_PROTOCOL)
        else:
            code = ErrorCode.GROUP_ID_NOT_FOUND if tells else ErrorCode.NONE
            group = DescribedGroup(code, group_id=group_id, group_state="Dead")
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = services.authorized_operations(
                may, ResourceType.GROUP, group_id
            )
        groups.append(group)
    return DescribeGroupsResponse(groups=groups)
