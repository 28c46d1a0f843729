"""Groups under what members of both protocols may send in any order, right or wrong."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import GroupError, Groups
from aclbroker.broker.memory.groups.classic import JoinRequest, SyncRequest
from aclbroker.broker.memory.groups.classic_group import ClassicGroup, JoinAnswer, State
from aclbroker.broker.memory.groups.consumer import HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import ConsumerGroup
from aclbroker.broker.memory.groups.consumer_protocol import assignment_bytes
from aclbroker.broker.memory.groups.offsets import NewOffset
from tests.memory.groups.support import GROUP, groups_at, still_clock, subscription

STEPS = 1_500
EPOCHS = [0, 0, 1, 2, 3, 4, 5, -1, -1, -2]
INSTANCES = [None, None, None, "i", "j"]


class Walk:
    """Sends what chance says, with the ids and epochs that were given away."""

    def __init__(self, groups: Groups, clock: Clock, chance: Random) -> None:
        self.groups = groups
        self.clock = clock
        self.chance = chance
        self.known = ["nobody"]
        self.waiting = 0

    def step(self) -> None:
        """Send something, or let time go by."""
        steps = [self.join, self.join, self.sync, self.heartbeat, self.leave, self.commit]
        steps += [self.consume] * 4 + [self.pend, self.wait, self.delete]
        with suppress(GroupError):
            self.chance.choice(steps)()

    def join(self) -> None:
        metadata = self.chance.choice(
            [subscription("t", version=1) + bytes(4), subscription("u"), b"", b"\0"]
        )
        names = self.chance.sample(["range", "sticky"], self.chance.choice([0, 1, 1, 2]))
        self.waiting += 1
        self.groups.join(
            JoinRequest(
                GROUP,
                self.chance.choice(["", *self.known[-5:]]),
                self.chance.choice(INSTANCES),
                "client",
                "/host",
                self.chance.choice(["consumer"] * 5 + ["connect"]),
                [(name, metadata) for name in names],
                6_000,
                self.chance.choice([0, 1_000, 60_000]),
                needs_id=self.chance.random() < 0.5,
            ),
            self.joined,
        )

    def joined(self, answer: JoinAnswer) -> None:
        self.waiting -= 1
        if answer.member_id:
            self.known.append(answer.member_id)

    def sync(self) -> None:
        some = assignment_bytes({"t": self.chance.sample(range(4), 2)}, 1)
        members = {self.member(): self.chance.choice([some, some, b"x", b""]) for _ in range(3)}
        request = SyncRequest(
            GROUP, self.member(), self.chance.choice(INSTANCES), self.epoch(), members
        )
        self.waiting += 1
        self.groups.sync(request, lambda _: self.answered(), list)

    def answered(self) -> None:
        self.waiting -= 1

    def heartbeat(self) -> None:
        self.groups.heartbeat(GROUP, self.member(), self.chance.choice(INSTANCES), self.epoch())

    def leave(self) -> None:
        self.groups.leave(GROUP, [(self.member(), self.chance.choice(INSTANCES))])

    def commit(self) -> None:
        self.groups.offsets.commit(
            GROUP,
            [NewOffset("t", self.chance.randrange(4), 5)],
            member_id=self.chance.choice(["", self.member()]),
            epoch=self.epoch(),
        )

    def pend(self) -> None:
        self.groups.offsets.pend(self.chance.randrange(3), GROUP, [NewOffset("t", 0, 5)])
        producer = self.chance.randrange(3)
        list(self.groups.offsets.complete(producer, GROUP, commits=self.chance.random() < 0.5))

    def consume(self) -> None:
        topic = self.groups.topics.id_of("t")
        owned = {topic: set(self.chance.sample(range(4), self.chance.randrange(5)))}
        self.groups.consumer_heartbeat(
            HeartbeatRequest(
                GROUP,
                self.chance.choice(["m1", "m2", "m3", self.member()]),
                self.epoch(),
                self.chance.choice(INSTANCES),
                client_host="/host",
                rebalance_timeout_ms=self.chance.choice([-1, 0, 1_000]),
                names=self.chance.choice([None, ("t",), ("t", "u"), ()]),
                regex=self.chance.choice([None, None, "", "t|x", "("]),
                assignor=self.chance.choice([None, "range", "uniform"]),
                owned=self.chance.choice([None, {}, owned]),
            ),
            lambda found: found,
        )

    def wait(self) -> None:
        self.clock.advance(self.chance.choice([1, 1_000, 1_000, 7_000, 50_000]))

    def delete(self) -> None:
        self.groups.delete(GROUP)

    def member(self) -> str:
        return self.chance.choice(self.known[-5:])

    def epoch(self) -> int:
        group = self.groups.table.groups.get(GROUP)
        if self.chance.random() < 0.3:
            return self.chance.choice(EPOCHS)
        if isinstance(group, ClassicGroup):
            return group.generation
        if isinstance(group, ConsumerGroup):
            return self.chance.choice([0, group.epoch, group.target_epoch])
        return 0

    def check(self) -> None:
        """Hold what must be true of a group at any time."""
        group = self.groups.table.groups.get(GROUP)
        if isinstance(group, ClassicGroup):
            assert bool(group.members) == (group.leader in group.members)
            assert set(group.static_members.values()) <= set(group.members)
            assert not group.members or group.state is not State.EMPTY
            assert group.state is State.EMPTY or group.members or group.join_timer
        if isinstance(group, ConsumerGroup):
            assert set(group.static_members.values()) <= set(group.members)
            owned = [
                (topic, index)
                for member in group.members.values()
                for some in (member.assigned, member.revoking)
                for topic, indexes in some.items()
                for index in indexes
            ]
            owners = [(topic, index) for topic, some in group.owners.items() for index in some]
            assert len(owned) == len(set(owned)), "no partition is two members'"
            assert set(owners) == set(owned)


@pytest.mark.parametrize("seed", [*range(6), 14, 19])
def test_whatever_members_send_no_partition_is_two_members_and_nothing_stays(seed: int):
    clock = still_clock()
    groups = groups_at(clock, max_bytes=40_000)
    groups.topics.create("u", 2)
    walk = Walk(groups, clock, Random(seed))
    for _ in range(STEPS):
        walk.step()
        walk.check()
    clock.advance(600_000)
    assert walk.waiting == 0, "nobody waits for ever"
    for producer in range(3):
        list(groups.offsets.complete(producer, GROUP, commits=False))
    groups.delete(GROUP)
    assert groups.account.taken == 0
