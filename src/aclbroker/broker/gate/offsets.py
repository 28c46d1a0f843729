"""OffsetFetch and DescribeShareGroupOffsets, which need rights on groups and on their topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aclbroker.broker.gate.echo import Denial, Echo, echo, without
from aclbroker.broker.gate.engine import Verdict, denial, entry_denials, refuse, refused
from aclbroker.broker.gate.need import REFUSAL, Each
from aclbroker.broker.gate.rights import RequestRights, names_of
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

_FIRST_VERSION_WITH_GROUPS: Final = 8

_GROUPS: Final = echo("groups", "groups", "group_id")
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


def check_offset_fetch(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check the rights on the groups (one before version 8), then on the topics of each."""
    if rights.context.api_version >= _FIRST_VERSION_WITH_GROUPS:
        return _check_groups(request, rights, topics, _OFFSETS)
    if not rights.allowed("group", (request.group_id,)):
        return refuse(request, rights, _group_denial(rights, request.group_id))
    owner = _Owner(request, rights, topics, _OFFSETS_OF_ONE)
    return Verdict(owner.allowed, None, owner.complete(APIS[rights.row.key].response))


def check_share_group_offsets(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check the rights on the groups, then on the topics of each."""
    return _check_groups(request, rights, topics, _SHARE_OFFSETS)


def _group_denial(rights: RequestRights, group_id: str) -> Denial:
    need = rights.declared("group")
    [kind] = need.types
    return denial(REFUSAL[kind], need.operation, kind, group_id)


@dataclass(slots=True)
class _Owner:
    """A struct of the request with topics: a group, or the request itself if it has one group."""

    asked: Any
    rights: RequestRights
    topics: Topics
    echo: Echo
    denials: dict[int, Denial] = field(init=False)
    allowed: Any = field(init=False)
    """The group or request without the topics that are refused."""

    def __post_init__(self) -> None:
        need = self.rights.need("topic")
        self.denials = {}
        if isinstance(need, Each) and self.asked.topics is not None:
            self.denials = entry_denials(need, self.echo, self.asked, self.rights, self.topics)
        self.allowed = without(self.asked, "topics", self.denials) if self.denials else self.asked

    def complete(self, owner: Any) -> Callable[[Any], Any]:
        """Return a function that puts the refused topics back into an answer of class ``owner``."""

        def put_back(answered: Any) -> Any:
            if answered.error_code:
                return answered
            if self.asked.topics is None:
                answered.topics = self._seen(answered.topics)
                return answered
            refusals = {
                position: self.echo.refuse(owner, self.asked.topics[position], why)
                for position, why in in_turns(self.denials.items())
            }
            answered.topics = self.echo.merged(self.asked.topics, refusals, answered.topics)
            return answered

        return put_back

    def _seen(self, answered: Any) -> list[Any]:
        """Return those of a group's topics that the session may describe."""
        name_field = self.echo.keys[0][0]

        def name_of(topic: Any) -> str | None:
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            name: str = getattr(topic, name_field)
            return name if name or topic_id == ZERO_UUID else self.topics.name_of(topic_id)

        names = [name_of(topic) for topic in in_turns(answered)]
        seen = set(self.rights.visible("show", [name for name in names if name is not None]))
        return [topic for topic in in_turns(answered) if name_of(topic) in seen]


def _check_groups(request: Any, rights: RequestRights, topics: Topics, echoed: Echo) -> Verdict:
    allowed = rights.allowed("group", names_of(request.groups, "group_id"))
    response_class = APIS[rights.row.key].response
    refusals = {}
    owners: dict[int, _Owner] = {}
    for position, group in enumerate(in_turns(request.groups)):
        if group.group_id in allowed:
            owners[position] = _Owner(group, rights, topics, echoed)
        else:
            why = _group_denial(rights, group.group_id)
            refusals[position] = _GROUPS.refuse(response_class, group, why)
    if refusals and not owners:
        return refused(response_class(groups=list(refusals.values())))

    def complete(response: Any) -> Any:
        # The last come first, so that the first can be popped.
        waiting: dict[str, list[_Owner]] = {}
        for owner in in_turns(list(owners.values())[::-1]):
            waiting.setdefault(owner.asked.group_id, []).append(owner)
        for answered in in_turns(response.groups):
            if left := waiting.get(answered.group_id):
                left.pop().complete(type(answered))(answered)
        response.groups = _GROUPS.merged(request.groups, refusals, response.groups)
        return response

    kept = [owner.allowed for owner in in_turns(owners.values())]
    return Verdict(dataclasses.replace(request, groups=kept), None, complete)
