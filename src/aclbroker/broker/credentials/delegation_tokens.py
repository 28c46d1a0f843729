"""Delegation tokens (KIP-48, KIP-373) by the rules of Kafka's DelegationTokenControlManager.

A token's secret is the HMAC of its id under `delegation.token.secret.key`. As in Kafka it is not
stored: nobody can log in with what the store holds. Times are in milliseconds since the
epoch, life times and periods in milliseconds.
"""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.mechanism import Identity
from aclbroker.broker.auth.sasl.scram import ScramLogin
from aclbroker.broker.auth.sasl.scram_credentials import (
    ScramCredential,
    ScramMechanism,
    credential_of_password,
)
from aclbroker.broker.auth.sasl.scram_decoys import Decoys, derived_salt
from aclbroker.broker.credentials.changes import Changes, HasReached
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.broker.stores.store import new_cluster_id
from aclbroker.protocol.errors import ErrorCode

log = get_logger()

KIND: Final = "delegation-token"
_LONG_MAX: Final = 2**63 - 1
_SWEPT_AT_ONCE: Final = 1000
_USER: Final = "User:"

PER_REQUESTER: Final = "aclbroker.delegation.tokens.per.requester"
_LONGEST_RENEWERS: Final = 65_536


class TokenSettings(NamedTuple):
    """The settings ``delegation.token.*``."""

    secret_key: str
    max_lifetime_ms: int
    expiry_time_ms: int
    per_requester: int = 1000
    """How many tokens there may be that one principal has asked for."""

    def __repr__(self) -> str:
        lifetimes = f"{self.max_lifetime_ms}, {self.expiry_time_ms}"
        return f"TokenSettings({lifetimes}, {self.per_requester})"


@dataclass(frozen=True, slots=True)
class TokenInformation:
    """What is stored of a token; principals are written ``Type:name``.

    ``groups`` are those that the owner's access token named when the token was made.
    """

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    groups: tuple[str, ...] = ()

    def has_expired(self, now: int) -> bool:
        """Tell whether the token is not valid any more."""
        return min(self.max_timestamp, self.expiry_timestamp) < now

    def may_be_renewed_by(self, principals: Collection[str]) -> bool:
        """Tell whether one of the principals is the owner or a renewer."""
        return self.owner in principals or not set(principals).isdisjoint(self.renewers)

    def concerns(self, principals: Collection[str]) -> bool:
        """Tell whether one of the principals is the owner, a renewer, or asked for the token."""
        return self.requester in principals or self.may_be_renewed_by(principals)


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token and its secret: whoever has both has its owner's rights."""

    token_id: str
    information: TokenInformation
    hmac: bytes = field(repr=False)
    credentials: dict[ScramMechanism, ScramCredential] = field(
        default_factory=dict, repr=False, compare=False
    )


