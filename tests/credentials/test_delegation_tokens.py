"""Delegation tokens: life times, who may change them, what is stored, and who logs in with them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from base64 import b64encode
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.auth.sasl.mechanism import Identity
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism, credential_of_password
from aclbroker.broker.credentials import (
    DelegationToken,
    DelegationTokens,
    NotStored,
    TokenError,
    TokenSettings,
    load_credentials,
)
from aclbroker.broker.credentials.delegation_tokens import KIND, load_tokens
from aclbroker.broker.stores import StoreError
from aclbroker.broker.stores.memory import MemoryStore
from tests.credentials.stores import HeldStore
from tests.stores.origins import ORIGIN

SHA_256, SHA_512 = ScramMechanism
START = 1_700_000_000_000
SETTINGS = TokenSettings("key", max_lifetime_ms=10_000, expiry_time_ms=1_000)
SECRET = b"a secret"
ALICE, BOB, CAROL = ["User:alice"], ["User:bob"], ["User:carol"]
LONG_MAX = 2**63 - 1


class Clock:
    """The time that the tokens are told."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> HeldStore:
    return HeldStore()


@pytest.fixture
async def tokens(store, clock) -> DelegationTokens:
    return await load_tokens(store, SETTINGS, SECRET, clock)


async def created(tokens: DelegationTokens, max_lifetime_ms: int = -1) -> DelegationToken:
    """A token of alice, which admin asked for and bob may renew."""
    return await tokens.create("User:alice", "User:admin", ["User:bob"], max_lifetime_ms)


def ignore(_removed: Sequence[DelegationToken]) -> None:
    """Take no notice of tokens that were removed."""


async def refusal(change) -> str:
    with pytest.raises(TokenError) as refused:
        await change
    return refused.value.code.name


@pytest.mark.parametrize(
    ("asked", "lives"),
    [(-1, 10_000), (0, 10_000), (5_000, 5_000), (500, 500), (10_001, 10_000), (LONG_MAX, 10_000)],
)
async def test_a_token_lives_as_long_as_asked_for_and_allowed(tokens, asked, lives):
    token = await created(tokens, asked)
    assert token.information.issue_timestamp == START
    assert token.information.max_timestamp == START + lives
    assert token.information.expiry_timestamp == START + min(lives, 1_000)


async def test_life_times_end_where_numbers_do(store, clock):
    endless = TokenSettings("key", LONG_MAX, LONG_MAX)
    tokens = await load_tokens(store, endless, SECRET, clock)
    token = await created(tokens)
    assert token.information.max_timestamp == token.information.expiry_timestamp == LONG_MAX
    assert await tokens.renew(token.hmac, ALICE, LONG_MAX) == LONG_MAX
    assert await tokens.expire(token.hmac, ALICE, LONG_MAX) == LONG_MAX


async def test_there_are_only_so_many_tokens_of_a_requester(store, clock):
    two = TokenSettings("key", 10_000, 1_000, per_requester=2)
    tokens = await load_tokens(store, two, SECRET, clock)
    token, _ = await created(tokens), await created(tokens)
    with capture_logs() as lines:
        assert await refusal(created(tokens)) == "POLICY_VIOLATION"
    [line] = lines
    assert line["reason"].startswith("there may be 2 tokens of a requester (")
    assert await tokens.create("User:alice", "User:alice", [], -1)
    assert await tokens.renew(token.hmac, ALICE, -1)
    again = await load_tokens(store, two, SECRET, clock)
    assert await refusal(created(again)) == "POLICY_VIOLATION"
    await again.expire(token.hmac, ALICE, -1)
    assert await created(again)


async def test_the_renewers_of_a_token_are_not_longer_than_a_large_request(tokens):
    renewers = [f"User:{number:05}" for number in range(6553)]
    assert await tokens.create("User:alice", "User:alice", renewers, -1)
    refused = tokens.create("User:alice", "User:alice", [*renewers, "User:12"], -1)
    assert await refusal(refused) == "POLICY_VIOLATION"


async def test_the_secret_of_a_token_is_kafkas_hmac_of_its_id(tokens):
    token = await created(tokens)
    assert token.hmac == hmac.new(b"key", token.token_id.encode(), hashlib.sha512).digest()
    assert len(token.token_id) == 22


