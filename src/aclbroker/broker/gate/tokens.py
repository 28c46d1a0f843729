"""The rules of delegation tokens (KIP-48, KIP-373), which also depend on how the user logged in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aclbroker.acl.authorizer import Session
from aclbroker.broker.auth.principals import ANONYMOUS
from aclbroker.broker.gate.conditions import is_for_another, token_owner
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.engine import Verdict, refused, unchanged, whole_denial
from aclbroker.broker.gate.need import Whole
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.create_delegation_token import CreateDelegationTokenResponse

NOT_ALLOWED: Final = Denial(
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    "Delegation tokens are for sessions that are authenticated, and not by a token.",
)

NO_TYPE: Final = Denial(
    ErrorCode.INVALID_PRINCIPAL_TYPE, "The owner has a name and no principal type."
)


def may_use_tokens(session: Session) -> bool:
    """Return whether a session may use the APIs of delegation tokens at all.

    It must have authenticated, and not with a token, as in Kafka's KafkaApis.allowTokenRequests.
    """
    is_anonymous = session.security_protocol == "PLAINTEXT" or (
        session.security_protocol == "SSL" and ANONYMOUS in session.principals
    )
    return not is_anonymous and not session.token_authenticated


def owner(request: Any) -> Iterable[str | None]:
    """Return the owner of the token that a request asks for."""
    return [token_owner(request)]


def check_create(request: Any, rights: RequestRights, _topics: Topics) -> Verdict:
    """Check CREATE_TOKENS on the owner if the token is for another user (KIP-373)."""
    session = rights.context.session
    if not may_use_tokens(session):
        return refused(create_refusal(request, session, NOT_ALLOWED))
    if request.owner_principal_name and request.owner_principal_type is None:
        return refused(create_refusal(request, session, NO_TYPE))
    need = rights.need("create")
    if isinstance(need, Whole) and is_for_another(request, rights.context):
        why = whole_denial(need, request, rights)
        if why is not None:
            return refused(create_refusal(request, session, why))
    return Verdict(request, None, unchanged)


def create_refusal(
    request: Any, session: Session, denial: Denial, timestamp: int = -1
) -> CreateDelegationTokenResponse:
    """Refuse to create a token; as in Kafka, the answer names the owner and the requester."""
    requester_type, _, requester = session.principals[0].partition(":")
    owner_type, _, owner_name = (token_owner(request) or session.principals[0]).partition(":")
    return CreateDelegationTokenResponse(
        denial.code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp_ms=timestamp,
        expiry_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
    )
