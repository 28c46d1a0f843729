"""The tokens that stand for a login: JWTs (RFC 7519), signed and checked with one key."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

ISSUER: Final = "aclbroker"
_NEEDED: Final = ("iss", "sub", "iat", "exp")
_LISTENER: Final = "listener"
_MECHANISM: Final = "mechanism"
_SECRET_BYTES: Final = 64
_LEAST_RSA_BITS: Final = 2048
_MILLISECONDS: Final = 1000
_LONGEST: Final = 8192
"""Characters of a token: nobody's is longer."""

_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class TokenKeyError(ValueError):
    """The file is none with a key that can sign tokens; the text says why."""


class TokenRefused(Exception):
    """The token proves nothing; the text says why, and may be sent to its client."""


class TokenKey(NamedTuple):
    """What signs tokens and checks them, by the one algorithm that belongs to it."""

    algorithm: str
    signs: Any
    checks: Any

    def __repr__(self) -> str:
        return f"TokenKey({self.algorithm})"


class Proved(NamedTuple):
    """Who has logged in: a user by name, of which listener and by which SASL mechanism."""

    name: str
    listener: str
    mechanism: str


def random_key() -> TokenKey:
    """Return a new key, with which tokens end as this process does."""
    secret = secrets.token_bytes(_SECRET_BYTES)
    return TokenKey("HS512", secret, secret)


def key_of_file(path: str) -> TokenKey:
    """Return the key in a PEM file, private and without a password; raises `TokenKeyError`."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(Path(path).read_bytes(), password=None)
    except OSError as error:
        raise TokenKeyError(f"it cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise TokenKeyError("it holds no private key in PEM without a password") from error
    if isinstance(key, RSAPrivateKey):
        if key.key_size < _LEAST_RSA_BITS:
            raise TokenKeyError(f"its RSA key has {key.key_size} bits, less than {_LEAST_RSA_BITS}")
        return TokenKey("RS256", key, key.public_key())
    if isinstance(key, EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return TokenKey(_CURVES[key.curve.name], key, key.public_key())
    raise TokenKeyError(f"its key is neither RSA nor on one of {', '.join(_CURVES)}")


class Tokens:
    """Issues tokens that are valid for ``lifetime_ms``, and checks them.

    ``clock`` returns seconds since the epoch.
    """

    def __init__(
        self, key: TokenKey, lifetime_ms: int, clock: Callable[[], float] = time.time
    ) -> None:
        # Imported where tokens are: it costs time at start.
        import jwt

        self._jwt = jwt
        self._key = key
        self._lifetime = max(1, lifetime_ms // _MILLISECONDS)
        self._clock = clock

    def issue(self, proved: Proved) -> tuple[str, int]:
        """Return a token for whoever was proved, and for how many seconds it is valid."""
        now = int(self._clock())
        claims = {
            "iss": ISSUER,
            "sub": proved.name,
            "iat": now,
            "exp": now + self._lifetime,
            "jti": secrets.token_urlsafe(16),
            _LISTENER: proved.listener,
            _MECHANISM: proved.mechanism,
        }
        algorithm = self._key.algorithm
        return self._jwt.encode(claims, self._key.signs, algorithm=algorithm), self._lifetime

    def check(self, token: str) -> Proved:
        """Return for whom a token was issued; raises `TokenRefused`."""
        if len(token) > _LONGEST:
            raise TokenRefused("The token is too long.")
        try:
            claims = self._jwt.decode(
                token,
                self._key.checks,
                algorithms=[self._key.algorithm],
                issuer=ISSUER,
                options={"require": list(_NEEDED), "verify_exp": False, "verify_iat": False},
            )
        except (self._jwt.PyJWTError, ValueError) as error:
            raise TokenRefused("The token is not valid.") from error
        found = [claims.get(name) for name in ("sub", _LISTENER, _MECHANISM)]
        if not all(isinstance(each, str) for each in found):
            raise TokenRefused("The token is not valid.")
        if type(claims["exp"]) is not int or claims["exp"] <= self._clock():
            raise TokenRefused("The token has expired.")
        return Proved(*map(str, found))
