"""First messages of OAUTHBEARER clients, good and bad, for our broker and a real Kafka alike."""

import json
import time
from typing import Any, NamedTuple

from tests.logins.conftest import (
    CLOCK_SKEW,
    ED25519,
    FOR_ENCRYPTION,
    HMAC_SECRET,
    ONLY_RS256,
    OTHER_RSA,
    P256,
    P384,
    P521,
    RSA,
    SHORT_RSA,
)
from tests.support.access_tokens import (
    AUDIENCE,
    claims,
    compact,
    encoded,
    hmac_sha256,
    initial_response,
    token,
    unsigned,
)

NOW = int(time.time())
GOOD = token(RSA)
HEADER, PAYLOAD, SIGNATURE = GOOD.split(".")


def with_claims(**changes: Any) -> str:
    """A token in which some claims are others; None leaves one out."""
    return token(RSA, claims(**changes))


def raw(payload: str) -> str:
    """A token with a payload of any text, in which %d is a time to come."""
    return token(RSA, payload.replace("%d", str(NOW + 600)).encode())


REQUIRED = f'"iss":"https://issuer.example/realms/kafka","aud":"{AUDIENCE}","sub":"alice"'

SIGNED = {
    **{name: token(RSA, algorithm=name) for name in ("RS256", "RS384", "RS512")},
    **{name: token(RSA, algorithm=name) for name in ("PS256", "PS384", "PS512")},
    "ES256": token(P256, algorithm="ES256"),
    "ES384": token(P384, algorithm="ES384"),
    "ES512": token(P521, algorithm="ES512"),
    "EdDSA": token(ED25519, algorithm="EdDSA"),
    "a key for one algorithm": token(ONLY_RS256),
    "no kid": token(RSA, kid=None),
    "no kid, and not the first key": token(OTHER_RSA, kid=None),
    "no typ": token(RSA, typ=None),
    "typ at+jwt": token(RSA, typ="at+jwt"),
    "unknown kid": token(RSA, kid="unknown"),
    "kid of another RSA key": token(RSA, kid="other-rsa"),
    "kid of a key of another type": token(RSA, kid="p256"),
    "kid of another curve": token(P256, algorithm="ES256", kid="p384"),
    "kid of a key with another curve's algorithm": token(P384, algorithm="ES256"),
    "kid that is a number": token(RSA, kid=5),
    "kid that is long": token(RSA, kid="k" * 5000),
    "kid of a key for encryption": token(FOR_ENCRYPTION),
    "kid of a key of a new kind": token(RSA, kid="new"),
    "short RSA key": token(SHORT_RSA),
    "alg none": compact({"alg": "none"}, claims(), unsigned) + "AA",
    "alg none, no signature": compact({"alg": "none"}, claims(), unsigned),
    "alg none, kid, signed": compact({"alg": "none", "kid": "rsa"}, claims(), RSA.sign("RS256")),
    "alg None": compact({"alg": "None", "kid": "rsa"}, claims(), RSA.sign("RS256")),
    "HS256 with the public key": compact(
        {"alg": "HS256", "kid": "rsa"}, claims(), hmac_sha256(RSA.pem())
    ),
    "HS256 with the public key, no kid": compact(
        {"alg": "HS256"}, claims(), hmac_sha256(RSA.pem())
    ),
    "no alg": compact({"kid": "rsa"}, claims(), RSA.sign("RS256")),
    "alg that is a number": compact({"alg": 256, "kid": "rsa"}, claims(), RSA.sign("RS256")),
    "unknown alg": compact({"alg": "XS256", "kid": "rsa"}, claims(), RSA.sign("RS256")),
    "alg of another hash": compact({"alg": "RS512", "kid": "rsa"}, claims(), RSA.sign("RS256")),
    "other claims": f"{HEADER}.{encoded(claims('admin'))}.{SIGNATURE}",
    "other header": f"{encoded({'alg': 'RS256', 'kid': 'rsa'})}.{PAYLOAD}.{SIGNATURE}",
    "no signature": f"{HEADER}.{PAYLOAD}.",
    "signature with padding": f"{GOOD}==",
    "half a signature": f"{HEADER}.{PAYLOAD}.{SIGNATURE[:100]}",
    "crit": token(RSA, crit=["exp"]),
    "a key in the header": compact(
        {"alg": "RS256", "jwk": FOR_ENCRYPTION.jwk()}, claims(), FOR_ENCRYPTION.sign("RS256")
    ),
    "header that is an array": compact([], claims(), RSA.sign("RS256")),
    "header with a name twice": compact(
        b'{"alg":"none","alg":"RS256","kid":"rsa"}', claims(), RSA.sign("RS256")
    ),
}

