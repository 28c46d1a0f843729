"""What clients log in with and a store keeps: SCRAM credentials of users, delegation tokens."""

from broker.credentials.changes import NotStored
from broker.credentials.credentials import Credentials, load_credentials
from broker.credentials.delegation_tokens import (
    DelegationToken,
    DelegationTokens,
    TokenError,
    TokenSettings,
)
from broker.credentials.scram_users import ScramUsers

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
