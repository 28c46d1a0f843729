"""SCRAM by RFC 5802, RFC 7677 and Kafka's ScramSaslServer."""

from __future__ import annotations

import hashlib
import hmac
import tracemalloc
from base64 import b64decode
from contextlib import suppress
from types import SimpleNamespace

import pytest
from aiokafka.conn import ScramAuthenticator
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity
from aclbroker.broker.auth.sasl.scram import ScramLogin, ScramServer
from aclbroker.broker.auth.sasl.scram_credentials import (
    ScramCredential,
    ScramMechanism,
    credential_from_json,
    credential_of_password,
    credential_of_salted_password,
)
from aclbroker.broker.auth.sasl.scram_decoys import Decoys
from tests.support.scram import ScramClient, attributes

SHA_256, SHA_512 = ScramMechanism
NAMES = [mechanism.mechanism_name for mechanism in ScramMechanism]
PASSWORDS = {"alice": "s\xe9cret", "a,b=c": "pencil", "bob": "x"}
FAILED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
)


class Users:
    """The users of `PASSWORDS`, and decoys of all others."""

    def __init__(self, mechanism: ScramMechanism, iterations: int = 4096) -> None:
        self._credentials = {
            name: credential_of_password(mechanism, password, iterations=iterations)
            for name, password in PASSWORDS.items()
        }
        self._decoys = Decoys(mechanism, b"a secret")
        self.asked: list[tuple[str, bool]] = []

    def look_up(self, name: str, is_token: bool) -> ScramLogin:
        self.asked.append((name, is_token))
        if name in self._credentials:
            return ScramLogin(self._credentials[name], Identity(name))
        return ScramLogin(self._decoys.of(name), None)


USERS = {mechanism: Users(mechanism) for mechanism in ScramMechanism}


def server_of(mechanism: ScramMechanism = SHA_256) -> ScramServer:
    return ScramServer(mechanism, USERS[mechanism].look_up)


def client_of(user: str = "alice", password: str | None = None, **options: str) -> ScramClient:
    return ScramClient("SCRAM-SHA-256", user, password or PASSWORDS.get(user, "x"), **options)


def log_in(server: ScramServer, client: ScramClient) -> bytes:
    return server.evaluate(client.final(server.evaluate(client.first())))


def assert_fails(server: ScramServer, message: bytes, text: str = FAILED) -> None:
    with pytest.raises(AuthenticationFailed, match=text):
        server.evaluate(message)
    assert server.identity is None
    with pytest.raises(AuthenticationFailed, match=FAILED):
        server.evaluate(b"n,,n=alice,r=again")
    assert server.identity is None


# Of RFC 5802, section 5, there is no server here: SHA-1 is not among Kafka's mechanisms.
SHA_1 = SimpleNamespace(
    mechanism_name="SCRAM-SHA-1",
    hash_name="sha1",
    hash=lambda data: hashlib.sha1(data).digest(),
    hmac=lambda key, data: hmac.digest(key, data, "sha1"),
)


@pytest.mark.parametrize(
    ("mechanism", "salt", "nonces", "proof", "signature"),
    [
        pytest.param(
            SHA_1,
            "QSXCR+Q6sek8bf92",
            ("fyko+d2lbbFgONRv9qkxdawL", "3rfcNHYJY1ZVvWVs7j"),
            "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            id="RFC 5802",
        ),
        pytest.param(
            SHA_256,
            "W22ZaJ0SNY7soEsUEjb6gQ==",
            ("rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"),
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            id="RFC 7677",
        ),
    ],
)
def test_the_example_of_the_rfc(mechanism, salt, nonces, proof, signature):
    credential = credential_of_password(mechanism, "pencil", b64decode(salt))
    look_up = {("user", False): ScramLogin(credential, Identity("user"))}
    server = ScramServer(mechanism, lambda *asked: look_up[asked], lambda: nonces[1])
    nonce = "".join(nonces)
    first = server.evaluate(f"n,,n=user,r={nonces[0]}".encode())
    assert first == f"r={nonce},s={salt},i=4096".encode()
    final = server.evaluate(f"c=biws,r={nonce},p={proof}".encode())
    assert final == f"v={signature}".encode()
    assert server.identity == Identity("user")


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", PASSWORDS)
def test_a_client_library_logs_in_and_is_convinced_of_the_server(mechanism, user):
    client = ScramAuthenticator(
        loop=None,
        sasl_plain_username=user,
        sasl_plain_password=PASSWORDS[user],
        sasl_mechanism=mechanism.mechanism_name,
    )
    server = server_of(mechanism)
    client.process_server_first_message(server.evaluate(client.first_message().encode()).decode())
    assert server.identity is None
    final = server.evaluate(client.final_message().encode())
    client.process_server_final_message(final.decode())
    assert server.identity == Identity(user)


