"""SCRAM users: changed by Kafka's rules, stored before they are seen, and there after a restart."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.auth.sasl.mechanism import Identity
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism, credential_of_password
from aclbroker.broker.credentials import ScramUsers
from aclbroker.broker.credentials.scram_users import KIND, load_users
from aclbroker.broker.observability.limited_log import PEER_BURST, LimitedLog
from aclbroker.broker.stores import Origin, StoreError
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.credentials.stores import HeldStore
from tests.stores.origins import ORIGIN

SHA_256, SHA_512 = ScramMechanism
SECRET = b"a secret"
DONE, TWICE, MISSING, UNACCEPTABLE, UNSUPPORTED, FAILED = 0, 92, 91, 93, 33, -1


def up(
    user: str,
    mechanism: int = 1,
    iterations: int = 4096,
    password: str = "pencil",
    salted: bytes | None = None,
) -> ScramCredentialUpsertion:
    if salted is None:
        hash_name = "sha256" if mechanism == 1 else "sha512"
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), b"salt", max(1, iterations))
    return ScramCredentialUpsertion(user, mechanism, iterations, b"salt", salted)


def down(user: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(user, mechanism)


@pytest.fixture
def store() -> HeldStore:
    return HeldStore()


@pytest.fixture
async def users(store) -> ScramUsers:
    """Users `kept` and `other`, with a SHA-256 credential each."""
    users = await load_users(store, SECRET)
    assert await codes(users, [], [up("kept"), up("other", password="x")]) == {
        "kept": DONE,
        "other": DONE,
    }
    return users


async def codes(users: ScramUsers, deletions, upsertions) -> dict[str, int]:
    outcomes = await users.alter(deletions, upsertions)
    return {user: outcome.error_code for user, outcome in outcomes.items()}


def shown(users: ScramUsers) -> dict[str, dict[ScramMechanism, int]]:
    return {user: users.iterations(user) for user in users.users()}


KEPT = {"kept": {SHA_256: 4096}, "other": {SHA_256: 4096}}


@pytest.mark.parametrize(
    ("deletions", "upsertions", "expected"),
    [
        ([], [], {}),
        ([], [up("new", 2, 16384)], {"new": DONE}),
        ([], [up("kept", 2, 8192)], {"kept": DONE}),
        ([], [up("kept", 1, 8192)], {"kept": DONE}),
        ([down("kept")], [up("new")], {"kept": DONE, "new": DONE}),
        ([down("kept")], [up("kept", 2)], {"kept": TWICE}),
        ([down("kept"), down("kept")], [], {"kept": TWICE}),
        ([down("kept"), down("kept", 2)], [], {"kept": TWICE}),
        ([], [up("new"), up("new", 2)], {"new": TWICE}),
        ([], [up("new")] * 3, {"new": TWICE}),
        ([down("kept", 2)], [up("kept")], {"kept": MISSING}),
        ([down("nobody"), down("nobody")], [], {"nobody": MISSING}),
        ([down("")], [up("", 0)], {"": UNACCEPTABLE}),
        ([down("a", 0), down("b", 3)], [up("c", -1)], dict.fromkeys("abc", UNSUPPORTED)),
        ([], [up("a", 1, 4095), up("b", 2, 16385)], dict.fromkeys("ab", UNACCEPTABLE)),
        ([], [up("a", 1, -1), up("a")], {"a": UNACCEPTABLE}),
        ([], [up("a"), up("a", 1, -1)], {"a": TWICE}),
        ([], [up("a", salted=b"")], {"a": FAILED}),
        ([], [up("a", salted=b""), up("a")], {"a": TWICE}),
    ],
)
async def test_each_user_has_one_outcome_and_what_failed_changes_nothing(
    users, store, deletions, upsertions, expected
):
    outcomes = await users.alter(deletions, upsertions)
    assert {user: outcome.error_code for user, outcome in outcomes.items()} == expected
    there = {user: dict(infos) for user, infos in KEPT.items()}
    for change in deletions:
        if expected[change.name] == DONE:
            del there[change.name][ScramMechanism(change.mechanism)]
    for change in upsertions:
        if expected[change.name] == DONE:
            there.setdefault(change.name, {})[ScramMechanism(change.mechanism)] = change.iterations
    there = {user: infos for user, infos in there.items() if infos}
    assert shown(users) == there
    assert shown(await load_users(store, SECRET)) == there


async def test_a_credential_is_that_of_the_password(users):
    login = users.look_up(SHA_256, "kept")
    assert login.credential == credential_of_password(SHA_256, "pencil", b"salt")
    assert login.identity == Identity("kept")


async def test_who_is_not_there_gets_a_decoy_that_is_the_same_after_a_restart(users, store):
    for login in (
        users.look_up(SHA_256, "nobody"),
        users.look_up(SHA_512, "kept"),
        (await load_users(store, SECRET)).look_up(SHA_256, "nobody"),
    ):
        assert login.identity is None
    one, other = users, await load_users(store, SECRET)
    assert one.look_up(SHA_256, "x").credential.salt == other.look_up(SHA_256, "x").credential.salt


async def test_a_decoy_looks_like_the_users_there_are(users):
    await codes(users, [down("kept"), down("other")], [up("new", 1, 12345)])
    decoy = users.look_up(SHA_256, "nobody").credential
    assert (decoy.iterations, len(decoy.salt)) == (12345, len(b"salt"))


async def test_a_change_is_seen_once_it_is_stored(users, store):
    store.through.clear()
    change = asyncio.create_task(codes(users, [down("other")], [up("new")]))
    await asyncio.sleep(0)
    assert shown(users) == KEPT
    assert not change.done()
    store.through.set()
    assert await change == {"other": DONE, "new": DONE}
    assert shown(users).keys() == {"kept", "new"}


async def test_changes_at_the_same_time_are_made_one_after_the_other(users, store):
    store.through.clear()
    changes = [
        asyncio.create_task(codes(users, [down("kept")], [])),
        asyncio.create_task(codes(users, [down("kept")], [up("new")])),
    ]
    await asyncio.sleep(0)
    store.through.set()
    assert await asyncio.gather(*changes) == [{"kept": DONE}, {"kept": MISSING, "new": DONE}]
    assert shown(users).keys() == shown(await load_users(store, SECRET)).keys() == {"other", "new"}


async def test_a_change_that_cannot_be_stored_is_not_made(users, store):
    store.broken = True
    with capture_logs() as logs:
        outcomes = await users.alter([down("kept"), down("")], [up("new")])
    assert {user: outcome.error_code for user, outcome in outcomes.items()} == {
        "kept": FAILED,
        "": UNACCEPTABLE,
        "new": FAILED,
    }
    assert outcomes["kept"].error_message.startswith("The store could not save the change")
    assert [(log["log_level"], log["reason"]) for log in logs] == [("error", "the disk is full")]
    assert shown(users) == KEPT
    store.broken = False
    assert await codes(users, [down("kept")], []) == {"kept": DONE}


async def test_changes_that_wait_are_made_before_the_end_and_later_ones_refused(users, store):
    store.through.clear()
    change = asyncio.create_task(codes(users, [], [up("new")]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(users.close())
    await asyncio.sleep(0)
    assert not closing.done()
    store.through.set()
    await closing
    assert await change == {"new": DONE}
    late = await users.alter([], [up("late")])
    assert late["late"].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "shutting down" in late["late"].error_message
    assert "late" not in users.users()


async def test_a_user_of_any_name_is_kept(store):
    names = ["a:b", ":", "SCRAM-SHA-256:x", "\xe9\0\U0001d11e", " "]
    users = await load_users(store, SECRET)
    assert set((await codes(users, [], [up(name, 2) for name in names])).values()) == {DONE}
    assert (await load_users(store, SECRET)).users() == names


async def test_changes_that_cannot_be_stored_leave_a_few_lines_of_each_peer(store):
    users = await load_users(store, SECRET, LimitedLog(lambda: 0.0))
    store.broken = True
    with capture_logs() as logs:
        for host in ("192.0.2.1", "192.0.2.2"):
            for _ in range(PEER_BURST + 9):
                outcomes = await users.alter([], [up("new")], Origin.now("User:a", host))
                assert outcomes["new"].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    expected = {"event": "credentials not changed", "kind": KIND, "reason": "the disk is full"}
    assert [each.items() >= expected.items() for each in logs] == [True] * 2 * PEER_BURST
    assert [each["peer"] for each in logs[PEER_BURST - 1 :][:2]] == ["192.0.2.1", "192.0.2.2"]


async def test_passwords_and_salted_passwords_are_not_in_the_store(users, store):
    [value, _] = (await store.load_records(KIND)).values()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    assert "pencil" not in value
    assert not any(part in value for part in (salted.hex(), str(salted)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("SCRAM-SHA-256:alice", "sesame"), ("SCRAM-SHA-1:alice", None), ("alice", None)],
)
async def test_a_record_that_is_no_credential_is_named_and_not_shown(name, value):
    store = MemoryStore()
    fitting = credential_of_password(SHA_256, "x").to_json()
    await store.apply_records(KIND, {name: value or fitting}, [], ORIGIN)
    with pytest.raises(StoreError, match=name) as refused:
        await load_users(store, SECRET)
    assert "sesame" not in str(refused.value)


async def test_a_change_is_checked_by_what_others_have_changed_in_a_shared_store():
    store = MemoryStore(is_shared=True)
    users, others = await load_users(store, SECRET), await load_users(store, SECRET)
    is_told = True

    async def has_reached(_position: int) -> bool:
        users.take(dict(await store.load_records(KIND)), True)
        return is_told

    users.followed_by(has_reached)
    assert await codes(others, [], [up("new")]) == {"new": DONE}
    assert await codes(users, [down("new")], []) == {"new": DONE}
    is_told = False
    assert await codes(users, [], [up("new")]) == {"new": FAILED}
    assert await store.load_records(KIND) == {}
