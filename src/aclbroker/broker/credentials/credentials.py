"""All credentials of a running broker."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from aclbroker.broker.auth.sasl.scram import LookUp, ScramLogin
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.credentials.changes import HasReached, NotStored
from aclbroker.broker.credentials.delegation_tokens import KIND as TOKEN_KIND
from aclbroker.broker.credentials.delegation_tokens import (
    DelegationToken,
    DelegationTokens,
    TokenSettings,
    load_tokens,
)
from aclbroker.broker.credentials.scram_users import KIND as SCRAM_KIND
from aclbroker.broker.credentials.scram_users import ScramUsers, load_users
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.broker.stores.store import claim

SECRETS: Final = "secret"
SALTS: Final = "scram.salts"
_SECRET_BYTES: Final = 32

Listen = Callable[[str, Callable[[Mapping[str, str | None], bool], None]], None]
"""Has a function told of records of a kind: their values by name, and whether these are all."""


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

    async def follow(self, store: AclStore, listen: Listen, has_reached: HasReached) -> None:
        """Take what others change in a shared store, too, from now on.

        ``listen`` has a function told of the records of a kind, and ``has_reached`` waits until all
        was told up to a position.
        """
        for kind, one in ((SCRAM_KIND, self.users), (TOKEN_KIND, self.tokens)):
            if one is not None:
                one.followed_by(has_reached)
                listen(kind, one.take)
                # What was changed since it was loaded has been told already.
                one.take(await store.load_records(kind), True)

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
    """Return the secret from which decoys' salts are derived.

    It is the same one after a restart, and at all brokers that share the store.
    """
    made = {SALTS: secrets.token_hex(_SECRET_BYTES)}
    try:
        return bytes.fromhex((await claim(store, SECRETS, made, Origin.now()))[SALTS])
    except ValueError:
        problem = f"the ACL store holds a record of the kind {SECRETS} that is none: {SALTS!r}"
        raise StoreError(f"{problem}; delete it, or restore the store from a backup") from None


async def _sweep(
    tokens: DelegationTokens, interval: float, removed: Callable[[Sequence[DelegationToken]], None]
) -> None:
    while True:
        await asyncio.sleep(interval)
        # The log says why; the next interval tries again.
        with suppress(NotStored):
            await tokens.sweep(removed)
