"""How much memory the requests and answers of each principal hold, and when it is enough.

Large requests hold memory from when they begin to arrive until they are answered, and large answers
until the client has read them. A principal who holds more than its limit gets no further request
read or answered until it holds less, on whatever connection; others do not notice. Requests whose
answers take long have begun before it is known how large these are: they go on one after the other,
and no further while too much is unread. Strangers have one account together, on which no request
stays that does not arrive while others wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Protocol
from weakref import WeakValueDictionary

from aclbroker.broker.observability.limited_log import network

LARGE: Final = 65_536
"""From how many bytes on a request or an answer counts; each connection may hold less anyway."""

_OF_STRANGERS: Final = 33_554_432
"""The limit that all clients have together who have not authenticated yet."""

_TO_ARRIVE_SECONDS: Final = 1.0
"""How long a stranger's request may take to arrive if others wait for its room."""


class Holder(Protocol):
    """What holds bytes on an account: one connection, from the address ``host``."""

    host: str

    def try_again(self) -> None:
        """Ask again for the room that was not there."""

    def give_way(self, why: str) -> None:
        """Give back what is held, at once, and close the connection."""


class Total:
    """The bytes that are held on several accounts together."""

    def __init__(self) -> None:
        self.held = 0


class Account:
    """The bytes that are held for one principal, of at most ``limit``, as part of a total.

    A single request or answer may be larger than the limit: it is taken while nothing is held.
    """

    def __init__(self, limit: int, total: Total | None = None) -> None:
        self.limit = limit
        self.held = 0
        self.unread = 0
        """How many of the bytes that are held are those of answers."""
        self._total = total or Total()
        self._waiting: OrderedDict[Holder, None] = OrderedDict()

    def is_full_but_for(self, size: int) -> bool:
        """Return whether more is held than may be, not counting so many of the bytes held."""
        return self.held - size > self.limit

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more may be held."""
        return not self.held or self.held + size <= self.limit

    def reserve(self, size: int, holder: Holder) -> bool:
        """Hold so many bytes more for a request that arrives, if there is room; return whether."""
        if not self.has_room(size):
            return False
        self.take(size)
        return True

    def take(self, size: int) -> None:
        """Hold so many bytes more."""
        self.held += size
        self._total.held += size

    def take_answer(self, size: int) -> None:
        """Hold an answer of so many bytes more."""
        self.unread += size
        self.take(size)

    def give_back_answer(self, size: int) -> None:
        """Hold an answer of so many bytes less; those who wait try again."""
        self.unread -= size
        self.give_back(size)

    def give_back(self, size: int) -> None:
        """Hold so many bytes less; those who wait try again."""
        self.held -= size
        self._total.held -= size
        self._let_try_again()

    def wait(self, holder: Holder) -> None:
        """Have a holder try again once, when less is held."""
        self._waiting[holder] = None

    def has_arrived(self, holder: Holder) -> None:
        """Note that the request is here for which there is a reservation."""

    def leave(self, holder: Holder) -> None:
        """Forget a holder that neither waits nor has a reservation any more."""
        self._waiting.pop(holder, None)

    def _let_try_again(self) -> None:
        waiting, self._waiting = self._waiting, OrderedDict()
        for holder in waiting:
            holder.try_again()


class StrangersAccount(Account):
    """The bytes that are held for all who have not authenticated yet.

    Anybody can announce a large request and send nothing. So a reservation gives way to others:
    the oldest of the address that has most of them at once, to one of an address that has less; any
    other, the oldest first, when its request has not arrived within `_TO_ARRIVE_SECONDS`. There may
    be as many who wait as connections: they try again one after the other, in their order.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(limit)
        self._clock = clock
        # Who has reservations, and since when, the oldest first; by address.
        self._arriving: dict[str, dict[Holder, float]] = {}
        self._trying: Holder | None = None
        self._timer: asyncio.TimerHandle | None = None

    def reserve(self, size: int, holder: Holder) -> bool:
        """Hold so many bytes more, if there is room or others must give way; return whether."""
        address = network(holder.host)
        while not self.has_room(size):
            most = max(self._arriving.values(), key=len, default={})
            if len(most) <= len(self._arriving.get(address, ())) + 1:
                return False
            self._make_room(next(iter(most)))
        self.take(size)
        self._arriving.setdefault(address, {})[holder] = self._clock()
        if self.has_room(LARGE):
            self._let_try_again()
        return True

    def wait(self, holder: Holder) -> None:
        """Have a holder try again when less is held, which is before long."""
        self._waiting[holder] = None
        if holder is self._trying:
            self._waiting.move_to_end(holder, last=False)
        self._look_later()

    def has_arrived(self, holder: Holder) -> None:
        """Note that the request is here for which there is a reservation."""
        address = network(holder.host)
        of_address = self._arriving.get(address, {})
        of_address.pop(holder, None)
        if not of_address:
            self._arriving.pop(address, None)

    def leave(self, holder: Holder) -> None:
        """Forget a holder that neither waits nor has a reservation any more."""
        super().leave(holder)
        self.has_arrived(holder)
        if holder is self._trying:
            self._trying = None

    def _let_try_again(self) -> None:
        if self._waiting:
            self._trying, _ = self._waiting.popitem(last=False)
            self._trying.try_again()

    def _look_later(self) -> None:
        """Look again when the oldest request should have arrived, as long as somebody waits."""
        if self._timer is None and self._waiting:
            oldest = self._oldest()
            since = self._clock() if oldest is None else oldest[0]
            seconds = max(0.0, since + _TO_ARRIVE_SECONDS - self._clock())
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        oldest = self._oldest()
        if self._waiting and oldest and self._clock() >= oldest[0] + _TO_ARRIVE_SECONDS:
            self._make_room(oldest[1])
        else:
            # Who tried last may have gone away.
            self._let_try_again()
        self._look_later()

    def _oldest(self) -> tuple[float, Holder] | None:
        """Return the oldest reservation: since when it is, and whose."""
        first = (next(iter(each.items())) for each in self._arriving.values())
        return min(((since, holder) for holder, since in first), key=_since, default=None)

    def _make_room(self, holder: Holder) -> None:
        holder.give_way("others wait for the room that its request has reserved")


