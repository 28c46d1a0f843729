"""Brokers that share a SQLite file: each change holds at all of them, whoever is killed."""

from __future__ import annotations

import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.scram_users import add_user, remove_user
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.protocol.errors import ErrorCode
from tests.acl.examples import allow, deny
from tests.conftest import StartBroker
from tests.server.test_topic_ids import cluster_id, topic_ids
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.delegation_tokens import TOKENS, Users, create, expire, ids, renew
from tests.support.process import wait_for

WITHIN = 20.0
KILLS = 5


def two(
    start_broker: StartBroker, tmp_path: Path, overrides: dict[str, str]
) -> tuple[Broker, Broker]:
    """Brokers with directories of their own, for their logs, and one store."""
    brokers = []
    for number in (1, 2):
        directory = tmp_path / str(number)
        directory.mkdir()
        settings = {"aclbroker.store": f"sqlite:///{tmp_path}/shared.db", "node.id": str(number)}
        brokers.append(start_broker(settings | overrides, directory))
    return brokers[0], brokers[1]


def session(broker: Broker) -> Session:
    return open_session(read_addresses(broker.listeners["PLAINTEXT"]), ClientSettings())


def come_to(broker: Broker, expected: list[AclBinding]) -> None:
    def has_come() -> bool | None:
        with session(broker) as client:
            return sorted(describe_acls(client)) == sorted(expected) or None

    wait_for(f"{expected}", has_come, WITHIN)


def test_what_is_changed_through_one_broker_holds_at_the_other_and_after_a_restart(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    one, other = two(start_broker, tmp_path, {})
    with session(one) as at_one, session(other) as at_other:
        create_acls(at_one, [allow(), deny()])
        come_to(other, [allow(), deny()])
        # A deletion takes what another has added just now, whether it has come here or not.
        create_acls(at_one, [allow("User:bob")])
        delete_acls(at_other, [exactly(deny()), exactly(allow("User:bob"))])
        come_to(one, [allow()])
        create_acls(at_one, [deny()])
    one.terminate()
    come_to(other, [allow(), deny()])
    one.start()
    come_to(one, [allow(), deny()])
    assert cluster_id(one) == cluster_id(other)


def test_users_tokens_and_topic_ids_are_those_of_both(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    catalog = {"aclbroker.catalog.topics": "orders:1,payments:2"}
    one, other = two(start_broker, tmp_path, TOKENS | catalog)
    assert topic_ids(one) == topic_ids(other)
    with closing(Users(one)) as at_one, closing(Users(other)) as at_other:
        token = create(at_one["alice"])
        wait_for("the token", lambda: ids(at_other["alice"]) == {token.token_id} or None, WITHIN)
        assert at_other.with_token(token)[1].error_code == 0
        assert expire(at_other["alice"], token).error_code == 0
        # It is gone here at once, so that it is not renewed: that would bring it back.
        refused = renew(at_one["alice"], token)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert ids(at_one["alice"]) == set()
    with session(one) as at_first, session(other) as at_second:
        add_user(at_first, "dora", "sesame", ScramMechanism.SCRAM_SHA_256, 4096)
        # Whoever was added a moment ago is known to who is asked to remove it.
        remove_user(at_second, "dora", [ScramMechanism.SCRAM_SHA_256])
        add_user(at_second, "dora", "simsim", ScramMechanism.SCRAM_SHA_256, 4096)

    def logs_in() -> bool | None:
        with Client(one.listeners["SASL_PLAINTEXT"]) as client:
            return client.login_scram("dora", "simsim", "SCRAM-SHA-256").error_code == 0 or None

    wait_for("the login", logs_in, WITHIN)


def is_among(name: str, acknowledged: list[str]) -> bool | None:
    return name in acknowledged or None


@pytest.mark.thorough
@pytest.mark.broker_process
def test_brokers_that_are_killed_harm_nothing_at_the_other(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    killed, steady = two(start_broker, tmp_path, {})
    acknowledged: list[str] = []
    is_over = threading.Event()

    def write(address: str, name: str) -> None:
        with Client(address) as client:
            for number in range(1_000_000):
                try:
                    codes = client.create(topic_read(f"{name}-{number}"))
                except ConnectionError:
                    return
                assert codes == [0]
                acknowledged.append(f"{name}-{number}")
                if is_over.is_set():
                    return

    going_on = threading.Thread(target=write, args=(steady.listeners["PLAINTEXT"], "steady"))
    going_on.start()
    for kill in range(KILLS):
        address = killed.listeners["PLAINTEXT"]
        writer = threading.Thread(target=write, args=(address, f"killed-{kill}"))
        writer.start()
        wait_for("writes", partial(is_among, f"killed-{kill}-{5 * kill}", acknowledged), WITHIN)
        killed.kill()
        writer.join()
        killed.start()
    is_over.set()
    going_on.join()
    stored = set(acknowledged)
    for broker in (killed, steady):

        def has_all(broker: Broker = broker) -> set[str] | None:
            with Client(broker.listeners["PLAINTEXT"]) as client:
                found = set(client.resource_names())
            return found if stored <= found else None

        # Of each that was killed the one change may be there that was in flight.
        assert len(wait_for("all", has_all, WITHIN) - stored) <= KILLS