def test_what_kafkas_tools_send_of_a_password_makes_the_credential_of_the_password():
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", b"salt", 8192)
    credential = credential_of_salted_password(SHA_512, salted, b"salt", 8192)
    assert credential == credential_of_password(SHA_512, "pencil", b"salt", 8192)


def test_a_password_gets_another_salt_each_time():
    one, other = (credential_of_password(SHA_256, "pencil") for _ in range(2))
    assert one.salt != other.salt
    assert one.stored_key != other.stored_key


@pytest.mark.parametrize("gs2_header", ["n,,", "n,a=alice,"])
def test_the_authorization_id_may_be_left_out_or_the_user_name(gs2_header):
    server, client = server_of(), client_of(gs2_header=gs2_header)
    assert client.is_server(log_in(server, client))
    assert server.identity == Identity("alice")


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_another_authorization_id_is_refused_whoever_asks(user):
    first = client_of(user, gs2_header="n,a=bob,").first()
    assert_fails(server_of(), first, "authorization id that is different from username")


@pytest.mark.parametrize("user", ["alice", "nobody", "a,b=c", "bob"])
@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_wrong_password_and_an_unknown_user_get_the_same_answers(mechanism, user):
    client = ScramClient(mechanism.mechanism_name, user, "wrong")
    server = server_of(mechanism)
    challenge = attributes(server.evaluate(client.first()))
    assert challenge.keys() == {"r", "s", "i"}
    assert challenge["i"] == "4096"
    assert 23 <= len(b64decode(challenge["s"])) <= 26
    final = client.final(",".join(f"{k}={v}" for k, v in challenge.items()).encode())
    assert_fails(server, final, f"{FAILED} {mechanism.mechanism_name}")


def test_a_login_without_an_identity_fails_even_with_the_right_proof():
    credential = credential_of_password(SHA_256, PASSWORDS["alice"])
    server = ScramServer(SHA_256, lambda *_: ScramLogin(credential, None))
    client = client_of()
    assert_fails(server, client.final(server.evaluate(client.first())))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,n=,r=x",
        b"n,,r=x,n=alice",
        b"n=alice,r=x",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"N,,n=alice,r=x",
        b"n,,m=must,n=alice,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=al=2cice,r=x",
        b"n,,n=alice,r=x y",
        b"n,,n=alice,r=x,",
        b"n,,n=alice,r=x,1=y",
        b"n,,n=alice,r=x,a=",
        b"n,,n=alice,r=x\n",
        b"n,,n=al\0ice,r=x",
        "n,,n=\xe9,r=x".encode(),
        b"n,,n=\xff,r=x",
        b"\0alice\0s\xc3\xa9cret",
        b"x" * 500_000,
    ],
)
def test_a_first_message_that_is_none_is_refused(message):
    users = Users(SHA_256)
    server = ScramServer(SHA_256, users.look_up)
    assert_fails(server, message)
    assert users.asked == []


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_no_message_does_more_than_fail(first, final):
    server = server_of()
    for message in (first, b"n,,n=alice,r=x" + first, b"n,,n=alice,r=x", final, final):
        with suppress(AuthenticationFailed):
            server.evaluate(message)
        assert server.identity is None


@pytest.mark.parametrize("name", ["=2C", "=3D", "a=2Cb", "=3D2C", "==", ",,", "=,=3D,"])
def test_a_name_that_looks_escaped_is_taken_as_it_was_meant(name):
    users = Users(SHA_256)
    server = ScramServer(SHA_256, users.look_up)
    server.evaluate(client_of(name).first())
    assert users.asked == [(name, False)]


