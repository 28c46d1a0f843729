"""Seed 003's migration: a cluster's own ACLs become centralised ones while clients go on.

Two brokers are restarted one after the other with the properties of the next step, whose names
are Confluent's. All the time clients ask each of them, and no answer may change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, broker_cluster_id, held
from tests.http_api.test_acls import sees
from tests.server.test_scram import alter, upsertion
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.kafka import Kafka, free_ports
from tests.support.process import wait_for
from tests.support.zookeeper import ACL_AUTHORIZER, acl_command, running_zookeeper

CONFLUENT_AUTHORIZER = "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer"
PROVIDERS = "confluent.authorizer.access.rule.providers"
MIGRATES = "confluent.authorizer.migrate.acls.from.cluster"
LKC = "lkc-1"
WITHIN = 20.0

ALLOW, DENY = 3, 2
DESCRIBE, ALL = 8, 2
LITERAL, PREFIXED = 3, 4

EXPECTED = {
    ("alice", "orders"): True,
    ("alice", "orders-of-bob"): False,
    ("alice", "pre-1"): True,
    ("alice", "pre-secret"): False,
    ("bob", "orders"): False,
    ("bob", "everyone"): True,
    ("bob", "pre-1"): False,
}
"""What users may describe, at every step."""


def creation(topic: str, user: str, permission: int = ALLOW, pattern: int = LITERAL) -> AclCreation:
    return AclCreation(2, topic, pattern, f"User:{user}", "*", DESCRIBE, permission)


def create(broker: Broker, *creations: AclCreation) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(*creations) == [0] * len(creations)


def delete(broker: Broker, topic: str) -> int:
    """Delete the ACLs of a topic; return how many there were."""
    with Client(broker.listeners["PLAINTEXT"]) as client:
        request = DeleteAclsRequest([DeleteAclsFilter(2, topic, LITERAL, None, None, 1, 1)])
        [result] = client.ask(ApiKey.DELETE_ACLS, 3, request).filter_results
        assert result.error_code == 0, result
        return len(result.matching_acls)


def described(broker: Broker) -> list[str]:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        return client.resource_names()


class Asking:
    """Asks all brokers all questions, again and again; a broker that is away is left out."""

    def __init__(self, brokers: list[Broker]) -> None:
        self.expected = dict(EXPECTED)
        self.wrong: list[str] = []
        self.asked = {broker.directory.name: 0 for broker in brokers}
        self._brokers = brokers
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(each,)) for each in brokers]

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Ask within the block; at its end every answer must have been right."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._ends.set()
            for thread in self._threads:
                thread.join()
        assert self.wrong == []

    def _ask(self, broker: Broker) -> None:
        while not self._ends.is_set():
            for (user, topic), expected in list(self.expected.items()):
                try:
                    found = sees(broker, user, topic)
                except (OSError, EOFError):
                    self._ends.wait(0.02)
                    continue
                self.asked[broker.directory.name] += 1
                if found is not expected:
                    state = broker.properties.get(PROVIDERS, "none")
                    self.wrong.append(f"{broker.directory.name} ({state}): {user} {topic}: {found}")
            # Not all of a core, which the brokers need to start.
            self._ends.wait(0.02)


def holds(brokers: list[Broker], user: str, topic: str, *, allowed: bool) -> None:
    """Wait until all brokers decide like this."""
    for each in brokers:
        wait_for(
            f"{topic} at {each.directory.name}",
            lambda each=each: sees(each, user, topic) is allowed or None,  # type: ignore[misc]
            WITHIN,
        )


def is_told_to_be_done(copier: Broker) -> None:
    """Wait until the log says that all is copied, which it does once that is written down, too."""
    done = "ACLs migrated to the centralised store"
    wait_for(done, lambda: done in {each["event"] for each in copier.events()} or None, WITHIN)


def restart(broker: Broker, asking: Asking, **properties: str) -> None:
    """Restart with changed properties; wait until it has answered some questions."""
    broker.properties |= {name.replace("_", "."): value for name, value in properties.items()}
    broker.restart()
    before = asking.asked[broker.directory.name]
    name, enough = broker.directory.name, before + 2 * len(asking.expected)
    wait_for("answers", lambda: asking.asked[name] > enough or None, WITHIN)


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Callable[[str], list[Broker]]]:
    """Make two brokers of a cluster whose ACLs are in ZooKeeper, by Kafka's settings alone."""
    made: list[Broker] = []

    def make(connect: str) -> list[Broker]:
        for number in (1, 2):
            directory = tmp_path / f"broker-{number}"
            directory.mkdir()
            plain, sasl = free_ports(2)
            listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
            broker = Broker(directory, {"listeners": listeners, "broker.id": str(number)})
            del broker.properties["aclbroker.store"]
            broker.properties |= {
                "authorizer.class.name": ACL_AUTHORIZER,
                "zookeeper.connect": connect,
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            }
            made.append(broker)
        return made

    yield make
    for each in made:
        if each.process is not None:
            each.kill()