@pytest.mark.parametrize(
    ("asked", "until"), [(-1, 1_500), (0, 1_500), (100, 600), (5_000, 1_500), (LONG_MAX, 1_500)]
)
async def test_renewing_lets_a_token_expire_later(tokens, clock, asked, until):
    token = await created(tokens)
    clock.now += 500
    assert await tokens.renew(token.hmac, BOB, asked) == START + until
    [renewed] = tokens.tokens()
    assert renewed.information.expiry_timestamp == START + until


async def test_no_token_is_renewed_beyond_its_life(tokens, clock):
    token = await created(tokens, 1_200)
    clock.now += 500
    assert await tokens.renew(token.hmac, ALICE, -1) == START + 1_200


@pytest.mark.parametrize(("asked", "until"), [(0, 0), (200, 200), (50_000, 10_000)])
async def test_expiring_sets_when_a_token_expires(tokens, asked, until):
    token = await created(tokens)
    assert await tokens.expire(token.hmac, ALICE, asked) == START + until
    [changed] = tokens.tokens()
    assert changed.information.expiry_timestamp == START + until


async def test_a_negative_period_removes_a_token_even_an_expired_one(tokens, store, clock):
    token, other = await created(tokens), await created(tokens)
    clock.now += 2_000
    assert await refusal(tokens.expire(token.hmac, ALICE, 0)) == "DELEGATION_TOKEN_EXPIRED"
    assert await tokens.expire(token.hmac, ALICE, -1) == clock.now
    assert tokens.tokens() == [other]
    assert list(await store.load_records(KIND)) == [other.token_id]
    assert await refusal(tokens.expire(token.hmac, ALICE, -1)) == "DELEGATION_TOKEN_NOT_FOUND"


async def test_owner_and_renewers_may_change_a_token_and_nobody_else(tokens):
    token = await created(tokens)
    for change in (tokens.renew, tokens.expire):
        for principals in (ALICE, BOB, ["Group:x", "User:bob"]):
            assert await change(token.hmac, principals, 100) == START + 100
        for principals in (CAROL, ["User:admin"], []):
            refused = change(token.hmac, principals, 100)
            assert await refusal(refused) == "DELEGATION_TOKEN_OWNER_MISMATCH"


@pytest.mark.parametrize("wrong", [b"", b"x", bytes(64)])
async def test_a_secret_of_no_token_finds_none(tokens, wrong):
    await created(tokens)
    assert await refusal(tokens.renew(wrong, ALICE, -1)) == "DELEGATION_TOKEN_NOT_FOUND"
    assert await refusal(tokens.expire(wrong, ALICE, -1)) == "DELEGATION_TOKEN_NOT_FOUND"


async def test_an_expired_token_is_not_renewed_whoever_asks(tokens, clock):
    token = await created(tokens)
    clock.now += 1_000
    assert await tokens.renew(token.hmac, ALICE, -1) == clock.now + 1_000
    clock.now += 1_001
    for principals in (ALICE, CAROL):
        refused = tokens.renew(token.hmac, principals, -1)
        assert await refusal(refused) == "DELEGATION_TOKEN_EXPIRED"


@pytest.mark.parametrize("mechanism", ScramMechanism)
async def test_the_owner_logs_in_with_id_and_secret_until_the_token_expires(
    tokens, clock, mechanism
):
    token = await created(tokens)
    login = tokens.look_up(mechanism, token.token_id)
    assert login.identity == Identity("alice", (START + 1_000) / 1000, token_authenticated=True)
    password = b64encode(token.hmac).decode()
    expected = credential_of_password(mechanism, password, login.credential.salt, 4096)
    assert login.credential == expected
    clock.now += 1_001
    expired = tokens.look_up(mechanism, token.token_id)
    assert expired.identity is None
    assert expired.credential.salt == login.credential.salt
    assert expired.credential.stored_key != login.credential.stored_key


async def test_a_renewed_token_is_good_for_longer(tokens, clock):
    token = await created(tokens)
    clock.now += 900
    await tokens.renew(token.hmac, ALICE, -1)
    clock.now += 900
    assert tokens.look_up(SHA_512, token.token_id).identity.expires_at == (START + 1_900) / 1000


