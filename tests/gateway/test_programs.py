"""Real programs through a gateway see the same as with a Kafka 4.3.0 that has the same ACLs.

Each program runs for principals with different rights: through a gateway before a Kafka without an
authorizer, and directly with a Kafka with the StandardAuthorizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.clients.authorization.drivers import ATTEMPTING, AttemptDriver
from tests.gateway.principals import (
    FULL,
    JAAS,
    NO_GROUP,
    NO_ID,
    NO_READ,
    NO_WRITE,
    NOTHING,
    OF_TRANSACTIONS,
    PRINCIPALS,
    RIGHTS,
    Side,
    Sides,
    on_topic,
)
from tests.gateway.test_streams_groups import INPUT, LINES, OUTPUT, WORDS, Counts, word_count
from tests.memory_cluster import raw
from tests.memory_cluster.java_programs import running
from tests.memory_cluster.test_share_consumer import sharer
from tests.support.gateway import gateway_before
from tests.support.kafka import running_kafka

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

PATIENCE: Final = 15.0
COUNT: Final = 200
LOGINS: Final = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS}
SETTINGS: Final = {
    **LOGINS,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    **{
        f"group.{kind}.{least}heartbeat.interval.ms": "500"
        for kind in ("consumer", "share", "streams")
        for least in ("", "min.")
    },
}
"""Settings of both Kafkas. Groups and coordinators are ready soon."""

NO_AUTHORIZER: Final = {"authorizer.class.name": "", "super.users": ""}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """A gateway before a Kafka without an authorizer, and a Kafka with the same ACLs."""
    directory = tmp_path_factory.mktemp("sides")
    places = [tmp_path_factory.mktemp(name) for name in ("open", "guarded", "gateway")]
    with ExitStack() as started:
        upstream = started.enter_context(running_kafka(places[0], SETTINGS | NO_AUTHORIZER))
        kafka = started.enter_context(running_kafka(places[1], SETTINGS))
        gateway = gateway_before(upstream.listeners["PLAINTEXT"], places[2], **LOGINS)
        started.callback(gateway.terminate)
        sides = Sides(Side(gateway, directory / "gateway"), Side(kafka, directory / "kafka"))
        sides.prepare(lambda side: side.allow(RIGHTS))
        yield sides


@pytest.fixture(scope="module")
def words_to_count(sides: Sides) -> None:
    """The topics of Streams' word count, with lines in the first."""

    def prepare(side: Side) -> None:
        side.allow([on_topic(INPUT, raw.READ, NO_READ), on_topic(OUTPUT, raw.WRITE, NO_WRITE)])
        side.create({INPUT: 1, OUTPUT: 1})
        side.write(INPUT, LINES)

    sides.prepare(prepare)


Attempt = Callable[[Side, str, str], str]


@pytest.fixture(scope="module")
def attempt_with(
    sides: Sides, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Attempt]]:
    """Return how to attempt something with a client; each side has a running driver of it."""
    logs = tmp_path_factory.mktemp("attempting")
    started: dict[tuple[str, Side], AttemptDriver] = {}

    def of_client(client: str) -> Attempt:
        def attempt(side: Side, user: str, words: str) -> str:
            place = (client, side)
            if place not in started or started[place].ended:
                log = logs / f"{client}-{side.directory.name}.log"
                started[place] = AttemptDriver(ATTEMPTING[client], log)
            wanted = f"{user} {words.format(user=user)}"
            driver = started[place]
            return driver.attempt(side.address, wanted, PATIENCE, side.password(user)).outcome

        return attempt

    yield of_client
    for driver in started.values():
        driver.close()


NUMBERED: Final = tuple(f"value {number}" for number in range(COUNT))


def own_topics(sides: Sides, name: str, partitions: int = 2, values: Collection[str] = ()) -> None:
    """Create a topic of a name for each principal on both sides, and write records to it."""

    def prepare(side: Side) -> None:
        users = dict.fromkeys((*PRINCIPALS, *OF_TRANSACTIONS))
        side.create({f"{user}.{name}": partitions for user in users})
        for user in users if values else ():
            side.write(f"{user}.{name}", values, partitions)

    sides.prepare(prepare)


def refusals(text: str) -> list[str]:
    """Return the names of the exceptions in a text that say that a right is missing."""
    return list(dict.fromkeys(re.findall(r"\b\w+AuthorizationException\b", text)))


