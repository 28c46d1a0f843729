"""SCRAM to a client: brokers that do not know its password, or ask for what is no SCRAM."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

import pytest

from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.client.errors import AuthenticationRefused
from aclbroker.broker.client.sasl.scram import ScramClient

SALT = b64encode(b"a grain of salt").decode()


@pytest.fixture
def client() -> ScramClient:
    return ScramClient(ScramMechanism.SCRAM_SHA_256, "a=b,c", "secret")


def nonce(client: ScramClient) -> str:
    return client.first().decode().partition("r=")[2]


def test_a_name_is_escaped(client: ScramClient) -> None:
    assert client.first().startswith(b"n,,n=a=3Db=2Cc,r=")


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        ("r={nonce}more,s=" + SALT + ",i=4095", "4095 iterations; allowed: 4096 to 10000000"),
        ("r={nonce}more,s=" + SALT + ",i=10000001", "10000001 iterations"),
        ("r={nonce}more,s=AAA,i=4096", "no SCRAM challenge"),
        ("r={nonce}more,s==,i=4096", "no SCRAM challenge"),
        ("r={nonce}more,s=" + SALT + ",i=many", "no SCRAM challenge"),
        ("r=another,s=" + SALT + ",i=4096", "no SCRAM challenge"),
        ("m=must,r={nonce}more,s=" + SALT + ",i=4096", "no SCRAM challenge"),
        ("", "no SCRAM challenge"),
        ("\udcff", "no SCRAM challenge"),
    ],
)
def test_a_challenge_that_is_none_is_refused(
    client: ScramClient, challenge: str, reason: str
) -> None:
    text = challenge.replace("{nonce}", nonce(client))
    with pytest.raises(AuthenticationRefused, match=reason):
        client.answer(text.encode(errors="surrogateescape"))


@pytest.mark.parametrize("final", [b"", b"v=", b"v=" + b64encode(bytes(32)), b"e=other-error"])
def test_who_does_not_prove_to_know_the_password_is_refused(
    client: ScramClient, final: bytes
) -> None:
    proof = client.answer(f"r={nonce(client)}more,s={SALT},i=4096".encode())
    assert proof is not None
    with pytest.raises(AuthenticationRefused, match="did not prove"):
        client.answer(final)


def test_who_knows_the_password_is_believed(client: ScramClient) -> None:
    first = client.first().decode().removeprefix("n,,")
    challenge = f"r={nonce(client)}more,s={SALT},i=4096"
    proof = client.answer(challenge.encode())
    assert proof is not None
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"a grain of salt", 4096)
    key = hmac.digest(salted, b"Server Key", "sha256")
    message = f"{first},{challenge},{proof.decode().rpartition(',')[0]}"
    signature = hmac.digest(key, message.encode(), "sha256")
    assert client.answer(b"v=" + b64encode(signature) + b",more=x") is None
