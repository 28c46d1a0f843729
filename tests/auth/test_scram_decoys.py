"""What is told of users that there are not: as of those that there are, and the same each time."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from aclbroker.broker.auth.sasl.scram_credentials import (
    ScramCredential,
    ScramMechanism,
    credential_of_password,
)
from aclbroker.broker.auth.sasl.scram_decoys import Decoys, derived_salt

SHA_256, SHA_512 = ScramMechanism
NAMES = [f"user-{number}" for number in range(1_000)]
KAFKAS_SALT = re.compile(rb"[0-9a-z]{20,26}")


def decoys(*credentials: ScramCredential, secret: bytes = b"a secret") -> Decoys:
    made = Decoys(SHA_256, secret)
    made.added(credentials)
    return made


def looking(iterations: int, salt: bytes) -> ScramCredential:
    return ScramCredential(salt, b"stored", b"server", iterations)


def challenges(made: Decoys) -> list[tuple[bytes, int]]:
    return [(decoy.salt, decoy.iterations) for decoy in map(made.of, NAMES)]


def test_a_name_gets_the_same_challenge_each_time_and_over_restarts():
    made = decoys()
    assert challenges(made) == challenges(made) == challenges(decoys())
    assert len({salt for salt, _ in challenges(made)}) == len(NAMES)


def test_another_store_gives_other_challenges():
    here, there = challenges(decoys()), challenges(decoys(secret=b"another"))
    assert not {salt for salt, _ in here} & {salt for salt, _ in there}


def test_a_name_has_another_salt_for_each_mechanism():
    assert Decoys(SHA_512, b"a secret").of("alice").salt != decoys().of("alice").salt
    assert derived_salt(b"s", SHA_256, "alice") != derived_salt(b"s", SHA_512, "alice")


def test_without_users_decoys_look_like_users_of_kafkas_tools():
    for salt, iterations in challenges(decoys()):
        assert iterations == 4096
        assert KAFKAS_SALT.fullmatch(salt)
    real = [credential_of_password(SHA_256, "x", iterations=1).salt for _ in range(1_000)]
    assert all(KAFKAS_SALT.fullmatch(salt) for salt in real)
    ours, kafkas = (
        Counter(map(len, salts)) for salts in ([s for s, _ in challenges(decoys())], real)
    )
    for size in (25, 26):
        assert abs(ours[size] - kafkas[size]) < 150


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_keys_have_the_size_of_the_mechanisms_and_nobody_knows_them(mechanism):
    made = Decoys(mechanism, b"a secret")
    real, decoy = credential_of_password(mechanism, "x"), made.of("alice")
    assert len(decoy.stored_key) == len(real.stored_key)
    assert len(decoy.server_key) == len(real.server_key)
    assert made.of("alice").stored_key != decoy.stored_key


def test_each_look_is_as_frequent_among_decoys_as_among_users():
    users = [looking(4096, b"0" * 25)] * 3 + [looking(8192, b"\0" * 64)]
    looks = Counter(
        (i, "kafka" if KAFKAS_SALT.fullmatch(s) else len(s)) for s, i in challenges(decoys(*users))
    )
    assert looks.keys() == {(4096, "kafka"), (8192, 64)}
    assert 650 < looks[4096, "kafka"] < 850


def test_users_that_come_and_go_change_few_challenges():
    users = [looking(4096, b"0" * 25)] * 99 + [looking(8192, b"0" * 25)]
    made = decoys(*users)
    before = challenges(made)
    made.added([looking(8192, b"0" * 25)])
    changed = sum(a != b for a, b in zip(before, challenges(made), strict=True))
    assert 0 < changed < 50
    made.removed([looking(8192, b"0" * 25)])
    assert challenges(made) == before


def test_the_look_of_the_last_users_is_forgotten_with_them():
    user = looking(16384, b"\0" * 20)
    made = decoys(user)
    assert {iterations for _, iterations in challenges(made)} == {16384}
    made.removed([user])
    assert challenges(made) == challenges(decoys())