def test_acls_move_to_the_centralised_ones_and_no_answer_changes_on_the_way(
    kafka: Kafka,
    start_broker: StartBroker,
    tmp_path: Path,
    brokers: Callable[[str], list[Broker]],
) -> None:
    topic = f"kafka://{kafka.listeners['PLAINTEXT']}/centralised-acls"
    server = start_broker(MDS | held(LKC, **{f"aclbroker.clusters.{LKC}.store": topic}))
    api = Api(server).login()
    with running_zookeeper(tmp_path) as zookeeper:
        connect = f"{zookeeper.address}/cluster"
        both = brokers(connect)
        one, copier = both
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Broker.start, both))
        cluster_id = broker_cluster_id(one)
        assert alter(one, upsertion("carol", "carol-secret")) == [0]
        create(
            one,
            creation("orders", "alice"),
            creation("pre-", "alice", pattern=PREFIXED),
            creation("pre-secret", "alice", DENY),
            creation("orders-of-bob", "*"),
            creation("orders-of-bob", "alice", DENY),
            creation("everyone", "*"),
            creation("goes", "alice"),
            creation("goes-by-command", "alice"),
        )
        for (user, name), expected in EXPECTED.items():
            holds(both, user, name, allowed=expected)
        asking = Asking(both)
        with asking.going_on():
            # Step 1: all brokers decide by both.
            for each in both:
                restart(
                    each,
                    asking,
                    **{
                        "authorizer.class.name": CONFLUENT_AUTHORIZER,
                        PROVIDERS: "CONFLUENT,ZK_ACL",
                        "aclbroker.provider.confluent.store": topic,
                    },
                )
            assert api.search(LKC) == []
            # Until the migration ACLs are managed as before.
            create(one, creation("before", "alice"))
            holds(both, "alice", "before", allowed=True)
            assert api.search(LKC) == []

            # Steps 2 and 3: one broker copies, and listens for changes.
            restart(copier, asking, **{MIGRATES: "true"})
            create(one, creation("during", "alice"), creation("pre-not", "alice", DENY))
            told = acl_command(
                tmp_path,
                connect,
                *("--add", "--allow-principal", "User:bob", "--operation", "Describe"),
                *("--topic", "by-command"),
            )
            assert "Error" not in told, told
            holds(both, "bob", "by-command", allowed=True)
            wait_for("the copy", lambda: "goes" in centrally(api) or None, WITHIN)
            assert delete(one, "goes") == 1
            assert not sees(one, "alice", "goes")
            holds(both, "alice", "goes", allowed=False)
            told = acl_command(
                tmp_path, connect, "--remove", "--force", "--topic", "goes-by-command"
            )
            assert "Error" not in told, told
            holds(both, "alice", "goes-by-command", allowed=False)
            asking.expected |= {
                ("alice", "before"): True,
                ("alice", "during"): True,
                ("alice", "pre-not"): False,
                ("bob", "by-command"): True,
                ("alice", "goes"): False,
                ("alice", "goes-by-command"): False,
            }

            # Step 4: they are there.
            names = [
                *("before", "by-command", "during", "everyone", "orders", "orders-of-bob"),
                *("pre-", "pre-not", "pre-secret"),
            ]
            wait_for("the ACLs", lambda: centrally(api) == names or None, WITHIN)
            assert len(api.search(LKC)) == len(names) + 1
            is_told_to_be_done(copier)

            # Step 5: the centralised ones alone; the broker that copies comes last.
            restart(one, asking, **{PROVIDERS: "CONFLUENT"})
            create(copier, creation("late-old-way", "bob"))
            holds(both, "bob", "late-old-way", allowed=True)
            new_way = "ALLOW User:bob DESCRIBE TOPIC:LITERAL:new-way from *"
            assert api.create(new_way, LKC).status == 204
            holds(both, "bob", "new-way", allowed=True)
            asking.expected |= {("bob", "late-old-way"): True, ("bob", "new-way"): True}
            # What the last broker is asked for just before it ends is copied as it ends.
            create(copier, *(creation(f"last-{number}", "bob") for number in range(50)))
            restart(copier, asking, **{PROVIDERS: "CONFLUENT", MIGRATES: "false"})
            for number in range(50):
                holds(both, "bob", f"last-{number}", allowed=True)

        # Afterwards what is added to the cluster is ignored, and requests change what is central.
        told = acl_command(
            tmp_path,
            connect,
            *("--add", "--allow-principal", "User:bob", "--operation", "Describe"),
            *("--topic", "ignored"),
        )
        assert "Error" not in told, told
        create(one, creation("afterwards", "bob"))
        holds(both, "bob", "afterwards", allowed=True)
        assert "afterwards" in centrally(api)
        assert described(one) == sorted(centrally(api))
        assert not any(sees(each, "bob", "ignored") for each in both)
        # All else of the cluster stayed where it was.
        for each in both:
            assert broker_cluster_id(each) == cluster_id
            with Client(each.listeners["SASL_PLAINTEXT"]) as client:
                assert client.login_scram("carol", "carol-secret").error_code == 0


def centrally(api: Api) -> list[str]:
    """The names of the resource patterns of the centralised ACLs."""
    return sorted({each.split(" ")[3].split(":", 2)[2] for each in api.search(LKC)})
