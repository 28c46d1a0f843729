"""SCRAM challenges for users that do not exist, so that challenges do not tell which users do."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.scram_credentials import (
    MIN_ITERATIONS,
    SALT_BITS,
    ScramCredential,
    ScramMechanism,
    kafka_salt,
)


class _Look(NamedTuple):
    """What a client sees of a credential: the iterations, and what the salt looks like.

    ``salt_bytes`` None is a salt as Kafka's own tools make it.
    """

    iterations: int
    salt_bytes: int | None


_USUAL_LOOK: Final = _Look(MIN_ITERATIONS, None)


class Decoys:
    """Makes the credentials of users that do not exist, for one mechanism.

    A decoy's salt is derived from a ``secret`` and the user's name, so it is the same each time,
    and looks like that of one of the real users. Each look occurs among decoys as often as among
    the real credentials that were `added`.
    """

    def __init__(self, mechanism: ScramMechanism, secret: bytes) -> None:
        self._mechanism = mechanism
        self._secret = secret
        self._looks: Counter[_Look] = Counter()
        self._order: list[_Look] = []
        self._until: list[int] = []

    def added(self, credentials: Iterable[ScramCredential]) -> None:
        """Count real credentials that are new."""
        self._looks.update(map(_look, credentials))
        self._until.clear()

    def removed(self, credentials: Iterable[ScramCredential]) -> None:
        """Stop counting real credentials that are gone."""
        self._looks.subtract(map(_look, credentials))
        self._until.clear()

    def of(self, name: str) -> ScramCredential:
        """The decoy of a name. No password fits it: its keys are new random bytes."""
        if not self._until:
            self._count()
        drawn = self._draw("look", name, 8)
        place = int.from_bytes(drawn, "big") * self._until[-1] >> 64
        look = self._order[bisect_right(self._until, place)]
        size = self._mechanism.digest_size
        return ScramCredential(
            self._salt(name, look),
            secrets.token_bytes(size),
            secrets.token_bytes(size),
            look.iterations,
        )

    def _salt(self, name: str, look: _Look) -> bytes:
        if look.salt_bytes is not None:
            return self._draw("salt", name, look.salt_bytes)
        return derived_salt(self._secret, self._mechanism, name)

    def _draw(self, purpose: str, name: str, size: int) -> bytes:
        return hashlib.shake_256(_derived(self._secret, self._mechanism, purpose, name)).digest(
            size
        )

    def _count(self) -> None:
        self._looks = +self._looks
        looks = self._looks or Counter([_USUAL_LOOK])
        self._order = sorted(looks, key=str)
        self._until = list(accumulate(looks[look] for look in self._order))


def derived_salt(secret: bytes, mechanism: ScramMechanism, name: str) -> bytes:
    """A salt in the form of Kafka's that is the same each time for a name."""
    drawn = _derived(secret, mechanism, "salt", name)
    return kafka_salt(int.from_bytes(drawn, "big") >> (8 * len(drawn) - SALT_BITS))


def _derived(secret: bytes, mechanism: ScramMechanism, purpose: str, name: str) -> bytes:
    message = "\0".join((mechanism.name, purpose, name)).encode()
    return hmac.digest(secret, message, "sha256")


def _look(credential: ScramCredential) -> _Look:
    salt = credential.salt
    is_kafkas = 23 <= len(salt) <= 26 and salt.isalnum() and salt == salt.lower()
    return _Look(credential.iterations, None if is_kafkas else len(salt))
