"""Which access tokens are taken, and what is known of their bearer."""

import json
from typing import Any

import pytest

from aclbroker.broker.auth.sasl.access_token import InvalidToken, TokenRules, TokenValidator
from aclbroker.broker.auth.sasl.jwks import KeySet, parse_jwks
from tests.support import access_tokens as tokens
from tests.support.access_tokens import Key, claims, compact, ec_key, ed25519_key, rsa_key, token

NOW = 1_800_000_000
RSA, OTHER_RSA = rsa_key("rsa"), rsa_key("other-rsa")
P256, P384, P521 = ec_key("p256"), ec_key("p384", 384), ec_key("p521", 521)
ED25519 = ed25519_key("ed25519")


class Keys:
    """A JWK set that does not change, and the keys that were missed in it."""

    def __init__(self, *keys: Key | dict[str, Any]) -> None:
        self.key_set = parse_jwks(tokens.jwks(*keys).encode())
        self.missed: list[str] = []

    def keys(self) -> KeySet:
        return self.key_set

    def missing(self, key_id: str) -> None:
        self.missed.append(key_id)


ALL_KEYS = Keys(RSA, P256, P384, P521, ED25519, OTHER_RSA)
RULES = TokenRules(tokens.ISSUER, frozenset({"elsewhere", tokens.AUDIENCE}))


def validator(keys: Keys = ALL_KEYS, rules: TokenRules = RULES) -> TokenValidator:
    return TokenValidator(rules, keys, clock=lambda: NOW + 0.75)


def payload(**changes: Any) -> dict[str, Any]:
    """Claims that are good at `NOW`."""
    return claims(**({"iat": NOW, "exp": NOW + 300} | changes))


def refusal(access_token: str, keys: Keys = ALL_KEYS, rules: TokenRules = RULES) -> str:
    with pytest.raises(InvalidToken) as refused:
        validator(keys, rules).validate(access_token)
    return str(refused.value)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *((RSA, algorithm) for algorithm in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (P256, "ES256"),
        (P384, "ES384"),
        (P521, "ES512"),
        (ED25519, "EdDSA"),
    ],
)
def test_a_token_signed_with_any_allowed_algorithm_tells_who_bears_it(
    key: Key, algorithm: str
) -> None:
    identity = validator().validate(token(key, payload(groups=["a", "b"]), algorithm))
    assert (identity.name, identity.expires_at) == ("alice", NOW + 300)
    assert identity.claims["groups"] == ["a", "b"]
    assert not identity.token_authenticated


def test_a_token_without_a_kid_is_checked_with_the_first_key_that_fits() -> None:
    assert validator().validate(token(RSA, payload(), kid=None)).name == "alice"
    assert validator().validate(token(P256, payload(), "ES256", kid=None)).name == "alice"
    assert "signature" in refusal(token(OTHER_RSA, payload(), kid=None))


def test_a_kid_that_is_not_in_the_set_is_refused_and_asked_for() -> None:
    keys = Keys(RSA)
    assert "kid" in refusal(token(OTHER_RSA, payload()), keys)
    assert keys.missed == ["other-rsa"]


def test_a_kid_of_a_key_of_another_type_is_refused() -> None:
    assert "kid" in refusal(token(RSA, payload(), kid="p256"))
    assert "kid" in refusal(token(P256, payload(), "ES256", kid="p384"))


def test_a_key_that_is_for_one_algorithm_verifies_no_other() -> None:
    keys = Keys(RSA.jwk(alg="RS256"))
    assert validator(keys).validate(token(RSA, payload())).name == "alice"
    assert "kid" in refusal(token(RSA, payload(), "RS512"), keys)


@pytest.mark.parametrize(
    "forged",
    [
        compact({"alg": "none"}, payload(), tokens.unsigned) + "AA",
        compact({"alg": "none", "kid": "rsa"}, payload(), RSA.sign("RS256")),
        compact({"alg": "HS256", "kid": "rsa"}, payload(), tokens.hmac_sha256(RSA.pem())),
        compact({"alg": "HS256"}, payload(), tokens.hmac_sha256(RSA.pem())),
        compact({"alg": ["RS256"], "kid": "rsa"}, payload(), RSA.sign("RS256")),
        compact({"alg": "rs256", "kid": "rsa"}, payload(), RSA.sign("RS256")),
        compact({"kid": "rsa"}, payload(), RSA.sign("RS256")),
    ],
)
def test_only_asymmetric_algorithms_are_allowed(forged: str) -> None:
    keys = Keys(RSA, {"kty": "oct", "kid": "hmac", "k": tokens.encoded(RSA.pem())})
    assert refusal(forged, keys).startswith("alg is not one of RS256")


def test_a_signature_by_another_key_or_over_other_claims_is_refused() -> None:
    header, _, signature = token(RSA, payload()).split(".")
    other = tokens.encoded(payload(sub="admin"))
    assert "signature" in refusal(f"{header}.{other}.{signature}")
    assert "signature" in refusal(token(OTHER_RSA, payload(), kid="rsa"))
    assert "signature" in refusal(
        compact({"alg": "RS256", "kid": "rsa"}, payload(), lambda _: b"x")
    )


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS256"), (P256, "ES256"), (ED25519, "EdDSA")]
)
@pytest.mark.parametrize("size", [1, 64, 256, 257, 10_000])
def test_a_signature_of_any_size_is_refused(key: Key, algorithm: str, size: int) -> None:
    header = {"alg": algorithm, "kid": key.kid}
    assert "signature" in refusal(compact(header, payload(), lambda _: b"x" * size))


