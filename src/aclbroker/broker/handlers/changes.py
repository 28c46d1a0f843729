"""What was changed, for the audit log: made of a request and of how it ended, or of what is done
without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from aclbroker.acl.authorizer import AclCreateResult, AclDeleteResult
from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.credentials import DelegationToken
from aclbroker.broker.credentials.scram_users import Outcome
from aclbroker.broker.observability.audit_changes import Change
from aclbroker.broker.observability.audit_record import MOST_OF_PRINCIPAL
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)

_MECHANISMS: Final = {mechanism.value: mechanism.mechanism_name for mechanism in ScramMechanism}

_CODES: Final = {int(code): code.name for code in ErrorCode}
_MOST_RENEWERS: Final = 10


def created_acls(
    bindings: Sequence[AclBinding], results: Sequence[AclCreateResult]
) -> Iterator[Change]:
    """Return a change for each creation."""
    for binding, result in zip(bindings, results, strict=False):
        error, message = _ended(result.error_code, result.error_message)
        yield Change("CREATE_ACL", {"acl": binding}, error, message)


def first_acls(bindings: Iterable[AclBinding]) -> Iterator[Change]:
    """Return a change for each ACL that a new store begins with."""
    return (Change("CREATE_ACL", {"acl": binding}) for binding in bindings)


def migrated_acls(created: Iterable[AclBinding], deleted: Iterable[AclBinding]) -> Iterator[Change]:
    """Return a change for each ACL that a migration created, and that it deleted."""
    for acls, action in ((created, "CREATE_ACL"), (deleted, "DELETE_ACL")):
        for acl in acls:
            yield Change(action, {"acl": acl})


def deleted_acls(
    filters: Sequence[AclFilter], results: Sequence[AclDeleteResult]
) -> Iterator[Change]:
    """Return a change for each ACL that was deleted, once, and for each filter that failed."""
    told: set[AclBinding] = set()
    for acl_filter, result in zip(filters, results, strict=False):
        if result.error_code:
            error, message = _ended(result.error_code, result.error_message)
            yield Change("DELETE_ACL", {"acl_filter": acl_filter}, error, message)
        for binding in result.bindings:
            if binding not in told:
                told.add(binding)
                yield Change("DELETE_ACL", {"acl": binding})


def altered_scram_users(
    request: AlterUserScramCredentialsRequest, outcomes: Mapping[str, Outcome]
) -> Iterator[Change]:
    """Return a change for each credential that was to be removed or set, without its keys."""
    for deletion in request.deletions:
        user = {"name": deletion.name, "mechanism": _mechanism(deletion.mechanism)}
        yield _altered("DELETE_SCRAM_CREDENTIAL", user, outcomes[deletion.name])
    for upsertion in request.upsertions:
        user = {"name": upsertion.name, "mechanism": _mechanism(upsertion.mechanism)}
        keys = user | {"iterations": upsertion.iterations}
        yield _altered("UPSERT_SCRAM_CREDENTIAL", keys, outcomes[upsertion.name])


def expired_tokens(tokens: Iterable[DelegationToken]) -> Iterator[Change]:
    """Return a change for each token that was removed since it had expired."""
    return (changed_token("REMOVE_EXPIRED_DELEGATION_TOKEN", token) for token in tokens)


def changed_token(
    action: str, token: DelegationToken | None, error: ErrorCode = ErrorCode.NONE
) -> Change:
    """Return the change of a delegation token, without its HMAC; None if there is no such token."""
    keys: dict[str, Any] = {"token_id": None}
    if token is not None:
        information = token.information
        keys = {
            "token_id": token.token_id,
            "owner": information.owner,
            "requester": information.requester,
            "renewers": [
                each[:MOST_OF_PRINCIPAL] for each in information.renewers[:_MOST_RENEWERS]
            ],
            "renewers_count": len(information.renewers),
            "expiry_timestamp": information.expiry_timestamp,
            "max_timestamp": information.max_timestamp,
        }
    return Change(action, {"token": keys}, error.name)


def _altered(action: str, user: Mapping[str, Any], outcome: Outcome) -> Change:
    return Change(action, {"user": user}, *_ended(*outcome))


def _mechanism(code: int) -> str:
    return _MECHANISMS.get(code, f"unknown ({code})")


def _ended(code: int, message: str | None) -> tuple[str, str | None]:
    # An authorizer of one's own may have codes that this broker does not use itself.
    return _CODES.get(code) or str(code), message or None
