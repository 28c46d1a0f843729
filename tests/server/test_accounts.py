"""Strangers who announce large requests and send nothing keep no room from others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aclbroker.broker.server import accounts
from aclbroker.broker.server.accounts import StrangersAccount

SIZE = 500_000


class Peer:
    """A peer that announces a request of `SIZE`, again each time that it is told to try."""

    def __init__(self, account: StrangersAccount, host: str) -> None:
        self.host = host
        self.has_room = False
        self.tries = 0
        self.told: list[str] = []
        self._account = account

    def announce(self) -> bool:
        self.tries += 1
        self.has_room = self._account.reserve(SIZE, self)
        if not self.has_room:
            self._account.wait(self)
        return self.has_room

    def try_again(self) -> None:
        asyncio.get_running_loop().call_soon(self.announce)

    def arrive(self) -> None:
        """Send all of the request, and have it answered."""
        self._account.has_arrived(self)
        self._account.give_back(SIZE)

    def leave(self) -> None:
        self._account.leave(self)
        if self.has_room:
            self.has_room = False
            self._account.give_back(SIZE)

    def give_way(self, why: str) -> None:
        self.told.append(why)
        self.leave()


class Peers:
    """An account with room for four requests at a time, and its peers; ``now`` is its clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.account = StrangersAccount(4 * SIZE, lambda: self.now)

    def announced(self, *hosts: str) -> list[Peer]:
        made = [Peer(self.account, host) for host in hosts]
        for each in made:
            each.announce()
        return made


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Peers:
    monkeypatch.setattr(accounts, "_TO_ARRIVE_SECONDS", 0.01)
    return Peers()


async def soon(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.001)


async def test_the_oldest_of_the_address_that_has_most_gives_way_at_once(peers: Peers) -> None:
    first, *others = peers.announced("192.0.2.9", *["192.0.2.1"] * 3)
    [newcomer] = peers.announced("192.0.2.2")
    assert newcomer.has_room
    assert [each.has_room for each in others] == [False, True, True]
    assert others[0].told == ["others wait for the room that its request has reserved"]
    assert (first.has_room, first.told) == (True, [])


async def test_an_address_that_has_as_many_takes_no_room_from_others_whose_requests_arrive(
    peers: Peers,
) -> None:
    holders = peers.announced("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2")
    [waiting] = peers.announced("192.0.2.1")
    assert [each.has_room for each in (*holders, waiting)] == [True] * 4 + [False]
    holders[3].arrive()
    await soon(lambda: waiting.has_room)
    assert all(not each.told for each in holders)


async def test_all_addresses_of_a_network_of_ipv6_are_one(peers: Peers) -> None:
    holders = peers.announced(*(f"2001:db8::{number}" for number in range(4)))
    [neighbour] = peers.announced("2001:db8::ffff")
    assert not neighbour.has_room
    [other] = peers.announced("2001:db8:0:1::1")
    assert other.has_room
    assert holders[0].told


async def test_what_does_not_arrive_in_time_gives_way_to_those_who_wait_the_oldest_first(
    peers: Peers,
) -> None:
    holders = peers.announced(*(f"192.0.2.{number}" for number in range(4)))
    waiting = peers.announced(*(f"192.0.2.{number}" for number in range(4, 6)))
    await soon(lambda: waiting[0].tries > 5)
    assert all(each.has_room for each in holders)
    peers.now += 0.01
    await soon(lambda: all(each.has_room for each in waiting))
    assert [len(each.told) for each in holders] == [1, 1, 0, 0]


async def test_nobody_gives_way_where_nobody_waits(peers: Peers) -> None:
    holders = peers.announced(*(f"192.0.2.{number}" for number in range(4)))
    [gone] = peers.announced("192.0.2.5")
    gone.leave()
    peers.now += 1
    await soon(lambda: peers.account._timer is None)
    assert all(each.has_room for each in holders)


async def test_those_who_wait_try_in_their_order_and_few_at_a_time(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_TO_ARRIVE_SECONDS", 3600)  # nobody tries for the time's sake
    holders = peers.announced(*(f"192.0.2.{number}" for number in range(4)))
    waiting = peers.announced(*(f"198.51.100.{number}" for number in range(200)))
    tried = sum(each.tries for each in waiting)
    for holder, first, second in zip(holders, waiting, waiting[1:], strict=False):
        holder.arrive()
        await soon(lambda first=first: first.has_room)  # type: ignore[misc]
        assert not second.has_room
    # Each arrival lets one try; that one lets nobody try, since it takes all that there is.
    assert sum(each.tries for each in waiting) == tried + 4


async def test_who_leaves_while_it_tries_leaves_the_room_to_the_next(peers: Peers) -> None:
    holders = peers.announced(*(f"192.0.2.{number}" for number in range(4)))
    gone, other = peers.announced("192.0.2.5", "192.0.2.6")
    gone.try_again = gone.leave  # type: ignore[method-assign]
    holders[0].arrive()
    await soon(lambda: other.has_room)
