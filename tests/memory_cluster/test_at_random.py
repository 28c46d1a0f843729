"""Producers and groups over connections, in random order and with faults, against a plain model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from aclbroker.testing import AclBroker
from tests.memory_cluster import raw
from tests.memory_cluster.at_random import Play
from tests.memory_cluster.random_members import Classic, Modern, looking_on, visible
from tests.memory_cluster.random_producers import Batches, Transactional, helping, idempotent
from tests.memory_cluster.random_world import CLASSIC, FED, MODERN, PARTITIONS, TOPIC, World
from tests.support.client import Client

BATCHES = 60
TRANSACTIONS = 12
STEPS = 60_000


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(topics={TOPIC: PARTITIONS}) as running:
        running.grant("writer", "WRITE", topic=TOPIC)
        running.grant("writer", "READ", topic=TOPIC)
        running.grant("writer", "READ", group=FED)
        for each in ("first", "second"):
            running.grant("writer", "WRITE", transactional_id=each)
        running.grant("reader", "READ", topic=TOPIC)
        for each in (CLASSIC, MODERN):
            running.grant("reader", "READ", group=each)
        yield running


def logs(admin: Client) -> list[Any]:
    """Return the partitions as a reader of committed records is told of them."""
    wanted = {TOPIC: [raw.partition(index) for index in range(PARTITIONS)]}
    answer = raw.fetched(admin, 12, raw.request(wanted, isolation_level=1))
    parts = answer.responses[0].partitions
    return sorted(parts, key=lambda each: int(each.partition_index))


@pytest.mark.parametrize("seed", range(4))
def test_no_record_is_lost_or_doubled_and_no_offset_goes_back(broker: AclBroker, seed: int):
    with Client(broker.bootstrap_servers) as admin:
        admin.login("admin", broker.password("admin"))
        random = Random(seed)
        world = World(random, raw.id_of(admin, TOPIC))
        writing, reading = Play(broker, random), Play(broker, random, moves_time=True)
        seen: dict[tuple[str, int], int] = {}
        for name in ("a", "b"):
            shared: list[Batches] = []
            writing.add("writer", idempotent(world, name, BATCHES, shared))
            writing.add("writer", helping(shared))
        first = Transactional(world, "first", by_second=False, feeds=0)
        second = Transactional(world, "second", by_second=True, feeds=1)
        for each in (first, second):
            writing.add("writer", each.write(TRANSACTIONS))
        for number in range(3):
            reading.add("reader", Classic(world).read())
            reading.add("reader", Modern(world).read(f"member-{number}"))
        reading.add("admin", looking_on(world, seen), only_watches=True)
        try:
            interleave(writing, reading, random)
            reading.calm()
            world.ends = {each.partition_index: each.last_stable_offset for each in logs(admin)}
            reading.steps(STEPS)
            assert reading.is_over
        finally:
            writing.close()
            reading.close()
        check(world, logs(admin))
        for group, accepted in world.accepted.items():
            for index, offset in accepted.items():
                assert seen[group, index] == offset
        assert broker.denials() == []
        assert world.rebalances > 10
        assert world.refused > 0


def interleave(writing: Play, reading: Play, random: Random) -> None:
    """Let some go on, then others, until all is written."""
    for _ in range(STEPS):
        random.choice((writing, reading)).steps(5)
        if writing.is_over:
            return
    raise AssertionError("not all was written")


def check(world: World, parts: list[Any]) -> None:
    """Compare what can be read, and what groups have read, with what was written."""
    found = {
        (part.partition_index, offset): value
        for part in parts
        for offset, value in visible(part)
        if value is not None
    }
    assert "open" not in world.fates.values()
    wanted = Counter(value for value, fate in world.fates.items() if fate == "committed")
    assert Counter(found.values()) == wanted
    for part in parts:
        last: dict[bytes, tuple[int, ...]] = {}
        for offset, value in visible(part):
            if value is not None:
                name, *numbers = value.split(b"-")
                order = tuple(map(int, numbers))
                assert last.get(name, (-1,)) < order, (part.partition_index, offset, value)
                last[name] = order
    for group, consumed in world.consumed.items():
        assert consumed == found, group