async def test_a_token_of_another_type_of_principal_is_no_login_of_a_user(tokens):
    token = await tokens.create("Group:admin", "User:alice", [], -1)
    assert tokens.look_up(SHA_512, token.token_id).identity is None


async def test_who_is_no_token_gets_the_same_decoy_each_time(tokens):
    one, other = (tokens.look_up(SHA_512, "nothing") for _ in range(2))
    assert one.identity is other.identity is None
    assert one.credential.salt == other.credential.salt
    assert one.credential.iterations == 4096


async def test_tokens_are_there_after_a_restart_and_log_in_as_before(tokens, store, clock):
    token = await created(tokens)
    clock.now += 100
    await tokens.renew(token.hmac, BOB, -1)
    login = tokens.look_up(SHA_256, token.token_id)
    again = await load_tokens(store, SETTINGS, SECRET, clock)
    assert again.tokens() == tokens.tokens()
    assert again.look_up(SHA_256, token.token_id) == login
    assert await again.expire(token.hmac, ALICE, -1) == clock.now


async def test_a_token_is_worth_nothing_with_another_key(tokens, store, clock):
    token = await created(tokens)
    other = SETTINGS._replace(secret_key="another")
    again = await load_tokens(store, other, SECRET, clock)
    assert await refusal(again.renew(token.hmac, ALICE, -1)) == "DELEGATION_TOKEN_NOT_FOUND"
    before = tokens.look_up(SHA_256, token.token_id).credential
    assert again.look_up(SHA_256, token.token_id).credential.stored_key != before.stored_key


async def test_neither_the_secret_of_a_token_nor_its_keys_are_stored_or_shown(tokens, store):
    token = await created(tokens)
    tokens.look_up(SHA_256, token.token_id)
    password = b64encode(token.hmac).decode()
    kept = str(await store.load_records(KIND))
    for text in (kept, repr(tokens.tokens()), repr(SETTINGS)):
        assert password not in text
        assert str(token.hmac) not in text
        assert "'key'" not in text
    assert token.token_id in kept


async def test_expired_tokens_are_removed(tokens, store, clock):
    expired = [await created(tokens) for _ in range(3)]
    clock.now += 500
    kept = await created(tokens)
    clock.now += 501
    with capture_logs() as logs:
        await tokens.sweep(ignore)
    assert tokens.tokens() == [kept]
    assert list(await store.load_records(KIND)) == [kept.token_id]
    assert await refusal(tokens.renew(expired[0].hmac, ALICE, -1)) == "DELEGATION_TOKEN_NOT_FOUND"
    assert [log["count"] for log in logs] == [3]
    with capture_logs() as logs:
        await tokens.sweep(ignore)
    assert logs == []


async def test_a_shared_store_is_asked_what_others_have_changed_where_a_token_has_expired(
    tokens, store, clock
):
    asked = []

    async def has_reached(position: int) -> bool:
        asked.append(position)
        return True

    tokens.followed_by(has_reached)
    await created(tokens)
    tokens.take(await store.load_records(KIND), True)
    asked.clear()
    await tokens.sweep(ignore)
    assert asked == []
    clock.now += 1_001
    await tokens.sweep(ignore)
    assert asked == [1, 2]


async def test_thousands_of_expired_tokens_are_removed_and_each_is_told(tokens, clock):
    requesters = [f"User:{number % 3}" for number in range(2_500)]
    made = await asyncio.gather(*(tokens.create("User:alice", each, [], -1) for each in requesters))
    clock.now += 1_001
    removed: list[DelegationToken] = []
    await tokens.sweep(removed.extend)
    assert tokens.tokens() == []
    assert {each.token_id for each in removed} == {each.token_id for each in made}
    assert len(removed) == 2_500


async def test_a_token_is_there_once_it_is_stored(tokens, store):
    store.through.clear()
    creation = asyncio.create_task(created(tokens))
    await asyncio.sleep(0)
    assert tokens.tokens() == []
    store.through.set()
    token = await creation
    assert tokens.tokens() == [token]


