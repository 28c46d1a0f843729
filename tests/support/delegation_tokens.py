"""Delegation tokens as clients of a broker ask for them and log in with them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from aclbroker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from aclbroker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from aclbroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.client import Client

KEY = "the secret key of all tokens"
TOKENS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS.replace(
        ";", ' user_carol="carol-secret";'
    ),
    "delegation.token.secret.key": KEY,
}
"""The part of server.properties that lets users have tokens: those of `PASSWORDS`, and carol."""


class Users:
    """Connections of users that have logged in with PLAIN, made when first needed."""

    def __init__(self, broker: Broker) -> None:
        self._address = broker.listeners["SASL_PLAINTEXT"]
        self._clients: dict[str, Client] = {}

    def __getitem__(self, user: str) -> Client:
        if user not in self._clients:
            client = self._clients[user] = Client(self._address)
            password = PASSWORDS.get(user, f"{user}-secret")
            assert client.login(user, password).error_code == 0
        return self._clients[user]

    def with_token(self, token: Any, mechanism: str = "SCRAM-SHA-512") -> tuple[Client, Any]:
        """A connection that tried to log in with a token, and the last answer."""
        client = Client(self._address)
        self._clients[f"token {len(self._clients)}"] = client
        password = b64encode(token.hmac).decode()
        extension = ",tokenauth=true"
        return client, client.login_scram(token.token_id, password, mechanism, extension)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def create(
    client: Client,
    *renewers: str,
    owner: str | None = None,
    lifetime: int = -1,
    version: int = 3,
    renewer_type: str = "User",
) -> Any:
    request = CreateDelegationTokenRequest(
        "User" if owner else None,
        owner,
        [CreatableRenewers(renewer_type, name) for name in renewers],
        lifetime,
    )
    return client.ask(ApiKey.CREATE_DELEGATION_TOKEN, version, request)


def renew(client: Client, token: Any, period: int = -1) -> Any:
    request = RenewDelegationTokenRequest(token.hmac, period)
    return client.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, request)


def expire(client: Client, token: Any, period: int = -1) -> Any:
    request = ExpireDelegationTokenRequest(token.hmac, period)
    return client.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request)


def describe(client: Client, owners: list[str] | None = None, version: int = 3) -> Any:
    named = None
    if owners is not None:
        named = [DescribeDelegationTokenOwner("User", owner) for owner in owners]
    request = DescribeDelegationTokenRequest(named)
    return client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, version, request)


def described(client: Client, owners: list[str] | None = None) -> list[Any]:
    response = describe(client, owners)
    assert response.error_code == 0
    return list(response.tokens)


def ids(client: Client, owners: list[str] | None = None) -> set[str]:
    return {token.token_id for token in described(client, owners)}