def _since(reservation: tuple[float, Holder]) -> float:
    return reservation[0]


class Accounts:
    """The accounts of all principals, of at most ``limit`` bytes each, and that of strangers.

    ``of_principals`` is what is held on the accounts of principals together. Of the limits each of
    so many ``workers`` has its share: a client may have connections to all of them.
    """

    def __init__(self, limit: int, workers: int = 1) -> None:
        self._limit = max(1, limit // workers)
        self.of_principals = Total()
        self._accounts: WeakValueDictionary[str, Account] = WeakValueDictionary()
        self.of_strangers = StrangersAccount(max(1, min(limit, _OF_STRANGERS) // workers))

    def of(self, principal: str) -> Account:
        """Return the account of a principal; all its connections have the same one."""
        account = self._accounts.get(principal)
        if account is None:
            account = self._accounts[principal] = Account(self._limit, self.of_principals)
        return account

    def room(self, principal: str) -> Awaitable[None] | None:
        """Return what waits until a principal has read of its answers; None if it need not wait."""
        account = self._accounts.get(principal)
        if account is None or account.unread <= account.limit:
            return None
        return _Reading().until(account)


class _Reading:
    """Waits until less is held of what a client has not read."""

    host = ""

    def __init__(self) -> None:
        self._less = asyncio.Event()

    def try_again(self) -> None:
        self._less.set()

    def give_way(self, _why: str) -> None:
        self._less.set()

    async def until(self, account: Account) -> None:
        account.wait(self)
        try:
            await self._less.wait()
        finally:
            account.leave(self)