async def test_what_cannot_be_stored_is_not_done(tokens, store, clock):
    token = await created(tokens)
    store.broken = True
    for change in (
        created(tokens),
        tokens.renew(token.hmac, ALICE, 1),
        tokens.expire(token.hmac, ALICE, -1),
    ):
        with pytest.raises(NotStored):
            await change
    assert tokens.tokens() == [token]
    clock.now += 1_001
    removed: list[DelegationToken] = []
    with pytest.raises(NotStored):
        await tokens.sweep(removed.extend)
    assert removed == []
    assert tokens.tokens() == [token]


async def test_changes_after_the_end_are_refused(tokens):
    await tokens.close()
    with pytest.raises(NotStored, match="shutting down"):
        await created(tokens)


@pytest.mark.parametrize(
    "value",
    [
        "sesame",
        "[]",
        "{}",
        '{"owner": "User:sesame"}',
        '{"owner": 1, "requester": "User:b", "renewers": [], "issue_timestamp": 1,'
        ' "max_timestamp": 1, "expiry_timestamp": 1}',
        '{"owner": "User:a", "requester": "User:b", "renewers": [], "issue_timestamp": 1,'
        ' "max_timestamp": "1", "expiry_timestamp": 1}',
    ],
)
async def test_a_record_that_is_no_token_is_named_and_not_shown(store, value):
    await store.apply_records(KIND, {"token-1": value}, [], ORIGIN)
    with pytest.raises(StoreError, match="token-1") as refused:
        await load_tokens(store, SETTINGS, SECRET)
    assert "sesame" not in str(refused.value)


async def test_expired_tokens_are_removed_in_the_background():
    store = HeldStore()
    credentials = await load_credentials(store, SETTINGS._replace(expiry_time_ms=1), 5)
    removed: list[DelegationToken] = []
    credentials.start(removed.extend)
    tokens = credentials.tokens
    assert tokens is not None
    store.broken = True
    with pytest.raises(NotStored):
        await created(tokens)
    store.broken = False
    token = await created(tokens)
    async with asyncio.timeout(20):
        while tokens.tokens():
            await asyncio.sleep(0.005)
    await credentials.close()
    assert removed == [token]
    assert await store.load_records(KIND) == {}


async def test_a_name_of_a_token_and_of_a_user_have_different_decoys():
    store = MemoryStore()
    credentials = await load_credentials(store, SETTINGS, 1_000)
    look_up = credentials.look_up(SHA_256)
    assert look_up("x", True).credential.salt != look_up("x", False).credential.salt
    await credentials.close()
    again = (await load_credentials(store, None, 1_000)).look_up(SHA_256)
    assert again("x", False).credential.salt == look_up("x", False).credential.salt


async def test_without_tokens_a_login_with_one_fails():
    credentials = await load_credentials(MemoryStore(), None, 1_000)
    assert credentials.tokens is None
    assert credentials.look_up(SHA_256)("x", True).identity is None


async def test_a_store_whose_secret_is_none_is_refused():
    store = MemoryStore()
    await store.apply_records("secret", {"scram.salts": "sesame"}, [], ORIGIN)
    with pytest.raises(StoreError, match=r"scram\.salts") as refused:
        await load_credentials(store, None, 1_000)
    assert "sesame" not in str(refused.value)


async def test_a_token_has_the_groups_of_its_owners_access_token_after_a_restart_too(
    tokens, store, clock
):
    groups = ("Group:eu", "Group:staff")
    token = await tokens.create("User:alice", "User:alice", [], -1, "", groups)
    other = await created(tokens)
    await tokens.renew(token.hmac, ALICE, -1)
    again = await load_tokens(store, SETTINGS, SECRET, clock)
    for each in (tokens, again):
        identity = each.look_up(SHA_256, token.token_id).identity
        assert identity is not None
        assert (identity.name, identity.groups) == ("alice", groups)
        without = each.look_up(SHA_256, other.token_id).identity
        assert without is not None
        assert without.groups == ()
    # Versions that know of no groups can read those without.
    kept = await store.load_records(KIND)
    assert "groups" in kept[token.token_id]
    assert "groups" not in kept[other.token_id]
