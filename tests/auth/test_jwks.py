"""Which keys of a JWK set are used."""

import json
from typing import Any

import pytest

from aclbroker.broker.auth.sasl.jwks import JwksError, parse_jwks
from tests.support.access_tokens import ec_key, ed25519_key, jwks, rsa_key

RSA = rsa_key("rsa")


def ignored(**members: Any) -> str:
    """Why a key with these members is not used, beside one that is."""
    made = parse_jwks(jwks(RSA.jwk(**members), ec_key("p256")).encode())
    assert [key.key_id for key in made.keys] == ["p256"]
    [reason] = made.ignored
    return reason.removeprefix("key 1: ")


def test_keys_verify_what_their_type_and_curve_allow() -> None:
    text = jwks(RSA, ec_key("p521", 521), ed25519_key("ed"), RSA.jwk(alg="PS384", kid="ps"))
    assert [(key.key_id, key.algorithms) for key in parse_jwks(text.encode()).keys] == [
        ("rsa", ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        ("p521", ("ES512",)),
        ("ed", ("EdDSA",)),
        ("ps", ("PS384",)),
    ]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"use": "enc"}, "its use is not sig"),
        ({"key_ops": ["encrypt"]}, "its key_ops lack verify"),
        ({"key_ops": "verify"}, "its key_ops lack verify"),
        ({"alg": "RSA-OAEP"}, "its alg is not a signature algorithm of its kty and crv"),
        ({"alg": "HS256"}, "its alg is not a signature algorithm of its kty and crv"),
        ({"alg": "ES256"}, "its alg is not a signature algorithm of its kty and crv"),
        ({"kty": "oct", "k": "c2VjcmV0"}, "its kty and crv are not those of a key for signatures"),
        ({"kty": "EC"}, "its kty and crv are not those of a key for signatures"),
        ({"crv": "P-256"}, "its kty and crv are not those of a key for signatures"),
        ({"kty": None}, "its kty and crv are not those of a key for signatures"),
        ({"kid": 7}, "its kid is not a string"),
        ({"n": "!"}, "it cannot be read"),
        ({"n": None}, "it cannot be read"),
        ({"e": "AA"}, "it cannot be read"),
    ],
)
def test_a_key_that_cannot_verify_signatures_does_not_spoil_the_others(
    members: dict[str, Any], reason: str
) -> None:
    assert ignored(**members) == reason


def test_a_short_rsa_key_is_not_used() -> None:
    made = parse_jwks(jwks(rsa_key("short", 1024)).encode())
    assert made.keys == ()
    assert made.ignored == ("key 1: an RSA key must have 2048 bits (RFC 7518 section 3.3)",)


def test_nothing_of_a_private_key_that_was_published_is_taken_in() -> None:
    [key] = parse_jwks(jwks(RSA.jwk(d="AQAB", p="AQAB", q="AQAB")).encode()).keys
    assert not hasattr(key.public_key, "private_numbers")


def test_entries_that_are_no_keys_are_ignored() -> None:
    made = parse_jwks(json.dumps({"keys": [5, None, "x", []]}).encode())
    assert made.keys == ()
    assert len(made.ignored) == 4


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "5", '{"keys": 5}', '{"keys": null}', "{", '{"keys":' * 50_000]
)
def test_what_is_no_jwk_set_is_refused(text: str) -> None:
    with pytest.raises(JwksError, match="keys"):
        parse_jwks(text.encode())


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(JwksError, match="keys"):
        parse_jwks(b"\xff")
