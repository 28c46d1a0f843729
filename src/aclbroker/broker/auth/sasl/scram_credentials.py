"""SCRAM credentials (RFC 5802, RFC 7677): what a server keeps instead of a password."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import b64decode, b64encode
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384

SALT_BITS: Final = 130
"""The size of the random number of which Kafka's tools make a salt."""

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(Enum):
    """A mechanism; the values are the codes of KIP-554."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @cached_property
    def mechanism_name(self) -> str:
        """The name that a SASL client asks for, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @cached_property
    def hash_name(self) -> str:
        """The name of the hash function for `hashlib`."""
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()

    @cached_property
    def digest_size(self) -> int:
        """The size of keys and proofs, in bytes."""
        return hashlib.new(self.hash_name).digest_size

    def hash(self, data: bytes) -> bytes:
        """H of RFC 5802."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC of RFC 5802."""
        return hmac.digest(key, data, self.hash_name)


class ScramCredential(NamedTuple):
    """The salt and the keys of one user for one mechanism.

    Whoever has the keys can pretend to be the server, and after overhearing one login also the user
    (RFC 5802, section 9), so they are never shown.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential(hidden)"

    def to_json(self) -> str:
        """The credential as a record of a store."""
        texts = {name: b64encode(value).decode() for name, value in self._bytes().items()}
        return json.dumps(texts | {"iterations": self.iterations})

    def _bytes(self) -> dict[str, bytes]:
        return {
            "salt": self.salt,
            "stored_key": self.stored_key,
            "server_key": self.server_key,
        }


def credential_from_json(text: str) -> ScramCredential:
    """The credential that a record holds.

    Raises ValueError, which shows nothing of the record, also if the iterations are too few.
    """
    try:
        fields = json.loads(text)
        salt, stored_key, server_key = (
            b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        iterations = fields["iterations"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("not a SCRAM credential") from None
    if type(iterations) is not int or iterations < MIN_ITERATIONS:
        raise ValueError("not a SCRAM credential")
    return ScramCredential(salt, stored_key, server_key, iterations)


def credential_of_password(
    mechanism: ScramMechanism,
    password: str,
    salt: bytes | None = None,
    iterations: int = MIN_ITERATIONS,
) -> ScramCredential:
    """The credential of a password, by default with a new salt."""
    salt = new_salt() if salt is None else salt
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of_salted_password(mechanism, salted, salt, iterations)


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """RFC 5802's SaltedPassword; raises ValueError if the iterations are not positive.

    As in Kafka the password is taken as its UTF-8 bytes; the RFC would normalise it (SASLprep).
    """
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def new_salt() -> bytes:
    """A random salt in the form of Kafka's."""
    return kafka_salt(secrets.randbits(SALT_BITS))


def credential_of_salted_password(
    mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of RFC 5802's SaltedPassword, which AlterUserScramCredentials carries."""
    client_key = mechanism.hmac(salted_password, b"Client Key")
    server_key = mechanism.hmac(salted_password, b"Server Key")
    return ScramCredential(salt, mechanism.hash(client_key), server_key, iterations)


def kafka_salt(number: int) -> bytes:
    """A random number of `SALT_BITS` as Kafka's ScramFormatter makes a salt of it: in base 36."""
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)).encode()
