"""Three brokers that share a topic of three Kafkas, while these and they are killed in turn."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.errors import ClientError
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from tests.acl.examples import allow, deny
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.kafka import Kafka, free_ports, running_cluster
from tests.support.process import wait_for

BROKERS = 3
WITHIN = 60.0
pytestmark = pytest.mark.thorough
CHANGES_BETWEEN = 15
"""How many changes must be acknowledged between two accidents."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Kafka]]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as nodes:
        yield nodes


class Writer(threading.Thread):
    """Creates and deletes ACLs of its own through one broker, and notes what it was told.

    ``maybe`` are those of which nobody knows whether the last change was made.
    """

    def __init__(self, number: int, broker: Broker, seed: int) -> None:
        super().__init__(name=f"writer-{number}")
        self.number = number
        self.broker = broker
        self.random = Random(seed)
        self.there: set[AclBinding] = set()
        self.maybe: set[AclBinding] = set()
        self.acknowledged = 0
        self.is_over = False
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.is_over:
                self._change_until_it_fails()
                time.sleep(0.05)
        except BaseException as error:  # noqa: BLE001 # raised where the thread is waited for
            self.problem = error

    def _change_until_it_fails(self) -> None:
        try:
            with session(self.broker) as client:
                while not self.is_over:
                    self._change(client)
        except ClientError:
            pass  # its broker is gone, or cannot reach the topic

    def _change(self, client: Session) -> None:
        some = self._some()
        removes = self.random.random() < 0.4
        # Before it is asked for: an answer may not come.
        self.maybe |= set(some)
        if removes:
            delete_acls(client, [exactly(acl) for acl in some])
        else:
            create_acls(client, some)
        self.maybe -= set(some)
        self.there = self.there - set(some) if removes else self.there | set(some)
        self.acknowledged += 1

    def _some(self) -> list[AclBinding]:
        """Return some ACLs that no other writer knows; a denial comes with each permission."""
        found: list[AclBinding] = []
        for number in self.random.sample(range(200), self.random.randint(1, 5)):
            user = f"User:w{self.number}-{number}"
            found += [deny(user, name=f"secret-{number}"), allow(user, name=f"t-{number}")]
        return found


def session(broker: Broker) -> Session:
    address = broker.listeners["PLAINTEXT"]
    return open_session(read_addresses(address), ClientSettings(request_timeout=40.0))


def acls_of(broker: Broker) -> set[AclBinding] | None:
    try:
        with session(broker) as client:
            return set(describe_acls(client))
    except ClientError:
        return None


def agreed(brokers: list[Broker]) -> set[AclBinding] | None:
    """Return the ACLs that all brokers have, None as long as they differ."""
    first, *others = map(acls_of, brokers)
    return first if all(each == first for each in others) else None


@contextmanager
def writing(writers: list[Writer]) -> Iterator[None]:
    with ExitStack() as stack:
        for writer in writers:
            writer.start()
            stack.callback(writer.join)
            stack.callback(setattr, writer, "is_over", True)
        yield


def go_on(writers: list[Writer]) -> None:
    """Wait until each writer has been told of some more changes."""
    goals = [writer.acknowledged + CHANGES_BETWEEN for writer in writers]

    def look() -> bool | None:
        for writer in writers:
            if writer.problem is not None:
                raise writer.problem
        done = all(each.acknowledged >= goal for each, goal in zip(writers, goals, strict=True))
        return done or None

    wait_for("changes by all", look, WITHIN)


@pytest.mark.broker_process
def test_nothing_that_was_acknowledged_is_lost_when_kafkas_and_brokers_are_killed(
    cluster: list[Kafka], start_broker: StartBroker, tmp_path: Path
) -> None:
    url = f"kafka://{','.join(node.listeners['PLAINTEXT'] for node in cluster)}/fleet"
    brokers = []
    for number in range(1, BROKERS + 1):
        directory = tmp_path / str(number)
        directory.mkdir()
        [port] = free_ports(1)
        settings = {
            "aclbroker.store": url,
            "node.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
        brokers.append(start_broker(settings, directory))
    writers = [Writer(number, broker, seed=number) for number, broker in enumerate(brokers)]
    with writing(writers):
        go_on(writers)
        for node in cluster:
            node.kill()
            go_on(writers)
            node.start_again()
            go_on(writers)
        for broker in brokers[:2]:
            broker.kill()
            go_on([each for each in writers if each.broker is not broker])
            broker.start()
            go_on(writers)
    for writer in writers:
        assert writer.problem is None

    certain = set().union(*(writer.there - writer.maybe for writer in writers))
    maybe = set().union(*(writer.maybe for writer in writers))
    found = wait_for("the same ACLs at all brokers", lambda: agreed(brokers), WITHIN)
    assert certain <= found <= certain | maybe
    # What was asked for together is there, or not, but not in part.
    users = Counter(acl.principal for acl in found)
    assert set(users.values()) == {2}