class TokenError(Exception):
    """A request about a token was refused; the code says why."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class DelegationTokens:
    """The tokens of a broker that has a secret key for them; `load_tokens` makes it.

    ``secret`` is what salts and decoys are derived from. ``now`` tells the time. The ``host`` of a
    change is the address of who asks for it.
    """

    def __init__(
        self,
        changes: Changes,
        tokens: Iterable[tuple[str, TokenInformation]],
        settings: TokenSettings,
        secret: bytes,
        now: Callable[[], int],
    ) -> None:
        self._changes = changes
        self._settings = settings
        self._secret = secret
        self._now = now
        self._by_id: dict[str, DelegationToken] = {}
        self._id_by_hmac: dict[bytes, str] = {}
        self._of_requester: Counter[str] = Counter()
        self._decoys = {mechanism: Decoys(mechanism, secret) for mechanism in ScramMechanism}
        for token_id, information in tokens:
            self._show(self._token(token_id, information))

    def look_up(self, mechanism: ScramMechanism, token_id: str) -> ScramLogin:
        """Return what a login is checked against: its user name is the token's id, its password the
        token's secret in base64, and its principal the owner. A decoy if there is no such token.

        Unlike in Kafka an expired token does not count, even before it is removed; nor does one
        whose owner is not of the type User, since the login would become the user of that name.
        """
        token = self._by_id.get(token_id)
        if token is None or token.information.has_expired(self._now()):
            return ScramLogin(self._decoys[mechanism].of(token_id), None)
        if mechanism not in token.credentials:
            password = b64encode(token.hmac).decode()
            salt = derived_salt(self._secret, mechanism, token_id)
            token.credentials[mechanism] = credential_of_password(mechanism, password, salt)
        owner = token.information.owner
        identity = None
        if owner.startswith(_USER):
            expires_at = token.information.expiry_timestamp / 1000
            name, groups = owner.removeprefix(_USER), token.information.groups
            identity = Identity(name, expires_at, token_authenticated=True, groups=groups)
        return ScramLogin(token.credentials[mechanism], identity)

    def tokens(self) -> list[DelegationToken]:
        """Return all tokens, also those that have expired and are still to be removed."""
        return list(self._by_id.values())

    def of_hmac(self, token_hmac: bytes) -> DelegationToken | None:
        """Return the token of an HMAC, None if there is none."""
        return self._by_id.get(self._id_by_hmac.get(token_hmac, ""))

    async def create(
        self,
        owner: str,
        requester: str,
        renewers: Sequence[str],
        max_lifetime_ms: int,
        origin: Origin | None = None,
        groups: tuple[str, ...] = (),
    ) -> DelegationToken:
        """Make a token; a life time that is not positive is the longest one.

        ``origin`` is who asks; without it, the broker itself. Raises NotStored, and TokenError if
        the requester has too many, or the renewers are.
        """
        async with self._changes.one(origin):
            self._check_room(requester, renewers)
            now = self._now()
            longest = self._settings.max_lifetime_ms
            lifetime = min(longest, max_lifetime_ms) if max_lifetime_ms > 0 else longest
            max_timestamp = _later(now, lifetime)
            expiry = min(max_timestamp, _later(now, self._settings.expiry_time_ms))
            information = TokenInformation(
                owner, requester, tuple(renewers), now, max_timestamp, expiry, groups
            )
            token = self._token(new_cluster_id(), information)
            await self._put(token)
        return token

    async def renew(
        self,
        token_hmac: bytes,
        principals: Collection[str],
        period_ms: int,
        origin: Origin | None = None,
    ) -> int:
        """Let a token expire later; a period that is not positive is the configured one.

        Returns the time at which it expires now. Raises TokenError and NotStored.
        """
        async with self._changes.one(origin):
            token = self._token_of(token_hmac)
            now = self._now()
            if token.information.has_expired(now):
                raise TokenError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            _check_renewer(token, principals)
            usual = self._settings.expiry_time_ms
            period = min(usual, period_ms) if period_ms > 0 else usual
            return await self._expire_at(token, _later(now, period))

    async def expire(
        self,
        token_hmac: bytes,
        principals: Collection[str],
        period_ms: int,
        origin: Origin | None = None,
    ) -> int:
        """Let a token expire after a period; a negative one removes it, also if it has expired.

        Returns the time at which it expires now. Raises TokenError and NotStored.
        """
        async with self._changes.one(origin):
            token = self._token_of(token_hmac)
            _check_renewer(token, principals)
            now = self._now()
            if period_ms < 0:
                await self._remove([token])
                return now
            if token.information.has_expired(now):
                raise TokenError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            return await self._expire_at(token, _later(now, period_ms))

    async def sweep(self, removed: Callable[[Sequence[DelegationToken]], None]) -> None:
        """Remove the tokens that have expired, and tell which ones. Raises NotStored."""
        # A store elsewhere is asked for what others have changed only if there is something to do.
        if not self._expired():
            return
        async with self._changes.one():
            expired = self._expired()
            for start in range(0, len(expired), _SWEPT_AT_ONCE):
                some = expired[start : start + _SWEPT_AT_ONCE]
                await self._remove(some)
                removed(some)
        if expired:
            log.info("expired delegation tokens removed", count=len(expired))

    def _expired(self) -> list[DelegationToken]:
        now = self._now()
        return [each for each in self._by_id.values() if each.information.has_expired(now)]

    def followed_by(self, has_reached: HasReached) -> None:
        """Leave it to who follows a shared store to `take` changes, one's own included."""
        self._changes.followed_by(has_reached)

    def take(self, records: Mapping[str, str | None], is_all: bool) -> None:
        """Take what the store has now: new values of records, None for those that are gone.

        If these are all there are, others are gone as well. A value that is no token is as if it
        were not there, and is logged.
        """
        gone = dict.fromkeys(self._by_id.keys() - records.keys()) if is_all else {}
        for token_id, value in {**gone, **records}.items():
            information = None if value is None else _read(token_id, value)
            if information is None:
                self._hide(token_id)
            else:
                self._show(self._token(token_id, information))

    async def close(self) -> None:
        """Finish the changes that were asked for; refuse later ones."""
        await self._changes.close()

    def _check_room(self, requester: str, renewers: Sequence[str]) -> None:
        """Raise TokenError if a token would be too large, or one too many of who asks for it.

        Kafka has no such limits. Tokens are kept in memory and in the store, and whoever may log in
        may make some.
        """
        most = self._settings.per_requester
        reason = None
        if self._of_requester[requester] >= most:
            reason = f"there may be {most} tokens of a requester ({PER_REQUESTER}), and there are"
        elif sum(map(len, renewers)) > _LONGEST_RENEWERS:
            reason = f"the renewers of a token may have {_LONGEST_RENEWERS} characters together"
        if reason is not None:
            self._changes.tell(log.warning, reason)
            raise TokenError(ErrorCode.POLICY_VIOLATION)

    def _token(self, token_id: str, information: TokenInformation) -> DelegationToken:
        key = self._settings.secret_key.encode()
        return DelegationToken(token_id, information, hmac.digest(key, token_id.encode(), "sha512"))

    def _token_of(self, token_hmac: bytes) -> DelegationToken:
        token = self.of_hmac(token_hmac)
        if token is None:
            raise TokenError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    async def _expire_at(self, token: DelegationToken, timestamp: int) -> int:
        expiry = min(token.information.max_timestamp, timestamp)
        information = replace(token.information, expiry_timestamp=expiry)
        await self._put(replace(token, information=information))
        return expiry

    async def _put(self, token: DelegationToken) -> None:
        await self._changes.apply({token.token_id: _to_json(token.information)}, [])
        if not self._changes.is_followed:
            self._show(token)

    async def _remove(self, tokens: Collection[DelegationToken]) -> None:
        await self._changes.apply({}, [token.token_id for token in tokens])
        if not self._changes.is_followed:
            for token in tokens:
                self._hide(token.token_id)

    def _hide(self, token_id: str) -> None:
        token = self._by_id.pop(token_id, None)
        if token is None:
            return
        del self._id_by_hmac[token.hmac]
        requester = token.information.requester
        self._of_requester[requester] -= 1
        if not self._of_requester[requester]:
            del self._of_requester[requester]

    def _show(self, token: DelegationToken) -> None:
        if token.token_id not in self._by_id:
            self._of_requester[token.information.requester] += 1
        self._by_id[token.token_id] = token
        self._id_by_hmac[token.hmac] = token.token_id