TOPIC_REFUSED: Final = "TopicAuthorizationException"
GROUP_REFUSED: Final = "GroupAuthorizationException"
EITHER_REFUSED: Final = "TopicAuthorizationException or GroupAuthorizationException"


def first_of_several(user: str, outcome: str) -> str:
    """Return an outcome, or `EITHER_REFUSED` where the first of two answers decides it.

    A consumer without any right asks for its topic and its group at the same time.
    """
    either = user == NOTHING and outcome in EITHER_REFUSED.split(" or ")
    return EITHER_REFUSED if either else outcome


def test_java_producers(sides: Sides, attempt_with: Callable[[str], Attempt]):
    own_topics(sides, "written")
    attempt = attempt_with("java")
    seen = sides.see(lambda side, user: attempt(side, user, "write-all {user}.written"))
    for user in (FULL, NO_READ, NO_GROUP):
        offsets = seen.pop(user).split()
        assert len(offsets) == len(set(offsets)) == COUNT
    # A principal without WRITE on any topic gets no producer id.
    assert seen == {NO_WRITE: "ClusterAuthorizationException", NOTHING: TOPIC_REFUSED}


@pytest.mark.parametrize("verb", ["read-all", "read-all-by-heartbeat"])
def test_java_consumers_of_both_protocols(
    sides: Sides, attempt_with: Callable[[str], Attempt], verb: str
):
    own_topics(sides, verb, values=NUMBERED)
    attempt = attempt_with("java")
    words = f"{verb} {{user}}.{verb} {{user}}.{verb}"
    seen = sides.see(lambda side, user: first_of_several(user, attempt(side, user, words)))
    for user in (FULL, NO_WRITE):
        outcome = seen.pop(user)
        assert outcome.count("value") == COUNT
        assert outcome.endswith(" [0@100, 1@100]")
    assert seen == {NO_READ: TOPIC_REFUSED, NO_GROUP: GROUP_REFUSED, NOTHING: EITHER_REFUSED}


def test_java_transactions(sides: Sides, attempt_with: Callable[[str], Attempt]):
    own_topics(sides, "payments")
    attempt = attempt_with("java")
    words = "transact {user}.payments {user}.payments {user}.payments"
    seen = sides.see(lambda side, user: attempt(side, user, words), OF_TRANSACTIONS)
    outcome = seen.pop(FULL)
    assert (outcome.count("committed"), outcome.count("aborted")) == (COUNT, 0)
    assert outcome.endswith(f" [0@{len('committed ')}]")
    assert seen == {
        NO_WRITE: TOPIC_REFUSED,
        # The client reports the refused offset commit by this class alone.
        NO_READ: "KafkaException",
        NO_GROUP: GROUP_REFUSED,
        NO_ID: "TransactionalIdAuthorizationException",
    }


def test_java_share_consumers(sides: Sides):
    own_topics(sides, "shared", values=["ACCEPT", "RELEASE", "REJECT"])

    def share(side: Side, user: str) -> list[str]:
        name = f"{user}.shared"
        done = sharer(side.properties(user), name, name, 3)
        return sorted(done.stdout.splitlines()) or refusals(done.stderr)

    every_way = ["ACCEPT 1 ACCEPT", "REJECT 1 REJECT", "RELEASE 1 RELEASE", "RELEASE 2 ACCEPT"]
    assert sides.see(share) == {
        FULL: every_way,
        NO_WRITE: every_way,
        NO_READ: [TOPIC_REFUSED],
        NO_GROUP: [GROUP_REFUSED],
        NOTHING: [GROUP_REFUSED],
    }


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_streams_word_count_exactly_once(
    sides: Sides, words_to_count: None, protocol: str, tmp_path: Path
):
    def count(side: Side, user: str) -> dict[str, int] | str:
        application = f"{user}.count-{protocol}"
        directory = tmp_path / f"{side.directory.name}-{user}"
        directory.mkdir()
        counts = Counts(side.server)
        login = side.properties(user).read_text()
        with running(word_count(side.server, login, directory, application, protocol)) as program:
            if user == FULL:
                program.until(lambda: counts.read() == WORDS or None)
                return counts.of
            return program.until(lambda: next(iter(refusals(program.log_text())), None))

    assert sides.see(count, OF_TRANSACTIONS) == {
        FULL: WORDS,
        NO_WRITE: TOPIC_REFUSED,
        NO_READ: TOPIC_REFUSED,
        NO_GROUP: GROUP_REFUSED,
        NO_ID: "TransactionalIdAuthorizationException",
    }
