"""What groups there are: ListGroups, DescribeGroups, ConsumerGroupDescribe and DeleteGroups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.coordinators import (
    described_assignment,
    described_each,
    found_here,
    is_elsewhere,
    refusal_of_topics,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.classic_group import ClassicGroup, State
from aclbroker.broker.memory.groups.consumer_group import ConsumerGroup, ConsumerMember
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import consumer_group_describe as by_consumers
from aclbroker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from aclbroker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from aclbroker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from aclbroker.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from aclbroker.turns import in_turns

_FIRST_THAT_TELLS_OF_NO_GROUP: Final = 6
_OF_CLASSIC: Final = 0
_OF_CONSUMER: Final = 1


def list_groups(
    backend: MemoryBackend, rights: RequestRights, request: ListGroupsRequest
) -> ListGroupsResponse:
    """List the groups of this node, of the states and types that are asked for."""
    groups = backend.cluster.groups.table.groups
    here = [each for each in in_turns(list(groups)) if not is_elsewhere(backend, rights, each)]
    seen = [groups.get(each) for each in in_turns(rights.visible("show", here))]
    states = {state.lower() for state in in_turns(request.states_filter)}
    types = {each.lower() for each in in_turns(request.types_filter)}
    return ListGroupsResponse(
        groups=[
            ListedGroup(group.group_id, group.protocol_type, group.state_name, group.kind)
            for group in in_turns(seen)
            if group is not None
            and (not states or group.is_in(states))
            and (not types or group.kind in types)
        ]
    )


def describe_groups(
    backend: MemoryBackend, rights: RequestRights, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe groups of the classic protocol; any other is dead."""
    return DescribeGroupsResponse(
        groups=described_each(
            rights,
            request.groups,
            partial(_described, backend, rights),
            with_operations=request.include_authorized_operations,
        )
    )


def _described(backend: MemoryBackend, rights: RequestRights, group_id: str) -> DescribedGroup:
    if is_elsewhere(backend, rights, group_id):
        return DescribedGroup(ErrorCode.NOT_COORDINATOR, group_id=group_id)
    try:
        group = backend.cluster.groups.classic_group(group_id)
    except GroupError as error:
        dead = State.DEAD.value
        if rights.context.api_version < _FIRST_THAT_TELLS_OF_NO_GROUP:
            return DescribedGroup(group_id=group_id, group_state=dead)
        return DescribedGroup(error.code, error.message, group_id, dead)
    is_stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=_described_members(group, with_metadata=is_stable),
    )


def _described_members(group: ClassicGroup, *, with_metadata: bool) -> list[DescribedGroupMember]:
    return [
        DescribedGroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.metadata(group.protocol_name) if with_metadata else b"",
            each.assignment,
        )
        for each in in_turns(list(group.members.values()))
    ]


def consumer_group_describe(
    backend: MemoryBackend, rights: RequestRights, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe groups of the newer protocol, with members of both; any other is not found."""
    return ConsumerGroupDescribeResponse(
        groups=described_each(
            rights,
            request.group_ids,
            partial(_described_by_consumers, backend, rights),
            with_operations=request.include_authorized_operations,
        )
    )


def _described_by_consumers(
    backend: MemoryBackend, rights: RequestRights, group_id: str
) -> by_consumers.DescribedGroup:
    groups = backend.cluster.groups
    try:
        group = found_here(backend, rights, group_id, groups.consumer_group)
        members = list(group.members.values())
        _check_topics(rights, group, members)
    except GroupError as error:
        return by_consumers.DescribedGroup(error.code, error.message, group_id)
    names = {name for each in in_turns(members) for name in each.names}
    seen = set(rights.visible("show", names))
    return by_consumers.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor(groups.settings.consumer_assignors[0]),
        members=[_described_consumer(group, each, seen) for each in in_turns(members)],
    )


def _check_topics(
    rights: RequestRights, group: ConsumerGroup, members: Sequence[ConsumerMember]
) -> None:
    """Raise GroupError if members have topics that the session may not describe."""
    assigned = [
        topics.keys()
        for each in in_turns(members)
        for topics in (each.assigned, each.revoking, group.target.get(each.member_id, {}))
    ]
    if (why := refusal_of_topics(rights, group.topics, assigned)) is not None:
        raise why


def _described_consumer(
    group: ConsumerGroup, member: ConsumerMember, seen: Collection[str]
) -> by_consumers.Member:
    # A member still has what it is about to give up.
    has: dict[bytes, list[int]] = {}
    for topic, some in (*member.assigned.items(), *member.revoking.items()):
        has.setdefault(topic, []).extend(some)
    return by_consumers.Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(name for name in member.names if name in seen),
        member.pattern.regex,
        described_assignment(by_consumers, group.topics, has),
        described_assignment(by_consumers, group.topics, group.target.get(member.member_id, {})),
        _OF_CONSUMER if member.classic is None else _OF_CLASSIC,
    )


def delete_groups(
    backend: MemoryBackend, rights: RequestRights, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete groups without members, and their offsets."""

    def deleted(group_id: str) -> ErrorCode:
        if is_elsewhere(backend, rights, group_id):
            return ErrorCode.NOT_COORDINATOR
        return backend.cluster.groups.delete(group_id)

    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id, deleted(group_id))
            for group_id in in_turns(request.groups_names)
        ]
    )
