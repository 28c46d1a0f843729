"""The four keys about delegation tokens (KIP-48, KIP-373), answered as by Kafka 4.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from aclbroker.broker.credentials import DelegationToken, DelegationTokens, NotStored, TokenError
from aclbroker.broker.gate.conditions import token_owner
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.tokens import create_refusal, may_use_tokens
from aclbroker.broker.handlers.changes import changed_token
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.stores import Origin
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from aclbroker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from aclbroker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from aclbroker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from aclbroker.turns import in_turns

_USER: Final = "User"
_DISABLED: Final = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
_NOT_ALLOWED: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
_NOT_ALLOWED_AT: Final = -1
"""The timestamp for a session that may not use tokens; in other refusals it is 0, as in Kafka."""
_CREATE: Final = "CREATE_DELEGATION_TOKEN"
_RENEW: Final = "RENEW_DELEGATION_TOKEN"
_EXPIRE: Final = "EXPIRE_DELEGATION_TOKEN"

Answer = TypeVar("Answer", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


def create(
    services: Services, rights: RequestRights, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Create a token for the requester, or for another owner if the gate has allowed that."""
    session = rights.context.session

    def refusal(code: ErrorCode, timestamp: int) -> CreateDelegationTokenResponse:
        services.audit.changed(rights.context, [changed_token(_CREATE, None, code)])
        return create_refusal(request, session, Denial(code, code.name), timestamp)

    if any(renewer.principal_type != _USER for renewer in in_turns(request.renewers)):
        return refusal(ErrorCode.INVALID_PRINCIPAL_TYPE, -1)
    tokens = _tokens(services)
    if tokens is None:
        return refusal(_DISABLED, 0)
    requester = session.principals[0]
    owner = token_owner(request) or requester
    renewers = [
        f"{each.principal_type}:{each.principal_name}" for each in in_turns(request.renewers)
    ]
    try:
        lifetime = request.max_lifetime_ms
        # What an access token says of its subject is known of nobody else.
        groups = session.claimed if owner == requester else ()
        origin = Origin.of(session)
        token = wait(tokens.create(owner, requester, renewers, lifetime, origin, groups))
    except TokenError as error:
        return refusal(error.code, 0)
    except NotStored:
        return refusal(ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    services.audit.changed(rights.context, [changed_token(_CREATE, token)])
    information = token.information
    return CreateDelegationTokenResponse(
        ErrorCode.NONE,
        *_principal(information.owner),
        *_principal(information.requester),
        information.issue_timestamp,
        information.expiry_timestamp,
        information.max_timestamp,
        token.token_id,
        token.hmac,
    )


def renew(
    services: Services, rights: RequestRights, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Extend the life of a token; only its owner and its renewers may."""
    session, period = rights.context.session, request.renew_period_ms
    return _changed(
        services,
        rights,
        RenewDelegationTokenResponse,
        request.hmac,
        lambda tokens: tokens.renew(
            request.hmac, session.principals[:1], period, Origin.of(session)
        ),
    )


def expire(
    services: Services, rights: RequestRights, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Shorten the life of a token or end it at once; only its owner and its renewers may."""
    session, period = rights.context.session, request.expiry_time_period_ms
    return _changed(
        services,
        rights,
        ExpireDelegationTokenResponse,
        request.hmac,
        lambda tokens: tokens.expire(
            request.hmac, session.principals[:1], period, Origin.of(session)
        ),
    )


def _changed(
    services: Services,
    rights: RequestRights,
    answer: type[Answer],
    hmac: bytes,
    change: Callable[[DelegationTokens], Awaitable[int]],
) -> Answer:
    """Change the token of an HMAC, and record that."""
    tokens = _tokens(services)
    before = tokens.of_hmac(hmac) if tokens is not None else None
    response = _answer(rights, tokens, answer, change)
    # A token that was removed is recorded as it was.
    token = (tokens and tokens.of_hmac(hmac)) or before
    action = _RENEW if answer is RenewDelegationTokenResponse else _EXPIRE
    code = ErrorCode(response.error_code)
    services.audit.changed(rights.context, [changed_token(action, token, code)])
    return response


def _answer(
    rights: RequestRights,
    tokens: DelegationTokens | None,
    answer: type[Answer],
    change: Callable[[DelegationTokens], Awaitable[int]],
) -> Answer:
    if not may_use_tokens(rights.context.session):
        return answer(_NOT_ALLOWED, _NOT_ALLOWED_AT)
    if tokens is None:
        return answer(_DISABLED)
    try:
        return answer(ErrorCode.NONE, wait(change(tokens)))
    except TokenError as error:
        return answer(error.code)
    except NotStored:
        return answer(ErrorCode.UNKNOWN_SERVER_ERROR)


def describe(
    services: Services, rights: RequestRights, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Show the tokens that the session may see, of the requested owners or of all."""
    if not may_use_tokens(rights.context.session):
        return DescribeDelegationTokenResponse(_NOT_ALLOWED)
    tokens = _tokens(services)
    if tokens is None:
        return DescribeDelegationTokenResponse(_DISABLED)
    # The rights come before the owners, because the time of a filter would reveal hidden tokens.
    found = _visible(rights, tokens.tokens())
    if request.owners is not None:
        owners = {
            f"{each.principal_type}:{each.principal_name}" for each in in_turns(request.owners)
        }
        found = [token for token in in_turns(found) if token.information.concerns(owners)]
    return DescribeDelegationTokenResponse(
        ErrorCode.NONE, [_described(token) for token in in_turns(found)]
    )


def _visible(rights: RequestRights, tokens: Sequence[DelegationToken]) -> list[DelegationToken]:
    """Return the tokens that the session may see.

    It sees those that concern its first principal, those on which it has DESCRIBE, and those of
    owners on whom it has DESCRIBE_TOKENS.
    """
    principals = rights.context.session.principals[:1]
    own = {token.token_id for token in in_turns(tokens) if token.information.concerns(principals)}
    others: Counter[str | None] = Counter(
        token.token_id for token in in_turns(tokens) if token.token_id not in own
    )
    shown = own | rights.allowed("show token", others)
    owners: Counter[str | None] = Counter(
        each.information.owner for each in in_turns(tokens) if each.token_id not in shown
    )
    described = rights.allowed("show owner", owners)
    return [
        token
        for token in in_turns(tokens)
        if token.token_id in shown or token.information.owner in described
    ]


def _described(token: DelegationToken) -> DescribedDelegationToken:
    information = token.information
    return DescribedDelegationToken(
        *_principal(information.owner),
        *_principal(information.requester),
        information.issue_timestamp,
        information.expiry_timestamp,
        information.max_timestamp,
        token.token_id,
        token.hmac,
        [
            DescribedDelegationTokenRenewer(*_principal(each))
            for each in in_turns(information.renewers)
        ],
    )


def _tokens(services: Services) -> DelegationTokens | None:
    return services.credentials.tokens if services.credentials is not None else None


def _principal(text: str) -> tuple[str, str]:
    principal_type, _, name = text.partition(":")
    return principal_type, name