@pytest.mark.parametrize(
    "parts",
    [
        (b"n,,n=", b"a"),
        (b"n,,n=", b"=2C"),
        (b"n,a=", b"a"),
        (b"n,,n=a,r=", b"x"),
        (b"n,,n=a,r=x", b",a=b"),
        (b"n,,n=a,r=x,", b"a"),
    ],
)
def test_a_long_message_takes_memory_of_its_own_size(parts):
    start, repeated = parts
    size = 500_000
    message = start + repeated * (size // len(repeated))
    for ending in (b"", b"\0", b",r=x"):
        tracemalloc.start()
        with suppress(AuthenticationFailed):
            server_of().evaluate(message + ending)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10 * size


@pytest.mark.parametrize(
    ("extensions", "is_token"),
    [
        ("", False),
        (",tokenauth=true", True),
        (",tokenauth=TRUE", True),
        (",tokenauth=false", False),
        (",tokenauth=true=", False),
        (",tokenauth=false,tokenauth=true", True),
        (",Tokenauth=true", False),
        (",tokenauth=true,tokenauth=false", False),
        (",xtokenauth=true", False),
        (",x=tokenauth=true", False),
        (",x=true,tokenauth=true,y=1=2", True),
    ],
)
def test_a_token_is_looked_up_where_the_extension_says_so(extensions, is_token):
    users = Users(SHA_256)
    server, client = ScramServer(SHA_256, users.look_up), client_of(extensions=extensions)
    assert client.is_server(log_in(server, client))
    assert users.asked == [("alice", is_token)]


def test_extensions_of_the_last_message_are_signed_too():
    server, client = server_of(), client_of()
    final = client.final(server.evaluate(client.first()), more=",x=1")
    assert client.is_server(server.evaluate(final))

    server, client = server_of(), client_of()
    final = client.final(server.evaluate(client.first()))
    assert_fails(server, final.replace(b",p=", b",x=1,p="))


def test_a_last_message_of_another_exchange_is_refused():
    overheard = client_of(nonce="n")
    first_server = server_of()
    final = overheard.final(first_server.evaluate(overheard.first()))
    first_server.evaluate(final)

    replayed = server_of()
    replayed.evaluate(overheard.first())
    assert_fails(replayed, final)


def test_servers_choose_their_own_nonces():
    nonces = {attributes(server_of().evaluate(b"n,,n=alice,r=x"))["r"] for _ in range(100)}
    assert len(nonces) == 100
    assert all(nonce.startswith("x") and len(nonce) > 20 for nonce in nonces)


@pytest.mark.parametrize("channel", ["", "y,,", "n,a=alice,", "p=tls-unique,,", "n,,x"])
def test_the_channel_binding_must_be_the_header_of_the_first_message(channel):
    server, client = server_of(), client_of()
    assert_fails(server, client.final(server.evaluate(client.first()), channel=channel))


@given(cut=st.integers(0, 200), at=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_damaged_last_message_is_refused(cut, at, byte):
    server, client = server_of(), client_of()
    final = client.final(server.evaluate(client.first()))
    damaged = bytearray(final)
    damaged[at % len(final)] = byte
    for message in (bytes(damaged), final[: cut % len(final)]):
        # A damage that leaves the same bytes, or the same proof in other padding bits, is none.
        if proof_of(message) == proof_of(final) and message[:-4] == final[:-4]:
            continue
        server = ScramServer(SHA_256, USERS[SHA_256].look_up, lambda: nonce_of(final))
        server.evaluate(client.first())
        assert_fails(server, message)


def proof_of(message: bytes) -> bytes | None:
    try:
        return b64decode(attributes(message)["p"], validate=True)
    except (KeyError, ValueError):
        return None


def nonce_of(final: bytes) -> str:
    nonce = attributes(final)["r"]
    return nonce[24:]


def test_a_login_that_is_over_takes_no_more():
    server, client = server_of(), client_of()
    log_in(server, client)
    with pytest.raises(AuthenticationFailed):
        server.evaluate(client.first())


def test_the_credential_of_the_first_message_counts_to_the_end():
    old = credential_of_password(SHA_256, "old")
    logins = [ScramLogin(old, Identity("alice"))]
    server = ScramServer(SHA_256, lambda *_: logins.pop())
    client = client_of(password="old")
    assert client.is_server(log_in(server, client))
    assert logins == []


def test_a_credential_is_a_text_in_a_store():
    credential = ScramCredential(b"\0salt", b"stored", b"server", 8192)
    assert credential_from_json(credential.to_json()) == credential


def test_a_credential_is_never_shown():
    credential = credential_of_password(SHA_256, "pencil")
    assert repr(credential) == str(credential) == "ScramCredential(hidden)"
    assert repr([ScramLogin(credential, None)]).count("hidden") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sesame",
        "[]",
        "{}",
        '{"salt": "c2VzYW1l", "stored_key": "AA==", "iterations": 4096}',
        '{"salt": "sesame!", "stored_key": "AA==", "server_key": "AA==", "iterations": 4096}',
        '{"salt": 1, "stored_key": "AA==", "server_key": "AA==", "iterations": 4096}',
        '{"salt": "AA==", "stored_key": "AA==", "server_key": "AA==", "iterations": "4096"}',
        '{"salt": "AA==", "stored_key": "AA==", "server_key": "AA==", "iterations": 4095}',
    ],
)
def test_a_text_that_is_no_credential_is_refused_and_not_shown(text):
    with pytest.raises(ValueError, match="not a SCRAM credential") as refused:
        credential_from_json(text)
    assert refused.value.__cause__ is None
    assert "sesame" not in str(refused.value)