def test_an_extension_that_must_be_understood_is_refused() -> None:
    assert "extensions" in refusal(token(RSA, payload(), crit=["exp"]))
    assert "extensions" in refusal(token(RSA, payload(), crit=["b64"], b64=False))


def test_a_long_header_is_not_looked_at() -> None:
    assert "more than 8192 bytes" in refusal(token(RSA, payload(), x5c=["x" * 8_000]))
    assert validator().validate(token(RSA, payload(), x5c=["x" * 5_000])).name == "alice"


def test_a_token_in_a_token_is_refused() -> None:
    inner = token(RSA, payload()).encode()
    assert "another token" in refusal(token(RSA, inner, cty="JWT"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": NOW - 30}, "exp is over"),
        ({"exp": None}, "missing"),
        ({"iat": None}, "missing"),
        ({"exp": str(NOW + 300)}, "exp is not a number"),
        ({"exp": True}, "exp is not a number"),
        ({"exp": 2**63}, "exp is not a time"),
        ({"exp": 1e400}, "payload"),
        ({"iat": -1}, "iat is negative"),
        ({"iat": "now"}, "iat is not a number"),
        ({"iat": NOW + 301}, "exp is before"),
        ({"nbf": NOW + 31}, "nbf is to come"),
        ({"nbf": [NOW]}, "nbf is not a number"),
        ({"iss": "https://elsewhere.example"}, "iss"),
        ({"iss": None}, "iss"),
        ({"iss": 5}, "iss is not a string"),
        ({"aud": None}, "aud is missing"),
        ({"aud": "kafk"}, "aud has none"),
        ({"aud": []}, "aud has none"),
        ({"aud": [tokens.AUDIENCE, 5]}, "aud is not"),
        ({"aud": {tokens.AUDIENCE: 1}}, "aud is not"),
        ({"sub": None}, "subject claim is not a string"),
        ({"sub": ["alice"]}, "sub is not a string"),
        ({"sub": " \t"}, "subject claim is empty"),
        ({"sub": "\ud800"}, "surrogate"),
        ({"jti": 7}, "jti is not a string"),
        ({"scope": ""}, "scope claim is empty"),
        ({"scope": ["read", " "]}, "scope claim is empty"),
        ({"scope": ["read", "read "]}, "twice"),
        ({"scope": ["read", 5]}, "scope claim is not a string"),
    ],
)
def test_claims_that_kafka_refuses_are_refused(changes: dict[str, Any], reason: str) -> None:
    made = payload() | changes
    left = {name: value for name, value in made.items() if value is not None}
    assert reason in refusal(token(RSA, left))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 29, "iat": NOW - 300},
        {"exp": NOW + 0.5},
        {"iat": NOW + 200},
        {"iat": 0},
        {"nbf": NOW + 30},
        {"aud": ["another", tokens.AUDIENCE]},
        {"sub": " alice\n"},
        {"scope": "read write"},
        {"scope": ["read", "write"]},
        {"scope": 5},
        {"jti": None, "iss": tokens.ISSUER},
    ],
)
def test_claims_that_kafka_takes_are_taken(changes: dict[str, Any]) -> None:
    assert validator().validate(token(RSA, payload() | changes)).name == "alice"


def test_a_token_for_an_audience_is_refused_where_none_is_expected() -> None:
    assert "expected.audience is not set" in refusal(token(RSA, payload()), rules=TokenRules())
    assert validator(rules=TokenRules()).validate(token(RSA, payload(aud=None))).name == "alice"


def test_subject_and_scope_may_have_other_names() -> None:
    rules = TokenRules(None, frozenset({"kafka"}), sub_claim_name="email", scope_claim_name="scp")
    made = payload(sub=None, email="alice@example.org", scope="")
    assert validator(rules=rules).validate(token(RSA, made)).name == "alice@example.org"
    assert "scope claim" in refusal(token(RSA, made | {"scp": ""}), rules=rules)


@pytest.mark.parametrize(
    "broken",
    [
        "",
        ".",
        "a.b",
        "a.b.c.d.e",
        "..",
        token(RSA, payload()) + ".",
        token(RSA, payload())[:-1],
        token(RSA, payload()) + "~~",
        token(RSA, payload()) + "A",
        token(RSA, payload()).rpartition(".")[0] + ".",
        token(RSA, payload()).replace(".", ".~", 1),
        token(RSA, b"alice"),
        token(RSA, b"[]"),
        token(RSA, b"\xff\xfe{}"),
        token(RSA, json.dumps(payload()).encode("utf-16")),
        token(RSA, b'{"exp": NaN}'),
        token(RSA, b'{"iat": 0, "exp": 1e400}'),
        token(RSA, b"9" * 10_000),
        token(RSA, b'{"a":' * 100_000),
        token(RSA, b"[" * 300_000),
        token(RSA, b'{"exp": %d, "exp": %d}' % (NOW - 300, NOW + 300)),
        compact(b'{"alg":"none","alg":"RS256","kid":"rsa"}', payload(), RSA.sign("RS256")),
        compact(b'{"alg":' * 100_000, payload(), RSA.sign("RS256")),
        compact({"alg": "RS256", "kid": 5}, payload(), RSA.sign("RS256")),
        compact({"alg": "RS256", "kid": {"a": 1}}, payload(), RSA.sign("RS256")),
        compact([], payload(), RSA.sign("RS256")),
        token(RSA, payload(), kid="k" * 200_000),
    ],
)
def test_what_is_no_token_is_refused_and_not_repeated(broken: str) -> None:
    reason = refusal(broken)
    assert len(reason) < 150
    assert not any(part and part in reason for part in broken.split(".") if len(part) > 8)
