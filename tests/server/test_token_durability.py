"""Delegation tokens over restarts, crashes, changes of the key, and a store that fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from aclbroker.protocol.errors import ErrorCode
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.client import topic_read
from tests.support.delegation_tokens import KEY, TOKENS, Users, create, describe, expire, ids, renew
from tests.support.process import wait_for

LogIn = Callable[[Broker], Users]


@pytest.fixture
def log_in() -> Iterator[LogIn]:
    """Makes connections of users to a broker, closed at the end."""
    opened = []

    def connect(broker: Broker) -> Users:
        opened.append(Users(broker))
        return opened[-1]

    yield connect
    for users in opened:
        users.close()


@pytest.mark.broker_process
def test_expired_tokens_are_removed_and_the_rest_kept_over_restarts(
    start_broker: StartBroker, log_in: LogIn
) -> None:
    broker = start_broker(TOKENS | {"delegation.token.expiry.check.interval.ms": "20"})
    users = log_in(broker)
    kept, lost, gone = (create(users["alice"]) for _ in range(3))
    assert expire(users["alice"], lost, 0).error_code == 0
    assert expire(users["alice"], gone).error_code == 0
    wait_for("removal", lambda: ids(users["alice"]) == {kept.token_id} or None, 20)
    broker.kill()
    broker.start()
    users = log_in(broker)
    assert ids(users["alice"]) == {kept.token_id}
    assert users.with_token(kept)[1].error_code == 0
    assert users.with_token(gone)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.thorough
@pytest.mark.broker_process
def test_every_token_that_was_answered_survives_kill_9(
    start_broker: StartBroker, log_in: LogIn
) -> None:
    broker = start_broker(TOKENS)
    answered = set()
    for _ in range(5):
        users = log_in(broker)
        answered |= {create(users["alice"]).token_id for _ in range(10)}
        broker.kill()
        broker.start()
        assert ids(log_in(broker)["alice"]) == answered


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_secret_key_tokens_are_disabled_and_those_kept_stay(
    start_broker: StartBroker, log_in: LogIn, key: str | None
) -> None:
    broker = start_broker(TOKENS)
    token = create(log_in(broker)["alice"])
    broker.terminate()
    broker.properties.pop("delegation.token.secret.key")
    if key is not None:
        broker.properties["delegation.token.secret.key"] = key
    broker.start()
    users = log_in(broker)
    disabled = create(users["alice"])
    assert (disabled.error_code, disabled.issue_timestamp_ms, disabled.token_id) == (61, 0, "")
    assert (disabled.principal_name, disabled.token_requester_principal_name) == ("alice", "alice")
    for change in (renew(users["alice"], token), expire(users["alice"], token)):
        assert (change.error_code, change.expiry_timestamp_ms) == (61, 0)
    assert describe(users["alice"]).error_code == 61
    assert users.with_token(token)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    broker.terminate()
    broker.properties["delegation.token.secret.key"] = KEY
    broker.start()
    assert ids(log_in(broker)["alice"]) == {token.token_id}


def test_with_another_secret_key_no_old_token_gets_in(
    start_broker: StartBroker, log_in: LogIn
) -> None:
    broker = start_broker(TOKENS)
    token = create(log_in(broker)["alice"])
    broker.terminate()
    broker.properties["delegation.token.secret.key"] = "another"
    broker.start()
    users = log_in(broker)
    assert users.with_token(token)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert renew(users["alice"], token).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_store_that_cannot_be_written_is_an_error_and_then_works_again(
    start_broker: StartBroker, log_in: LogIn
) -> None:
    broker = start_broker(TOKENS)
    users = log_in(broker)
    token = create(users["alice"])
    with closing(sqlite3.connect(broker.store, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        failed = create(users["alice"])
        assert (failed.error_code, failed.token_id, failed.hmac) == (-1, "", b"")
        shell.execute("ROLLBACK")
    assert ids(users["alice"]) == {token.token_id}
    assert create(users["alice"]).error_code == 0
    assert users["admin"].create(topic_read("t")) == [0]
