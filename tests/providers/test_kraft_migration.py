"""Seed 003's migration of a real Kafka's own ACLs, step by step, with its property names.

Two brokers whose rules are those of a Kafka 4.3.0 are restarted one after the other with the
properties of the next step. All the time clients ask each of them, and no answer may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding, AclFilter, PatternType
from aclbroker.broker.client.acls import create_acls, delete_acls, exactly
from tests.acl.examples import DESCRIBE, allow, deny
from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, held
from tests.http_api.test_acls import sees
from tests.providers.test_kraft import acls_of, session
from tests.providers.test_migration import (
    CONFLUENT_AUTHORIZER,
    EXPECTED,
    LKC,
    MIGRATES,
    PROVIDERS,
    WITHIN,
    Asking,
    centrally,
    create,
    creation,
    delete,
    holds,
    is_told_to_be_done,
    restart,
)
from tests.support.broker import Broker
from tests.support.kafka import Kafka, free_ports
from tests.support.process import wait_for

BOTH = "CONFLUENT, KRAFT_ACL"


def may(user: str, topic: str) -> AclBinding:
    return allow(f"User:{user}", DESCRIBE, topic)


def may_not(user: str, topic: str) -> AclBinding:
    return deny(f"User:{user}", DESCRIBE, topic)


AT_FIRST = (
    may("alice", "orders"),
    may("alice", "pre-")._replace(pattern_type=PatternType.PREFIXED),
    may_not("alice", "pre-secret"),
    may("*", "orders-of-bob"),
    may_not("alice", "orders-of-bob"),
    may("*", "everyone"),
    may("alice", "goes"),
    may("alice", "goes-by-kafka"),
)


@pytest.fixture
def own(kafka: Kafka) -> Iterator[str]:
    """A listener of a Kafka with the first ACLs, which has none afterwards."""
    address = kafka.listeners["PLAINTEXT"]
    with session(address) as client:
        delete_acls(client, [AclFilter()])
        create_acls(client, AT_FIRST)
        yield address
        delete_acls(client, [AclFilter()])


def _end(broker: Broker) -> None:
    if broker.process is not None:
        broker.kill()


@pytest.fixture
def brokers(own: str, tmp_path: Path) -> Iterator[list[Broker]]:
    """Two brokers that decide by what the Kafka has, and by nothing else."""
    made = []
    for number in (1, 2):
        directory = tmp_path / f"broker-{number}"
        directory.mkdir()
        plain, sasl = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
        broker = Broker(directory, {"listeners": listeners, "broker.id": str(number)})
        broker.properties |= {
            "authorizer.class.name": CONFLUENT_AUTHORIZER,
            PROVIDERS: "KRAFT_ACL",
            "aclbroker.provider.kraft.store": f"kafka+acls://{own}",
            "aclbroker.provider.kraft.interval.ms": "50",
        }
        made.append(broker)
    with ExitStack() as ending:
        for each in made:
            ending.callback(_end, each)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Broker.start, made))
        yield made


@pytest.mark.thorough
def test_a_kafkas_acls_become_centralised_and_no_answer_changes_on_the_way(
    own: str, start_broker: StartBroker, brokers: list[Broker]
) -> None:
    topic = f"kafka://{own}/centralised-acls-of-kraft"
    server = start_broker(MDS | held(LKC, **{f"aclbroker.clusters.{LKC}.store": topic}))
    api = Api(server).login()
    one, copier = brokers
    for (user, name), expected in EXPECTED.items():
        holds(brokers, user, name, allowed=expected)
    asking = Asking(brokers)
    with asking.going_on(), session(own) as kafka:
        # Step 1: all brokers decide by both, and ACLs are managed as before.
        for each in brokers:
            both = {PROVIDERS: BOTH, "aclbroker.provider.confluent.store": topic}
            restart(each, asking, **both)
        create(one, creation("before", "alice"))
        holds(brokers, "alice", "before", allowed=True)
        assert may("alice", "before") in acls_of(own)
        assert api.search(LKC) == []

        # Steps 2 and 3: one broker copies, and listens for changes.
        restart(copier, asking, **{MIGRATES: "true"})
        create(one, creation("during", "alice"))
        create_acls(kafka, [may_not("alice", "pre-not"), may("bob", "by-kafka")])
        holds(brokers, "bob", "by-kafka", allowed=True)
        holds(brokers, "alice", "pre-not", allowed=False)
        wait_for("the copy", lambda: "goes" in centrally(api) or None, WITHIN)
        assert delete(one, "goes") == 1
        holds(brokers, "alice", "goes", allowed=False)
        delete_acls(kafka, [exactly(may("alice", "goes-by-kafka"))])
        holds(brokers, "alice", "goes-by-kafka", allowed=False)
        asking.expected |= {
            ("alice", "before"): True,
            ("alice", "during"): True,
            ("alice", "pre-not"): False,
            ("bob", "by-kafka"): True,
            ("alice", "goes"): False,
            ("alice", "goes-by-kafka"): False,
        }

        # Step 4: they are there.
        names = [
            *("before", "by-kafka", "during", "everyone", "orders", "orders-of-bob"),
            *("pre-", "pre-not", "pre-secret"),
        ]
        wait_for("the ACLs", lambda: centrally(api) == names or None, WITHIN)
        is_told_to_be_done(copier)

        # Step 5: the centralised ones alone; the broker that copies comes last.
        restart(one, asking, **{PROVIDERS: "CONFLUENT"})
        create_acls(kafka, [may("bob", "late-old-way")])
        holds(brokers, "bob", "late-old-way", allowed=True)
        asking.expected |= {("bob", "late-old-way"): True}
        restart(copier, asking, **{PROVIDERS: "CONFLUENT", MIGRATES: "false"})

        # Afterwards what is added to the Kafka is ignored.
        create_acls(kafka, [may("bob", "ignored")])
        create(one, creation("afterwards", "bob"))
        holds(brokers, "bob", "afterwards", allowed=True)
        assert "afterwards" in centrally(api)
        assert not any(sees(each, "bob", "ignored") for each in brokers)
