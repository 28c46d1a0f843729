"""Checks an access token, a signed JWT (RFC 7519), by the rules of Kafka's BrokerJwtValidator.

Keys and signatures are PyJWT's. The rest is here: what Kafka (through jose4j) accepts is defined by
types and limits that no option of a library expresses, and PyJWT takes so long to read a token of
the greatest length that other clients would notice.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from aclbroker.broker.auth.sasl.groups_claim import InvalidGroups, claimed_groups
from aclbroker.broker.auth.sasl.jwks import SIGNATURE_ALGORITHMS, KeySet
from aclbroker.broker.auth.sasl.mechanism import Identity

# Java holds the time of expiry as a long of milliseconds.
_LAST_SECOND: Final = (2**63 - 1) // 1000
# In a message of half a MiB a header could keep the broker busy for long.
_LONGEST_HEADER: Final = 8_192
# What java.lang.String.trim removes.
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))


class InvalidToken(Exception):
    """The token is not valid; the text says why, and has no part of the token."""


class TokenRules(NamedTuple):
    """What a token must say besides being signed; the settings `sasl.oauthbearer.*` of Kafka.

    ``groups_claim_name`` is the claim with the groups of the subject, None for none.
    """

    expected_issuer: str | None = None
    expected_audiences: frozenset[str] = frozenset()
    clock_skew_seconds: int = 30
    sub_claim_name: str = "sub"
    scope_claim_name: str = "scope"
    groups_claim_name: str | None = None


class KeySource(Protocol):
    """The source of the keys, which change while the broker runs."""

    def keys(self) -> KeySet:
        """Return the keys as they are known now, without waiting."""

    def missing(self, key_id: str) -> None:
        """Note that a token names a key that is not known."""


class TokenValidator:
    """Tells who a token was issued for. ``clock`` gives the seconds since the epoch."""

    def __init__(
        self, rules: TokenRules, source: KeySource, clock: Callable[[], float] = time.time
    ) -> None:
        self._rules = rules
        self._source = source
        self._clock = clock

    def validate(self, token: str) -> Identity:
        """Return the token's subject, expiry, claims and groups; raises `InvalidToken`."""
        claims = self._verified_claims(token)
        _check_registered_types(claims)
        expires_at = _check_times(claims, int(self._clock()), self._rules.clock_skew_seconds)
        _check_issuer(claims, self._rules.expected_issuer)
        _check_audience(claims, self._rules.expected_audiences)
        _check_scopes(claims.get(self._rules.scope_claim_name))
        name = _subject(claims, self._rules.sub_claim_name)
        try:
            groups = claimed_groups(claims, self._rules.groups_claim_name)
        except InvalidGroups as error:
            raise InvalidToken(str(error)) from None
        return Identity(name, float(expires_at), claims=MappingProxyType(claims), groups=groups)

    def _verified_claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a signed JWS in compact serialization (RFC 7515 section 7.1).

        Nothing of the payload is read before the signature is verified, so that tokens which
        anybody can send cost little.
        """
        parts = token.split(".")
        if len(parts) != 3 or not all(parts):
            raise InvalidToken("not three parts with a period between them")
        if len(parts[0]) > _LONGEST_HEADER:
            raise InvalidToken(f"a header of more than {_LONGEST_HEADER} bytes")
        algorithm, key_id = _checked_header(_json_object(_decoded(parts[0], "header"), "header"))
        key = self._source.keys().find(key_id, algorithm)
        if key is None:
            if key_id is not None:
                self._source.missing(key_id)
            raise InvalidToken("the JWKS has no key with its kid for its alg")
        message, _, _ = token.rpartition(".")
        if not key.verifies(algorithm, message.encode(), _decoded(parts[2], "signature")):
            raise InvalidToken("its signature does not hold")
        return _json_object(_decoded(parts[1], "payload"), "payload")


def _checked_header(header: Mapping[str, Any]) -> tuple[str, str | None]:
    """The `alg` and the `kid`; raises `InvalidToken` for a header that cannot be accepted."""
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in SIGNATURE_ALGORITHMS:
        raise InvalidToken("alg is not one of " + ", ".join(SIGNATURE_ALGORITHMS))
    if key_id is not None and not isinstance(key_id, str):
        raise InvalidToken("kid is not a string")
    if "crit" in header or "b64" in header:
        raise InvalidToken("it has extensions that are not supported (RFC 7515 section 4.1.11)")
    if str(header.get("cty", "")).lower() in ("jwt", "application/jwt"):
        raise InvalidToken("it has another token in it")
    return algorithm, key_id


def _decoded(part: str, name: str) -> bytes:
    text = part.rstrip("=")
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        decoded = None
    # Spare bits at the end would be a second text for the same bytes.
    if decoded is None or base64.urlsafe_b64encode(decoded).decode().rstrip("=") != text:
        raise InvalidToken(f"the {name} is not base64url")
    return decoded


def _json_object(text: bytes, name: str) -> dict[str, Any]:
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_without_repetition, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):
        raise InvalidToken(f"the {name} is not JSON with each name once") from None
    if not isinstance(value, dict):
        raise InvalidToken(f"the {name} is not a JSON object")
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError
    return made


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError


def _check_registered_types(claims: Mapping[str, Any]) -> None:
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name, ""), str | None):
            raise InvalidToken(f"{name} is not a string")


def _check_times(claims: Mapping[str, Any], now: int, skew: int) -> int:
    """Return `exp`. As in Kafka, `iat` is required and may be in the future."""
    expires_at, issued_at = _seconds(claims, "exp"), _seconds(claims, "iat")
    not_before = _seconds(claims, "nbf")
    if expires_at is None or issued_at is None:
        raise InvalidToken("exp or iat is missing")
    if now - skew >= expires_at:
        raise InvalidToken(f"exp is over, with {skew} seconds of clock skew")
    if not_before is not None and now + skew < not_before:
        raise InvalidToken(f"nbf is to come, with {skew} seconds of clock skew")
    if expires_at < max(issued_at, not_before or 0):
        raise InvalidToken("exp is before iat or nbf")
    if issued_at < 0:
        raise InvalidToken("iat is negative")
    return expires_at


def _seconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidToken(f"{name} is not a number")
    if not -_LAST_SECOND <= value <= _LAST_SECOND:
        raise InvalidToken(f"{name} is not a time")
    return int(value)


def _check_issuer(claims: Mapping[str, Any], expected: str | None) -> None:
    if expected is not None and claims.get("iss") != expected:
        raise InvalidToken("iss is not the expected issuer")


def _check_audience(claims: Mapping[str, Any], expected: frozenset[str]) -> None:
    """Raise unless the token is meant for this broker.

    A token that names an audience is refused where none is expected (RFC 7519 section 4.1.3).
    """
    audience = claims.get("aud")
    if audience is None:
        if expected:
            raise InvalidToken("aud is missing")
        return
    names = audience if isinstance(audience, list) else [audience]
    if not all(isinstance(name, str) for name in names):
        raise InvalidToken("aud is not a string or an array of strings")
    if expected.isdisjoint(names):
        raise InvalidToken(
            "aud has none of the expected audiences"
            if expected
            else "aud is there, but sasl.oauthbearer.expected.audience is not set"
        )


def _check_scopes(scopes: Any) -> None:
    """Raise if the scopes are malformed. None is required: ACLs tell what somebody may do."""
    if isinstance(scopes, list):
        names = [_text(scope, "the scope claim") for scope in scopes]
        if len(set(names)) < len(names):
            raise InvalidToken("the scope claim has a scope twice")
    elif isinstance(scopes, str):
        _text(scopes, "the scope claim")


def _subject(claims: Mapping[str, Any], claim: str) -> str:
    subject = _text(claims.get(claim), "the subject claim")
    try:
        subject.encode()
    except UnicodeEncodeError:
        raise InvalidToken("the subject claim has half of a surrogate pair") from None
    return subject


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidToken(f"{what} is not a string")
    trimmed = value.strip(_JAVA_BLANKS)
    if not trimmed:
        raise InvalidToken(f"{what} is empty")
    return trimmed
