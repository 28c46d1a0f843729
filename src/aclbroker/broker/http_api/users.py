"""Who calls the API: users of SASL mechanisms, by their password or by a token.

They are those of the listeners of the server's own cluster: of PLAIN as the listeners have them,
of SCRAM as the store has them. Users of listeners of other clusters are others, though they may
have the same names.
"""

from __future__ import annotations

import asyncio
import binascii
import hmac
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.auth.sasl.plain import PlainUsers
from aclbroker.broker.auth.sasl.scram_credentials import (
    ScramCredential,
    ScramMechanism,
    credential_of_password,
)
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.http_api.errors import ApiError
from aclbroker.broker.http_api.tokens import Proved, TokenRefused, Tokens
from aclbroker.broker.observability.limited_log import network

_PLAIN: Final = "PLAIN"
_SCRAM: Final = {each.mechanism_name: each for each in ScramMechanism}

_WAITING: Final = 64
"""How many passwords may wait for a thread to check them; each takes some ten milliseconds."""

_WAITING_OF_ADDRESS: Final = 16


class CallerRefused(Exception):
    """Nobody is proved. The text may be sent to the client, ``reason`` is for the log."""

    def __init__(self, text: str, reason: str = "", *, is_guess: bool = True) -> None:
        super().__init__(text)
        self.reason = reason or text
        self.is_guess = is_guess


class Users:
    """The users of the API. ``logins`` are those of the listeners that have them.

    ``credentials`` None is no users of SCRAM.
    """

    def __init__(
        self, logins: Mapping[str, Login], credentials: Credentials | None, tokens: Tokens
    ) -> None:
        self._logins = logins
        self._credentials = credentials
        self._tokens = tokens
        self._waiting: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="mds-password")

    def close(self) -> None:
        """Let the thread end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def issue(self, proved: Proved) -> tuple[str, int]:
        """Return a token for whoever was proved, and for how many seconds it is valid."""
        return self._tokens.issue(proved)

    async def proved(self, authorization: str | None, host: str, *, by_token: bool) -> Proved:
        """Return whom the header Authorization proves; ``by_token`` tells whether a token may.

        Raises `CallerRefused`, and `ApiError` where there is too much to do.
        """
        scheme, _, rest = (authorization or "").strip().partition(" ")
        if scheme.lower() == "basic":
            return await self._by_password(*_user_and_password(rest.strip()), host)
        if by_token and scheme.lower() == "bearer":
            return self._by_token(rest.strip())
        wanted = "a token or a name and a password" if by_token else "a name and a password"
        raise CallerRefused(f"Log in: {wanted} must be sent.", is_guess=False)

    def session(self, proved: Proved, host: str, api_listener: str, protocol: str) -> Session:
        """Return the session of whoever was proved, for the time of a call.

        It has come by ``api_listener``, and not by the one whose user it is: that may be the one of
        the brokers, where some may do more. Raises `CallerRefused`.
        """
        login = self._logins[proved.listener]
        try:
            found = login.session(host, mechanism=proved.mechanism, identity=Identity(proved.name))
        except AuthenticationFailed as error:
            raise CallerRefused(str(error), error.reason) from error
        return replace(found, listener=api_listener, security_protocol=protocol)

    def groups(self, principal: str) -> tuple[str, ...]:
        """Return a principal with those of the groups that it is in."""
        login = next(iter(self._logins.values()))
        return login.groups().principals((principal,), ())

    def _by_token(self, token: str) -> Proved:
        try:
            proved = self._tokens.check(token)
        except TokenRefused as error:
            raise CallerRefused(str(error), is_guess=False) from error
        if not self._exists(proved):
            reason = f"the token is of {proved.name[:64]!r}, who is no user any more"
            raise CallerRefused("The token is not valid.", reason, is_guess=False)
        return proved

    def _exists(self, proved: Proved) -> bool:
        login = self._logins.get(proved.listener)
        if login is None or proved.mechanism not in login.mechanisms:
            return False
        plain = login.mechanisms[proved.mechanism]
        if isinstance(plain, PlainUsers):
            return proved.name in plain.users
        if self._credentials is None or proved.mechanism not in _SCRAM:
            return False
        return _SCRAM[proved.mechanism] in self._credentials.users.iterations(proved.name)

    async def _by_password(self, user: str, password: str, host: str) -> Proved:
        """Return who has a password: of all that it may be of, the first; in the same time."""
        found: list[Proved] = []
        for name, login in self._logins.items():
            if self._is_of_plain(login, user, password):
                found.append(Proved(user, name, _PLAIN))
        if not found:
            found = await self._of_scram(user, password, host)
        if not found:
            raise CallerRefused(
                "The name or the password is wrong.", f"wrong name or password of {user[:64]!r}"
            )
        return found[0]

    def _is_of_plain(self, login: Login, user: str, password: str) -> bool:
        users = login.mechanisms.get(_PLAIN)
        if not isinstance(users, PlainUsers):
            return False
        try:
            users().evaluate(f"\0{user}\0{password}".encode())
        except (AuthenticationFailed, UnicodeEncodeError):
            return False
        return True

    async def _of_scram(self, user: str, password: str, host: str) -> list[Proved]:
        """Return as whom of SCRAM a password logs in: it is checked in a thread, for each once."""
        offered = {
            name: listener
            for listener, login in self._logins.items()
            for name in login.mechanisms
            if name in _SCRAM
        }
        if self._credentials is None or not offered:
            return []
        with self._place(host):
            return [
                Proved(user, listener, name)
                for name, listener in offered.items()
                if await self._is_of_scram(_SCRAM[name], user, password)
            ]

    async def _is_of_scram(self, mechanism: ScramMechanism, user: str, password: str) -> bool:
        if self._credentials is None:
            return False
        # Of a user that does not exist it is a decoy, which takes as long.
        login = self._credentials.users.look_up(mechanism, user)
        loop = asyncio.get_running_loop()
        same = await loop.run_in_executor(
            self._threads, _has_password, mechanism, login.credential, password
        )
        return same and login.identity is not None

    @contextmanager
    def _place(self, host: str) -> Iterator[None]:
        """Have a place among those who wait for the thread; raises `ApiError` if none is free."""
        address = network(host)
        most = _WAITING_OF_ADDRESS
        if self._waiting[address] >= most or self._waiting.total() >= _WAITING:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE, "Too many log in at once; try again.", ends=True
            )
        self._waiting[address] += 1
        try:
            yield
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]


def _has_password(mechanism: ScramMechanism, known: ScramCredential, password: str) -> bool:
    made = credential_of_password(mechanism, password, known.salt, known.iterations)
    return hmac.compare_digest(made.stored_key, known.stored_key)


def _user_and_password(text: str) -> tuple[str, str]:
    try:
        decoded = b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CallerRefused("The header Authorization is malformed.", is_guess=False) from None
    user, colon, password = decoded.partition(":")
    if not colon:
        raise CallerRefused("The header Authorization is malformed.", is_guess=False)
    return user, password
