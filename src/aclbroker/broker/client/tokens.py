"""Creates, renews, expires and describes delegation tokens of a cluster (KIP-48, KIP-373)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session
from aclbroker.protocol.messages import ApiKey


class Token(NamedTuple):
    """A delegation token; whoever has its id and its HMAC is its owner to the cluster.

    Principals are written ``Type:name``, times are in milliseconds since the epoch.
    """

    token_id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    ends: int

    def __repr__(self) -> str:
        return f"Token({self.token_id!r}, {self.owner!r})"


def create_token(
    session: Session, renewers: Sequence[str], max_lifetime_ms: int, owner: str | None = None
) -> Token:
    """Create a token of the owner, by default of who is logged in; raises `RequestRefused`."""
    from aclbroker.protocol.messages.create_delegation_token import (
        CreatableRenewers,
        CreateDelegationTokenRequest,
    )

    kind, name = (None, None) if owner is None else _parts(owner)
    named = [CreatableRenewers(*_parts(each)) for each in renewers]
    request = CreateDelegationTokenRequest(kind, name, named, max_lifetime_ms)
    answer = session.ask(ApiKey.CREATE_DELEGATION_TOKEN, request)
    _check(answer)
    found = f"{answer.principal_type}:{answer.principal_name}"
    return Token(
        answer.token_id,
        answer.hmac,
        found,
        _requester(answer) or found,
        tuple(renewers),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    )


def renew_token(session: Session, hmac: bytes, period_ms: int) -> int:
    """Have a token expire later, and return when; -1 is the cluster's own period."""
    from aclbroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

    answer = session.ask(
        ApiKey.RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(hmac, period_ms)
    )
    _check(answer)
    return int(answer.expiry_timestamp_ms)


def expire_token(session: Session, hmac: bytes, period_ms: int) -> int:
    """Have a token expire after a period, at once for -1, and return when."""
    from aclbroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest

    answer = session.ask(
        ApiKey.EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest(hmac, period_ms)
    )
    _check(answer)
    return int(answer.expiry_timestamp_ms)


def describe_tokens(session: Session, owners: Sequence[str] | None = None) -> list[Token]:
    """Return the tokens of these owners that the logged in one may see; all for None."""
    from aclbroker.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
    )

    named = None
    if owners is not None:
        named = [DescribeDelegationTokenOwner(*_parts(each)) for each in owners]
    answer = session.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(named))
    _check(answer)
    return [_token(each) for each in answer.tokens]


def _token(each: Any) -> Token:
    owner = f"{each.principal_type}:{each.principal_name}"
    return Token(
        each.token_id,
        each.hmac,
        owner,
        _requester(each) or owner,
        tuple(f"{who.principal_type}:{who.principal_name}" for who in each.renewers),
        each.issue_timestamp,
        each.expiry_timestamp,
        each.max_timestamp,
    )


def _requester(answer: Any) -> str | None:
    """Who asked for the token; None from a broker that does not tell (before version 3)."""
    kind, name = answer.token_requester_principal_type, answer.token_requester_principal_name
    return f"{kind}:{name}" if kind else None


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _check(answer: Any) -> None:
    if answer.error_code:
        raise RequestRefused(answer.error_code, None)
