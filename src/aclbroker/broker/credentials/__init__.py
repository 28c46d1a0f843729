"""Credentials that a store keeps: SCRAM credentials of users, and delegation tokens."""

from aclbroker.broker.credentials.changes import NotStored
from aclbroker.broker.credentials.credentials import Credentials, load_credentials
from aclbroker.broker.credentials.delegation_tokens import (
    DelegationToken,
    DelegationTokens,
    TokenError,
    TokenSettings,
)
from aclbroker.broker.credentials.scram_users import ScramUsers

__all__ = [
    "Credentials",
    "DelegationToken",
    "DelegationTokens",
    "NotStored",
    "ScramUsers",
    "TokenError",
    "TokenSettings",
    "load_credentials",
]
