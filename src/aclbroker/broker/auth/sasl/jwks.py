"""A JWK set (RFC 7517): the public keys with which an authorization server's tokens are checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): _RSA,
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}
"""What each type of key, and curve, can verify (RFC 7518, RFC 8037)."""

_PUBLIC_MEMBERS: Final = ("kty", "crv", "n", "e", "x", "y")
_LEAST_RSA_BITS: Final = 2048

SIGNATURE_ALGORITHMS: Final = tuple(
    dict.fromkeys(algorithm for some in _ALGORITHMS.values() for algorithm in some)
)
"""The algorithms that may sign a token: asymmetric ones, never `none` and never an HMAC."""


class JwksError(ValueError):
    """The text is no JWK set."""


class VerificationKey(NamedTuple):
    """A public key, its `kid` and the algorithms whose signatures it may verify."""

    key_id: str | None
    algorithms: tuple[str, ...]
    public_key: Any

    def verifies(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Tell whether it is a signature of the message by this key with one of `algorithms`."""
        if algorithm not in self.algorithms:
            raise ValueError(f"not an algorithm of this key: {algorithm}")
        return bool(_implementations()[algorithm].verify(message, self.public_key, signature))


class KeySet(NamedTuple):
    """The usable keys of a set in their order, and why its other entries are not usable."""

    keys: tuple[VerificationKey, ...]
    ignored: tuple[str, ...] = ()

    def find(self, key_id: str | None, algorithm: str) -> VerificationKey | None:
        """Return the first key that may verify a token with this `kid` and `alg`.

        A token without a `kid` may be of any key; as in Kafka only the first that fits is tried.
        """
        for key in self.keys:
            if algorithm in key.algorithms and key_id in (None, key.key_id):
                return key
        return None


def parse_jwks(text: bytes) -> KeySet:
    """Return the keys of a JWK set that verify signatures; raises `JwksError`.

    As RFC 7517 section 5 asks, an entry that cannot be used does not spoil the others.
    """
    try:
        entries = json.loads(text.decode())["keys"]
    except (ValueError, RecursionError, TypeError, LookupError):
        raise JwksError('not a JSON object with an array "keys"') from None
    if not isinstance(entries, list):
        raise JwksError('"keys" is not an array')
    keys, ignored = [], []
    for position, entry in enumerate(entries, start=1):
        try:
            keys.append(_key(entry))
        except JwksError as error:
            ignored.append(f"key {position}: {error}")
    return KeySet(tuple(keys), tuple(ignored))


@cache
def _implementations() -> Mapping[str, Any]:
    from jwt.algorithms import get_default_algorithms

    return get_default_algorithms()


def _key(entry: Any) -> VerificationKey:
    if not isinstance(entry, dict):
        raise JwksError("not an object")
    key_id = _optional(entry, "kid")
    if _optional(entry, "use") not in (None, "sig"):
        raise JwksError("its use is not sig")
    operations = entry.get("key_ops")
    if operations is not None and (not isinstance(operations, list) or "verify" not in operations):
        raise JwksError("its key_ops lack verify")
    algorithms = _algorithms(entry)
    return VerificationKey(key_id, algorithms, _public_key(entry, algorithms[0]))


def _algorithms(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What the key can verify; only its `alg`, if it has one (RFC 8725 section 3.1)."""
    kind = (_optional(entry, "kty") or "", _optional(entry, "crv"))
    if kind not in _ALGORITHMS:
        raise JwksError("its kty and crv are not those of a key for signatures")
    algorithms = _ALGORITHMS[kind]
    named = _optional(entry, "alg")
    if named is None:
        return algorithms
    if named not in algorithms:
        raise JwksError("its alg is not a signature algorithm of its kty and crv")
    return (named,)


def _public_key(entry: Mapping[str, Any], algorithm: str) -> Any:
    from jwt import PyJWK, PyJWTError

    # Only the public part is read, even if a private key was published by mistake.
    public = {name: entry[name] for name in _PUBLIC_MEMBERS if name in entry}
    try:
        key = PyJWK(public, algorithm).key
    except (PyJWTError, ValueError, TypeError, LookupError):
        raise JwksError("it cannot be read") from None
    if algorithm in _RSA and key.key_size < _LEAST_RSA_BITS:
        raise JwksError(f"an RSA key must have {_LEAST_RSA_BITS} bits (RFC 7518 section 3.3)")
    return key


def _optional(entry: Mapping[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise JwksError(f"its {name} is not a string")
    return value
