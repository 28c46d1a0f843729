"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554), as Kafka 4.3 answers."""

from __future__ import annotations

from collections import Counter
from typing import Final

from aclbroker.broker.credentials import ScramUsers
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.refusals import refuse_alter_scram_credentials
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.changes import altered_scram_users
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.stores import Origin
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from aclbroker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from aclbroker.turns import in_turns

_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_MISSING: Final = "Attempt to describe a user credential that does not exist: "
# On success Kafka sends an empty error message, not null.
_NO_ERROR: Final = ""
_NOT_KEPT: Final = Denial(
    ErrorCode.POLICY_VIOLATION,
    "This broker keeps no credentials: it has no store, since its authorizer has none and no "
    "listener offers SCRAM.",
)


def describe(
    services: Services, _rights: RequestRights, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Answer with the mechanisms and iterations of the users asked for, or of all; no keys."""
    users = services.credentials.users if services.credentials else None
    asked = Counter(user.name for user in in_turns(request.users or ()))
    names = asked or Counter(users.users() if users else ())
    return DescribeUserScramCredentialsResponse(
        error_message=_NO_ERROR,
        results=[_described(users, name, count) for name, count in in_turns(names.items())],
    )


def _described(
    users: ScramUsers | None, name: str, count: int
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, _TWICE + shown_name(name)
        return DescribeUserScramCredentialsResult(name, code, message)
    found = users.iterations(name) if users else {}
    if not found:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, _MISSING + shown_name(name)
        return DescribeUserScramCredentialsResult(name, code, message)
    infos = [CredentialInfo(mechanism.value, iterations) for mechanism, iterations in found.items()]
    return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, _NO_ERROR, infos)


def alter(
    services: Services, rights: RequestRights, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change credentials and return one result for each user, once the changes are on disk."""
    if services.credentials is None:
        return refuse_alter_scram_credentials(request, _NOT_KEPT)
    users, origin = services.credentials.users, Origin.of(rights.context.session)
    outcomes = wait(users.alter(request.deletions, request.upsertions, origin))
    services.audit.changed(rights.context, altered_scram_users(request, outcomes))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user, *outcome)
            for user, outcome in in_turns(outcomes.items())
        ]
    )