CLAIMED = {
    "expired": with_claims(exp=NOW - CLOCK_SKEW - 1, iat=0),
    "expired within the skew": with_claims(exp=NOW, iat=0),
    "no exp": with_claims(exp=None),
    "exp as text": with_claims(exp=str(NOW + 600)),
    "exp with a fraction": with_claims(exp=NOW + 600.5),
    "exp true": with_claims(exp=True),
    "exp beyond 64 bits": with_claims(exp=2**64),
    "exp before iat": with_claims(exp=NOW + 60, iat=NOW + 120),
    "no iat": with_claims(iat=None),
    "iat in the future": with_claims(iat=NOW + 600),
    "iat negative": with_claims(iat=-5),
    "nbf in the past": with_claims(nbf=NOW - 5),
    "nbf within the skew": with_claims(nbf=NOW + CLOCK_SKEW, exp=NOW + CLOCK_SKEW),
    "nbf in the future": with_claims(nbf=NOW + 4 * CLOCK_SKEW, exp=NOW + 5 * CLOCK_SKEW),
    "nbf as text": with_claims(nbf="now"),
    "iss another": with_claims(iss="https://elsewhere.example"),
    "iss missing": with_claims(iss=None),
    "iss with a slash more": with_claims(iss="https://issuer.example/realms/kafka/"),
    "iss a list": with_claims(iss=["https://issuer.example/realms/kafka"]),
    "aud another": with_claims(aud="other"),
    "aud missing": with_claims(aud=None),
    "aud among others": with_claims(aud=["other", AUDIENCE]),
    "aud the other that is expected": with_claims(aud="elsewhere"),
    "aud empty": with_claims(aud=[]),
    "aud a prefix": with_claims(aud=AUDIENCE[:-1]),
    "aud a number": with_claims(aud=5),
    "sub missing": with_claims(sub=None),
    "sub empty": with_claims(sub=""),
    "sub blank": with_claims(sub=" "),
    "sub a number": with_claims(sub=5),
    "sub between blanks": with_claims(sub=" alice "),
    "sub beyond ASCII": with_claims(sub="älice"),
    "jti a number": with_claims(jti=5),
    "scope": with_claims(scope="read"),
    "scope empty": with_claims(scope=""),
    "scopes": with_claims(scope=["read", "write"]),
    "scopes twice": with_claims(scope=["read", "read"]),
    "scopes blank": with_claims(scope=["read", " "]),
    "scope a number": with_claims(scope=5),
    "deep claims": with_claims(groups=json.loads("[" * 50 + "]" * 50)),
    "claim twice": raw(f'{{{REQUIRED},"iat":1,"exp":1,"exp":%d}}'),
    "payload not JSON": raw("alice"),
    "payload an array": raw("[]"),
    "payload empty": f"{HEADER}..{SIGNATURE}",
    "payload after blanks": raw(f' {{{REQUIRED},"iat":1,"exp":%d}} '),
    "payload with NaN": raw(f'{{{REQUIRED},"iat":1,"exp":%d,"x":NaN}}'),
    "payload UTF-16": token(RSA, json.dumps(claims()).encode("utf-16")),
    "payload nested deeply": raw("[" * 200_000),
}

SHAPED = {
    "one part": "alice",
    "two parts": f"{HEADER}.{PAYLOAD}",
    "four parts": f"{GOOD}.AAAA",
    "a period more": f"{GOOD}.",
    "five parts": f"{GOOD}.AAAA.AAAA",
    "periods": "..",
    "truncated": GOOD[:40],
}

