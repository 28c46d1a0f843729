"""How much memory the requests and answers of each principal hold, and when it is enough.

Large requests hold memory from when they begin to arrive until they are answered, and large answers
until the client has read them. A principal who holds more than its limit gets no further request
read or answered until it holds less, on whatever connection; others do not notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

LARGE: Final = 65_536
"""From how many bytes on a request or an answer counts; each connection may hold less anyway."""

_OF_STRANGERS: Final = 33_554_432
"""The limit that all clients have together who have not authenticated yet."""


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
        self._total = total or Total()
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_full(self) -> bool:
        """Whether more is held than may be."""
        return self.held > self.limit

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more may be held."""
        return not self.held or self.held + size <= self.limit

    def take(self, size: int) -> None:
        """Hold so many bytes more."""
        self.held += size
        self._total.held += size

    def give_back(self, size: int) -> None:
        """Hold so many bytes less; those who wait try again."""
        self.held -= size
        self._total.held -= size
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()

    def wait(self, try_again: Callable[[], None]) -> None:
        """Call a function once when less is held."""
        self._waiting.append(try_again)


class Accounts:
    """The accounts of all principals, of at most ``limit`` bytes each, and that of strangers.

    ``of_principals`` is what is held on the accounts of principals together.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.of_principals = Total()
        self._accounts: WeakValueDictionary[str, Account] = WeakValueDictionary()
        self.of_strangers = Account(min(limit, _OF_STRANGERS))

    def of(self, principal: str) -> Account:
        """Return the account of a principal; all its connections have the same one."""
        account = self._accounts.get(principal)
        if account is None:
            account = self._accounts[principal] = Account(self._limit, self.of_principals)
        return account
