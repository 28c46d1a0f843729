"""Delegation tokens and SCRAM credentials, of which there are none yet."""

from __future__ import annotations

from typing import Any

from broker.gate.may import May
from broker.gate.tokens import create_refusal, may_use_tokens
from broker.handlers.answers import because
from broker.handlers.services import Services
from protocol.errors import ErrorCode
from protocol.messages import APIS
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def disabled(_services: Services, may: May, _request: Any) -> Any:
    """Answer that there are no tokens; to an unauthenticated session, that it may not ask."""
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if may_use_tokens(may.context.session):
        code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return APIS[may.context.api_key].response(error_code=code)


def create_disabled(_services: Services, may: May, request: Any) -> Any:
    """Answer the same to a request for a new token."""
    why = because(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return create_refusal(request, may.context.session, why)


def describe_scram(
    _services: Services, _may: May, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Answer that none of the users has SCRAM credentials."""
    return DescribeUserScramCredentialsResponse(
        results=[
            DescribeUserScramCredentialsResult(
                user.name, ErrorCode.RESOURCE_NOT_FOUND, "The user has no SCRAM credentials."
            )
            for user in request.users or ()
        ]
    )