MESSAGES = {
    "own authorization id": initial_response(GOOD, "alice"),
    "another authorization id": initial_response(GOOD, "bob"),
    "extensions": initial_response(GOOD, extensions="logicalCluster=lkc\x01"),
    "extension with a bad name": initial_response(GOOD, extensions="k-y=value\x01"),
    "extension without a value": initial_response(GOOD, extensions="key=\x01"),
    "scheme in another case": b"n,,\x01auth=bEaReR " + GOOD.encode() + b"\x01\x01",
    "blanks before the token": b"n,,\x01auth=Bearer   " + GOOD.encode() + b"\x01\x01",
    "a word after the token": b"n,,\x01auth=Bearer " + GOOD.encode() + b" more\x01\x01",
    "channel binding": b"p=tls-unique,,\x01auth=Bearer " + GOOD.encode() + b"\x01\x01",
    "no auth": b"n,,\x01key=value\x01\x01",
    "no separator at the end": b"n,,\x01auth=Bearer " + GOOD.encode() + b"\x01",
    "empty": b"",
    "a lone separator": b"\x01",
    "not UTF-8": b"\xff\xfe" * 20,
    "PLAIN": b"\0alice\0secret",
    "zeros": bytes(10_000),
}


ALIKE = {
    **{name: initial_response(text) for name, text in (SIGNED | CLAIMED | SHAPED).items()},
    **MESSAGES,
}


class Difference(NamedTuple):
    """A message that Kafka answers otherwise, and why it is not answered so here."""

    message: bytes
    reason: str


KAFKA_ACCEPTS = {
    "HS256 with a key of the set": Difference(
        initial_response(
            compact({"alg": "HS256", "kid": "hmac"}, claims(), hmac_sha256(HMAC_SECRET))
        ),
        "who can check an HMAC can make one",
    ),
    "RS512 with a key for RS256": Difference(
        initial_response(token(ONLY_RS256, algorithm="RS512")), "RFC 8725 section 3.1"
    ),
    "a token in a token": Difference(
        initial_response(token(RSA, GOOD.encode(), cty="JWT")), "not supported"
    ),
    "a signature with characters that mean nothing": Difference(
        initial_response(f"{GOOD}~~"), "not base64url (RFC 7515 section 2)"
    ),
    "a payload with a comma more": Difference(
        initial_response(raw(f'{{{REQUIRED},"iat":1,"exp":%d,}}')), "not JSON (RFC 8259)"
    ),
    "a header of more than 8 KiB": Difference(
        initial_response(token(RSA, x5c=["x" * 8_000])), "what anybody can send must cost little"
    ),
    "auth twice": Difference(
        b"n,,\x01auth=Bearer x\x01auth=Bearer " + GOOD.encode() + b"\x01\x01",
        "nobody who means well sends two",
    ),
}
KAFKA_HANGS_UP = {
    "exp beyond milliseconds of 64 bits": Difference(
        initial_response(with_claims(exp=2**62)), "an overflow in Kafka"
    ),
    "exp 1e400": Difference(
        initial_response(raw(f'{{{REQUIRED},"iat":1,"exp":1e400}}')), "an overflow in Kafka"
    ),
    "scopes with a number": Difference(
        initial_response(with_claims(scope=["read", 5])), "a failed cast in Kafka"
    ),
    "scheme Basic": Difference(
        b"n,,\x01auth=Basic " + GOOD.encode() + b"\x01\x01", "a failed look-up in Kafka"
    ),
}
ONLY_WE_ACCEPT = {
    "exp in a thousand years": Difference(
        initial_response(with_claims(exp=NOW + 31_536_000_000)), "an overflow in Kafka"
    ),
    "authorization id with an escape": Difference(
        initial_response(with_claims(sub="alice, the first"), "alice=2C the first"),
        "Kafka does not undo the escapes of RFC 5801 section 4",
    ),
}