async def load_tokens(
    store: AclStore,
    settings: TokenSettings,
    secret: bytes,
    now: Callable[[], int] = lambda: int(time.time() * 1000),
    lines: LimitedLog | None = None,
) -> DelegationTokens:
    """Return the tokens that an open store has; `Changes` takes ``lines``. Raises `StoreError`."""
    found = []
    for token_id, value in (await store.load_records(KIND)).items():
        try:
            found.append((token_id, _from_json(value)))
        except (ValueError, TypeError, KeyError):
            text = f"the ACL store holds a record of the kind {KIND} that is no token: {token_id!r}"
            raise StoreError(f"{text}; delete it, or restore the store from a backup") from None
    return DelegationTokens(Changes(store, KIND, lines), found, settings, secret, now)


def _read(token_id: str, value: str) -> TokenInformation | None:
    try:
        return _from_json(value)
    except (ValueError, TypeError, KeyError):
        log.error("record is no token", kind=KIND, name=token_id)
        return None


def _check_renewer(token: DelegationToken, principals: Collection[str]) -> None:
    if not token.information.may_be_renewed_by(principals):
        raise TokenError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _later(now: int, duration: int) -> int:
    return min(_LONG_MAX, now + duration)


def _to_json(information: TokenInformation) -> str:
    fields = asdict(information)
    if not information.groups:
        # As versions wrote it, and read it, that knew of no groups.
        del fields["groups"]
    return json.dumps(fields)


def _from_json(text: str) -> TokenInformation:
    fields = json.loads(text)
    lists = {"renewers": tuple(fields["renewers"]), "groups": tuple(fields.get("groups", ()))}
    information = TokenInformation(**{**fields, **lists})
    times = (
        information.issue_timestamp,
        information.max_timestamp,
        information.expiry_timestamp,
    )
    principals = (
        information.owner,
        information.requester,
        *information.renewers,
        *information.groups,
    )
    if {*map(type, times)} != {int} or {*map(type, principals)} != {str}:
        raise ValueError("not a token")
    return information
