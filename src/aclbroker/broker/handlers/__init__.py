"""The requests that this broker answers itself, whatever backend stands behind the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.handlers import acls, describe_acls, scram, session, tokens
from aclbroker.broker.handlers.services import Handler
from aclbroker.protocol.messages import ApiKey

ANSWERED_HERE: Final[Mapping[int, Handler]] = {
    ApiKey.SASL_HANDSHAKE: session.sasl_handshake,
    ApiKey.API_VERSIONS: session.api_versions,
    ApiKey.DESCRIBE_ACLS: describe_acls.describe_acls,
    ApiKey.CREATE_ACLS: acls.create_acls,
    ApiKey.DELETE_ACLS: acls.delete_acls,
    ApiKey.SASL_AUTHENTICATE: session.sasl_authenticate,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.create,
    ApiKey.RENEW_DELEGATION_TOKEN: tokens.renew,
    ApiKey.EXPIRE_DELEGATION_TOKEN: tokens.expire,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: scram.describe,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: scram.alter,
}
"""The handler of each API key that concerns ACLs, SCRAM users, delegation tokens or logins."""
