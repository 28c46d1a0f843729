"""Groups of a cluster whose time is in the hands of a test, and members of the classic protocol."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import Groups, GroupSettings
from aclbroker.broker.memory.groups.classic import JoinRequest, SyncRequest
from aclbroker.broker.memory.groups.classic_group import JoinAnswer, SyncAnswer
from aclbroker.broker.memory.room import DELETE, Room
from aclbroker.broker.memory.topics import MemoryTopics

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
NOW_MS = 1_700_000_000_000


def still_clock() -> Clock:
    """Return a clock that stands still unless a test moves it."""
    return Clock(source=lambda: NOW_MS)


def groups_at(clock: Clock, **settings: Any) -> Groups:
    """Return a coordinator with settings other than the defaults, and a topic t of 4 partitions."""
    topics = MemoryTopics([1], Room(1 << 20, DELETE), auto_creates=True)
    topics.create("t", 4)
    return Groups(clock, GroupSettings(**settings), topics)


def subscription(*topics: str, version: int = 0) -> bytes:
    """Return what a consumer says that it reads, as bytes."""
    names = b"".join(struct.pack(">h", len(each)) + each.encode() for each in topics)
    return struct.pack(">hi", version, len(topics)) + names + struct.pack(">i", -1)


class Member:
    """Somebody who joins a group of the classic protocol, with the answers that came."""

    def __init__(
        self,
        groups: Groups,
        *,
        instance_id: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        group_id: str = GROUP,
        client_id: str = "client",
    ) -> None:
        self.groups = groups
        self.group_id = group_id
        self.member_id = ""
        self.instance_id = instance_id
        self.client_id = client_id
        self.protocols = {"range": subscription("t")} if protocols is None else protocols
        self.protocol_type = protocol_type
        self.generation = -1
        self.joined: list[JoinAnswer] = []
        self.synced: list[SyncAnswer] = []
        self.hidden: set[str] = set()

    def join(self, **changes: Any) -> JoinAnswer | None:
        """Join; returns the answer, None if it is not there yet."""
        request = JoinRequest(
            self.group_id,
            self.member_id,
            self.instance_id,
            self.client_id,
            "/127.0.0.1",
            self.protocol_type,
            list(self.protocols.items()),
            SESSION_MS,
            REBALANCE_MS,
        )._replace(**changes)
        count = len(self.joined)
        self.groups.join(request, self._keep_joined)
        return self.joined[-1] if len(self.joined) > count else None

    def enter(self) -> JoinAnswer | None:
        """Join as clients do: first for an id, then with it."""
        answer = self.join()
        return self.join() if answer is not None and answer.code == 79 else answer

    def sync(self, assignments: Mapping[str, bytes] | None = None) -> SyncAnswer | None:
        """Ask for the assignment, or as a leader assign; returns the answer if it is there."""
        request = SyncRequest(
            self.group_id, self.member_id, self.instance_id, self.generation, assignments or {}
        )
        count = len(self.synced)
        self.groups.sync(request, self.synced.append, self._visible)
        return self.synced[-1] if len(self.synced) > count else None

    def _visible(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.hidden]

    def heartbeat(self) -> int:
        """Tell that it is alive; returns the error code."""
        return self.groups.heartbeat(
            self.group_id, self.member_id, self.instance_id, self.generation
        )

    def leave(self) -> int:
        """Leave the group; returns the error code."""
        return self.groups.leave(self.group_id, [(self.member_id, self.instance_id)])[0]

    def _keep_joined(self, answer: JoinAnswer) -> None:
        self.joined.append(answer)
        if not answer.code or answer.code == 79:
            self.member_id = answer.member_id
            self.generation = answer.generation


def stable(groups: Groups, clock: Clock, *members: Member) -> None:
    """Let members make a group that is stable; the first is its leader."""
    for member in members:
        member.enter()
    clock.advance(groups.settings.initial_rebalance_delay_ms)
    for member in members[1:]:
        member.sync()
    members[0].sync({each.member_id: each.member_id.encode() for each in members})
