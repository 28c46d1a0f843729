"""Logging in over HTTP: passwords of PLAIN and SCRAM, tokens, and those that prove nothing."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from aclbroker.broker.credentials.scram_users import upsertion_of
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from tests.conftest import StartBroker
from tests.http_api.api import MDS, Answer, Api, basic
from tests.support.accounts import PLAIN_JAAS, properties_text
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import Client
from tests.support.process import wait_for

AUTHENTICATE = "/security/1.0/authenticate"
WHO = "/security/1.0/metadataClusterId"
SCRAM = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
}


def with_authorization(api: Api, text: str, path: str = WHO) -> Answer:
    return api.call("GET", path, header={"Authorization": text})


def token_key(directory: Path, kind: str = "EC") -> tuple[dict[str, str], Any]:
    """The settings of a key for tokens, and the key."""
    identity = Authority().issue("CN=tokens", kind=kind)
    path = directory / f"{kind}.pem"
    path.write_text(identity.key_pem())
    return {"confluent.metadata.server.token.key.path": str(path)}, identity.key


def claims(api: Api, **changed: Any) -> dict[str, Any]:
    """The claims of a token that admin gets, some of them changed."""
    answer = api.call("GET", AUTHENTICATE)
    found = jwt.decode(answer.value["auth_token"], options={"verify_signature": False})
    return {name: value for name, value in (found | changed).items() if value is not None}


@pytest.mark.parametrize(("kind", "algorithm"), [("EC", "ES256"), ("RSA", "RS256")])
def test_a_token_is_signed_with_the_key_of_the_file_and_good_after_a_restart(
    start_broker: StartBroker, tmp_path: Path, kind: str, algorithm: str
) -> None:
    setting, key = token_key(tmp_path, kind)
    broker = start_broker(MDS | setting)
    token = Api(broker).login().authorization or ""
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    found = jwt.decode(token.removeprefix("Bearer "), public, [algorithm])
    assert (found["sub"], found["iss"]) == ("admin", "aclbroker")
    broker.restart()
    assert with_authorization(Api(broker), token).status == 200


def test_tokens_end_with_a_process_that_has_no_key(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    token = Api(broker).login().authorization or ""
    assert with_authorization(Api(broker), token).status == 200
    broker.restart()
    assert with_authorization(Api(broker), token).status == 401


def test_a_token_that_proves_nothing_is_refused(start_broker: StartBroker, tmp_path: Path) -> None:
    setting, key = token_key(tmp_path)
    other = Authority().issue("CN=other")
    api = Api(start_broker(MDS | setting))
    now = int(time.time())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good = jwt.encode(claims(api), key, "ES256")
    header, body, signature = good.split(".")
    flipped = base64.urlsafe_b64encode(json.dumps(claims(api, sub="alice")).encode()).decode()
    wrong = {
        "alg none": jwt.encode(claims(api), "", "none"),
        "another key": jwt.encode(claims(api), other.key_pem(), "ES256"),
        # The public key taken for a secret, which a careless verifier would accept.
        "HS256 with the public key": _signed_with_hmac(claims(api), public),
        "expired": jwt.encode(claims(api, exp=now - 1), key, "ES256"),
        "without an end": jwt.encode(claims(api, exp=None), key, "ES256"),
        "an end that is no number": jwt.encode(claims(api, exp="x"), key, "ES256"),
        "another issuer": jwt.encode(claims(api, iss="somebody"), key, "ES256"),
        "without a user": jwt.encode(claims(api, sub=None), key, "ES256"),
        "a user that is not there": jwt.encode(claims(api, sub="zed"), key, "ES256"),
        "a listener that is not there": jwt.encode(claims(api, listener="X"), key, "ES256"),
        "a mechanism that is not there": jwt.encode(claims(api, mechanism="GSSAPI"), key, "ES256"),
        "other claims": f"{header}.{flipped.rstrip('=')}.{signature}",
        "no signature": f"{header}.{body}.",
        "two parts": f"{header}.{body}",
        "nothing": "",
        "no token": "x" * 5_000,
        "a long one": "x" * 8_000,
    }
    assert with_authorization(api, f"Bearer {good}").status == 200
    for name, token in wrong.items():
        answer = with_authorization(api, f"Bearer {token}")
        assert answer.status == 401, name
        assert answer.value["type"] == "UNAUTHENTICATED"
    # A token is no password: it gives no other.
    assert with_authorization(api, f"Bearer {good}", AUTHENTICATE).status == 401


def _signed_with_hmac(values: dict[str, Any], secret: bytes) -> str:
    import hashlib
    import hmac

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    signed = head + b"." + part(json.dumps(values).encode())
    return (signed + b"." + part(hmac.digest(secret, signed, hashlib.sha256))).decode()


def test_who_has_no_password_or_a_wrong_one_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    api = Api(broker)
    good = basic("alice", "alice-secret")
    assert with_authorization(api, good).status == 200
    assert with_authorization(api, good.replace("Basic", "bAsIc")).status == 200
    wrong = [
        basic("alice", "admin-secret"),
        basic("alice", ""),
        basic("", "alice-secret"),
        basic("alice\0alice", "alice-secret"),
        basic("zed", "alice-secret"),
        "Basic " + base64.b64encode(b"alice").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        "Basic !",
        "Basic",
        "Digest alice",
        "",
    ]
    for each in wrong:
        for path in (WHO, AUTHENTICATE):
            answer = with_authorization(api, each, path)
            assert answer.status == 401, each
            assert "Basic" in answer.header["WWW-Authenticate"]
    nobody = Api(broker, user=None)
    assert nobody.call("GET", WHO).status == 401
    failed = [each for each in broker.events() if each["event"] == "authentication failed"]
    assert failed
    assert "secret" not in broker.new_log_text()


def alter(broker: Broker, request: AlterUserScramCredentialsRequest) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        answer = client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert [each.error_code for each in answer.results] == [0], answer


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_of_scram_log_in_with_their_passwords_until_they_are_removed(
    start_broker: StartBroker, mechanism: str
) -> None:
    broker = start_broker(MDS | SCRAM | {"super.users": "User:ANONYMOUS;User:dave"})
    change = upsertion_of("dave", "dave-secret", mechanism, 4096)
    alter(broker, AlterUserScramCredentialsRequest([], [change]))
    api = Api(broker)
    api.authorization = basic("dave", "dave-secret")
    assert api.create("ALLOW User:a READ TOPIC:LITERAL:t from *").status == 204
    api.login()
    assert api.call("GET", WHO).status == 200
    assert with_authorization(api, basic("dave", "wrong")).status == 401
    assert with_authorization(api, basic("erin", "dave-secret")).status == 401
    deletion = ScramCredentialDeletion("dave", change.mechanism)
    alter(broker, AlterUserScramCredentialsRequest([deletion], []))
    assert api.call("GET", WHO).status == 401
    assert with_authorization(api, basic("dave", "dave-secret")).status == 401


def test_a_user_that_is_removed_has_no_valid_token_any_more(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    bob = Api(broker, "bob").login()
    assert bob.call("GET", WHO).status == 200
    without = PLAIN_JAAS.replace('user_bob="bob-secret"', "")
    broker.properties["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = without
    (broker.directory / "server.properties").write_text(properties_text(broker.properties))
    broker.hang_up()
    reloaded = "configuration reloaded"
    wait_for("reload", lambda: True if broker.told(reloaded)[0] else None, 10)
    assert bob.call("GET", WHO).status == 401
    assert Api(broker, "alice").call("GET", WHO).status == 200


def test_groups_of_a_user_count_over_http(start_broker: StartBroker, tmp_path: Path) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text("version: 1\ngroups: {admins: [User:alice]}\n")
    broker = start_broker(MDS | {"aclbroker.groups.file": str(file)})
    admin, alice = Api(broker), Api(broker, "alice").login()
    acl = "ALLOW Group:admins DESCRIBE CLUSTER:LITERAL:kafka-cluster from *"
    assert admin.create(acl).status == 204
    assert alice.search() == [acl]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("weak RSA", "1024 bits"),
        ("Ed25519", "neither RSA nor on one of"),
        ("none", "no private key"),
    ],
)
def test_a_key_that_cannot_sign_stops_the_start(
    start_broker: StartBroker, tmp_path: Path, kind: str, said: str
) -> None:
    path = tmp_path / "key.pem"
    path.write_text("x" if kind == "none" else Authority().issue("CN=x", kind=kind).key_pem())
    setting = "confluent.metadata.server.token.key.path"
    with pytest.raises(RuntimeError, match=said) as failed:
        start_broker(MDS | {setting: str(path)})
    assert setting in str(failed.value)
