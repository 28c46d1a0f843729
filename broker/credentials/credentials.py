"""All credentials of a running broker."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from aclbroker.broker.auth.sasl.scram import LookUp, ScramLogin
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.credentials.changes import NotStored
from aclbroker.broker.credentials.delegation_tokens import (
    DelegationToken,
    DelegationTokens,
    TokenSettings,
    load_tokens,
)
from aclbroker.broker.credentials.scram_users import ScramUsers, load_users
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.stores import AclStore, StoreError

_SECRETS: Final = "secret"
_SALTS: Final = "scram.salts"
_SECRET_BYTES: Final = 32


class Credentials:
    """Who may log in with SCRAM; ``tokens`` is None where delegation tokens are disabled.

    From `start` on expired tokens are removed after each interval.
    """

    def __init__(
        self, users: ScramUsers, tokens: DelegationTokens | None, check_interval_ms: int
    ) -> None:
        self.users = users
        self.tokens = tokens
        self._interval = check_interval_ms / 1000
        self._sweeping: asyncio.Task[None] | None = None

    def start(self, removed: Callable[[Sequence[DelegationToken]], None]) -> None:
        """Begin to remove expired tokens in the running loop; ``removed`` is told which ones."""
        if self.tokens is not None:
            self._sweeping = asyncio.create_task(_sweep(self.tokens, self._interval, removed))

    def look_up(self, mechanism: ScramMechanism) -> LookUp:
        """Return the function with which logins of a mechanism look names up."""
        return partial(self._look_up, mechanism)

    async def close(self) -> None:
        """Finish the changes that were asked for; refuse later ones. The store stays open."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping
        await self.users.close()
        if self.tokens is not None:
            await self.tokens.close()

    def _look_up(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramLogin:
        if is_token and self.tokens is not None:
            return self.tokens.look_up(mechanism, name)
        login = self.users.look_up(mechanism, name)
        # Where tokens are disabled, a token id that is a user's name must not log that user in, and
        # the challenge must not tell that it is one.
        return login._replace(identity=None) if is_token else login


async def load_credentials(
    store: AclStore,
    tokens: TokenSettings | None,
    check_interval_ms: int,
    lines: LimitedLog | None = None,
) -> Credentials:
    """Return the credentials that an open store has. Raises `StoreError`.

    Without the settings of ``tokens`` these are disabled. Changes that fail are logged in
    ``lines``.
    """
    secret = await _secret(store)
    users = await load_users(store, secret, lines)
    if tokens is None:
        return Credentials(users, None, check_interval_ms)
    # Two secrets: an unknown user must not get the same salt as an unknown token of that name.
    of_tokens = hmac.digest(secret, b"delegation tokens", "sha256")
    loaded = await load_tokens(store, tokens, of_tokens, lines=lines)
    return Credentials(users, loaded, check_interval_ms)


async def _secret(store: AclStore) -> bytes:
    """Return the secret from which decoys' salts are derived: the same one after a restart."""
    text = (await store.load_records(_SECRETS)).get(_SALTS)
    if text is None:
        text = secrets.token_hex(_SECRET_BYTES)
        await store.apply_records(_SECRETS, {_SALTS: text}, [])
    try:
        return bytes.fromhex(text)
    except ValueError:
        problem = f"the ACL store holds a record of the kind {_SECRETS} that is none: {_SALTS!r}"
        raise StoreError(f"{problem}; delete it, or restore the store from a backup") from None


async def _sweep(
    tokens: DelegationTokens, interval: float, removed: Callable[[Sequence[DelegationToken]], None]
) -> None:
    while True:
        await asyncio.sleep(interval)
        # The log says why; the next interval tries again.
        with suppress(NotStored):
            await tokens.sweep(removed)
