"""OffsetFetch and DescribeShareGroupOffsets: topics inside groups, each with a right of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.echo import Denial, Echo, echo, without
from aclbroker.broker.gate.engine import Verdict, denial, entry_denials, refused
from aclbroker.broker.gate.need import Need, Profile, Row
from aclbroker.broker.gate.rights import May, Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS

_FIRST_VERSION_WITH_GROUPS: Final = 8

_OFFSETS: Final = echo(
    "topics",
    "topics",
    "name topic_id",
    echo("partitions", "partition_indexes", "partition_index=", committed_offset=-1),
)
_OFFSETS_OF_ONE: Final = echo("topics", "topics", "name", _OFFSETS.inner)
_SHARE_OFFSETS: Final = echo(
    "topics",
    "topics",
    "topic_name",
    echo("partitions", "partitions", "partition_index=", start_offset=-1, lag=-1),
)


def check_offset_fetch(
    row: Row, request: Any, may: May, topics: Topics, _profile: Profile
) -> Verdict:
    """Ask for the group or groups, then for the topics of each."""
    if may.context.api_version >= _FIRST_VERSION_WITH_GROUPS:
        return _check_groups(row, request, may, topics, _OFFSETS)
    group_need, topic_need = row.needs
    if not may(group_need.operation, ResourceType.GROUP, request.group_id):
        why = _group_denial(group_need, request.group_id)
        answer = row.answer(may.context.api_version)
        return refused(answer.refuse(APIS[row.key].response, request, why))
    by_name = dataclasses.replace(topic_need, resource=_by_name)
    part = _Part(request, by_name, may, topics, _OFFSETS_OF_ONE)
    return Verdict(part.allowed, None, part.complete(APIS[row.key].response))


def check_share_group_offsets(
    row: Row, request: Any, may: May, topics: Topics, _profile: Profile
) -> Verdict:
    """Ask for the groups, then for the topics of each."""
    return _check_groups(row, request, may, topics, _SHARE_OFFSETS)


def _by_name(entry: Any, _request: Any, _topics: Topics) -> tuple[ResourceType, str]:
    return ResourceType.TOPIC, entry.name


def _group_denial(need: Need, group_id: str) -> Denial:
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return denial(code, need.operation, ResourceType.GROUP, group_id)


@dataclass
class _Part:
    """One owner of topics: a group, or a request that has one group."""

    asked: Any
    need: Need
    may: May
    topics: Topics
    echo: Echo

    def __post_init__(self) -> None:
        entries = self.asked.topics
        self.asks_all = entries is None
        self.denials = entry_denials(self.need, entries or (), self.asked, self.may, self.topics)
        self.allowed = without(self.asked, "topics", self.denials) if self.denials else self.asked

    def complete(self, owner: Any) -> Callable[[Any], Any]:
        """Return what puts the refused topics back into an answer of class ``owner``."""

        def put_back(answered: Any) -> Any:
            if answered.error_code:
                return answered
            if self.asks_all:
                answered.topics = self._seen(answered.topics)
                return answered
            refusals = {
                position: self.echo.refuse(owner, self.asked.topics[position], why)
                for position, why in self.denials.items()
            }
            answered.topics = self.echo.merged(self.asked.topics or (), refusals, answered.topics)
            return answered

        return put_back

    def _seen(self, answered: Any) -> list[Any]:
        field = "topic_name" if self.echo is _SHARE_OFFSETS else "name"
        counts = dict.fromkeys((getattr(topic, field) for topic in answered), 1)
        seen = self.may.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, counts, quietly=True)
        return [topic for topic in answered if getattr(topic, field) in seen]


def _check_groups(row: Row, request: Any, may: May, topics: Topics, echoed: Echo) -> Verdict:
    group_need, topic_need = row.needs
    counts: dict[str | None, int] = dict.fromkeys((group.group_id for group in request.groups), 1)
    allowed = may.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, counts)
    response_class = APIS[row.key].response
    group_echo = row.answer(may.context.api_version).echo
    if group_echo is None:
        raise TypeError(f"{row.key.name} has groups without an echo of them")
    refusals = {}
    parts: dict[int, _Part] = {}
    for position, group in enumerate(request.groups):
        if group.group_id in allowed:
            parts[position] = _Part(group, topic_need, may, topics, echoed)
        else:
            why = _group_denial(group_need, group.group_id)
            refusals[position] = group_echo.refuse(response_class, group, why)
    if refusals and not parts:
        return refused(response_class(groups=list(refusals.values())))

    def complete(response: Any) -> Any:
        merged = group_echo.merged(request.groups, refusals, response.groups)
        for position, part in parts.items():
            part.complete(type(merged[position]))(merged[position])
        response.groups = merged
        return response

    kept = [part.allowed for part in parts.values()]
    return Verdict(dataclasses.replace(request, groups=kept), None, complete)
