"""The memory of one connection on the account of its principal."""

from __future__ import annotations

from collections.abc import Callable

from aclbroker.broker.server.accounts import LARGE, Account, Accounts


def _nobody(*_told: str) -> None:
    """Tell nobody."""


class Holdings:
    """The bytes that a connection holds. Strangers without a principal share an account.

    After `must_wait` or `reserve` has let the connection wait, ``room_again`` is called once when
    there may be room again. The function ``close`` is called with the reason, if the connection
    must end to make room for others. The address of its peer is ``host``.
    """

    def __init__(
        self,
        accounts: Accounts,
        host: str,
        room_again: Callable[[], None],
        close: Callable[[str], None],
    ) -> None:
        self.host = host
        self._accounts = accounts
        self._account: Account = accounts.of_strangers
        self._room_again = room_again
        self._close = close
        self._arriving = 0
        self._at_work = 0
        self._unread = 0
        self.awaits_room = False

    def belong_to(self, principal: str) -> None:
        """Note the principal; the bytes held on another account are given back."""
        account = self._accounts.of(principal)
        if account is not self._account:
            self.give_back_all()
            self._account = account

    def must_wait(self) -> bool:
        """Return whether so much is held that no further request may be answered yet.

        The bytes of this one that have arrived do not count: it would wait for itself.
        """
        return self._account.is_full_but_for(self._arriving) and self._wait()

    def reserve(self, size: int) -> None:
        """Hold what a request that arrives will need, or wait for room; small ones need none."""
        if size > LARGE and not (self._arriving or self.awaits_room):
            if self._account.reserve(size, self):
                self._arriving = size
            else:
                self._wait()

    @property
    def is_arriving(self) -> bool:
        """Whether bytes are held for a request that arrives."""
        return self._arriving > 0

    def request_begins(self) -> int:
        """Note that the request that arrived is being answered; return how much it holds."""
        size, self._arriving = self._arriving, 0
        if size:
            self._at_work += size
            self._account.has_arrived(self)
        return size

    def request_ends(self, size: int) -> None:
        """Give back the bytes that a request held which was being answered."""
        size = min(size, self._at_work)
        if size:
            self._account.give_back(size)
            self._at_work -= size

    def answer_begins(self, size: int) -> None:
        """Hold an answer that is written in pieces."""
        self._account.take_answer(size)
        self._unread = size

    def answer_ends(self) -> None:
        """Give back what the answer held."""
        size, self._unread = self._unread, 0
        self._account.give_back_answer(size)

    def give_back_all(self) -> None:
        """Give back whatever is held."""
        if self._arriving or self.awaits_room:
            self._account.leave(self)
            self.awaits_room = False
        held = self._arriving + self._at_work
        self._arriving = self._at_work = 0
        if held:
            self._account.give_back(held)
        if self._unread:
            self.answer_ends()

    def end(self) -> None:
        """Give back whatever is held, and forget the connection, which is no more."""
        self.give_back_all()
        self._room_again, self._close = _nobody, _nobody

    def give_way(self, why: str) -> None:
        """Give back whatever is held, and have the connection closed."""
        self.give_back_all()
        self._close(why)

    def try_again(self) -> None:
        """Note that there may be room again."""
        self.awaits_room = False
        self._room_again()

    def _wait(self) -> bool:
        if not self.awaits_room:
            self.awaits_room = True
            self._account.wait(self)
        return True
