"""Cases of ACLs, delegation tokens, client quotas, SCRAM credentials, SASL and ApiVersions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.conformance.case import Case
from aclbroker.conformance.resources import NOBODY, PREFIX, SOMEBODY
from aclbroker.protocol.messages import (
    ApiKey,
    alter_client_quotas,
    alter_user_scram_credentials,
    api_versions,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_delegation_token,
    describe_user_scram_credentials,
    expire_delegation_token,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
)

_NOBODYS_ACL: Final = AclBinding(
    ResourceType.TOPIC,
    f"{PREFIX}acl",
    PatternType.LITERAL,
    f"User:{NOBODY}",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
_SCRAM_SHA_256: Final = 1
_EXACT, _DEFAULT, _ANY = 0, 1, 2


def cases() -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    yield Case(ApiKey.API_VERSIONS, "asked", api_versions.ApiVersionsRequest("suite", "1"))
    yield Case(ApiKey.SASL_HANDSHAKE, "again", sasl_handshake.SaslHandshakeRequest("PLAIN"))
    yield Case(ApiKey.SASL_AUTHENTICATE, "again", sasl_authenticate.SaslAuthenticateRequest(b""))
    yield from _acls()
    yield from _tokens()
    yield from _quotas()
    yield from _scram()


def _acls() -> Iterator[Case]:
    one = _creation()
    matching = delete_acls.DeleteAclsFilter(*_NOBODYS_ACL)
    yield Case(ApiKey.DESCRIBE_ACLS, "of nobody", describe_acls.DescribeAclsRequest(*_NOBODYS_ACL))
    lists = {
        "two and a bad one": [one, _creation(resource_name=""), one],
        "one of any operation": [one, _creation(operation=AclOperation.ANY), one],
        "one of an unknown operation": [one, _creation(operation=AclOperation.UNKNOWN), one],
        "an empty list": [],
    }
    for label, creations in lists.items():
        yield Case(ApiKey.CREATE_ACLS, label, create_acls.CreateAclsRequest(creations))
    yield Case(ApiKey.DELETE_ACLS, "of nobody", delete_acls.DeleteAclsRequest([matching, matching]))
    yield Case(ApiKey.DELETE_ACLS, "an empty list", delete_acls.DeleteAclsRequest([]))
    unknown = dataclasses.replace(matching, operation=AclOperation.UNKNOWN)
    yield Case(
        ApiKey.DELETE_ACLS,
        "one of an unknown operation",
        delete_acls.DeleteAclsRequest([matching, unknown]),
    )


def _creation(**changes: Any) -> create_acls.AclCreation:
    return dataclasses.replace(create_acls.AclCreation(*_NOBODYS_ACL), **changes)


def _tokens() -> Iterator[Case]:
    for label, owner in (
        ("for oneself", None),
        ("for nobody", NOBODY),
        ("for somebody", SOMEBODY),
    ):
        yield Case(
            ApiKey.CREATE_DELEGATION_TOKEN,
            label,
            create_delegation_token.CreateDelegationTokenRequest(
                owner_principal_type=owner and "User",
                owner_principal_name=owner,
                renewers=[],
                max_lifetime_ms=60_000,
            ),
            "3+" if owner else "0+",
        )
    yield Case(
        ApiKey.RENEW_DELEGATION_TOKEN,
        "that is unknown",
        renew_delegation_token.RenewDelegationTokenRequest(b"unknown", 60_000),
    )
    yield Case(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        "that is unknown",
        expire_delegation_token.ExpireDelegationTokenRequest(b"unknown", 60_000),
    )
    owner_of = describe_delegation_token.DescribeDelegationTokenOwner
    for label, owners in (
        ("of all owners", None),
        ("of two users", [owner_of("User", NOBODY), owner_of("User", SOMEBODY)]),
        ("of no owner", []),
    ):
        yield Case(
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            label,
            describe_delegation_token.DescribeDelegationTokenRequest(owners),
        )


def _quotas() -> Iterator[Case]:
    m, altered = describe_client_quotas, alter_client_quotas
    user = m.ComponentData("user", _EXACT, NOBODY)
    yield Case(
        ApiKey.DESCRIBE_CLIENT_QUOTAS, "of a user", m.DescribeClientQuotasRequest([user], True)
    )
    entity = altered.EntityData("user", NOBODY)
    clients = altered.EntityData("client-id", None)
    rate = altered.OpData("producer_byte_rate", 1024.0, False)
    yield Case(
        ApiKey.ALTER_CLIENT_QUOTAS,
        "of a user and of clients",
        altered.AlterClientQuotasRequest(
            [
                altered.RequestEntryData([entity], [rate]),
                altered.RequestEntryData([clients], [rate]),
            ],
            validate_only=True,
        ),
    )
    yield Case(
        ApiKey.ALTER_CLIENT_QUOTAS, "an empty list", altered.AlterClientQuotasRequest([], True)
    )


def _scram() -> Iterator[Case]:
    described, altered = describe_user_scram_credentials, alter_user_scram_credentials
    yield Case(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "of a user",
        described.DescribeUserScramCredentialsRequest([described.UserName(NOBODY)]),
    )
    yield Case(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        "of an empty list",
        described.DescribeUserScramCredentialsRequest([]),
    )
    # Neither change takes effect: one has too few iterations, the other deletes what is not there.
    upsertion = altered.ScramCredentialUpsertion(NOBODY, _SCRAM_SHA_256, 1, b"salt", b"password")
    deletion = altered.ScramCredentialDeletion(f"{NOBODY}-2", _SCRAM_SHA_256)
    yield Case(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        "refused for what they are",
        altered.AlterUserScramCredentialsRequest([deletion], [upsertion]),
    )
