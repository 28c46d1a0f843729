"""Real programs through a gateway see the same as with a Kafka 4.3.0 that has the same ACLs.

Each program runs for principals with different rights: through a gateway before a Kafka without an
authorizer, and directly with a Kafka with the StandardAuthorizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.clients.acl_command import Commands
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
    OWN_ACLS,
    PRINCIPALS,
    Side,
    Sides,
    acls_on_topic,
)
from tests.gateway.python_programs import (
    aiokafka_round_trip,
    rdkafka_group,
    rdkafka_transactions,
)
from tests.gateway.test_streams_groups import INPUT, LINES, OUTPUT, WORDS, Counts, word_count
from tests.memory_cluster import raw
from tests.memory_cluster.commands import run
from tests.memory_cluster.java_programs import running
from tests.memory_cluster.test_franz_go import ANONYMOUS, acls_of, output_of_tests, passes
from tests.memory_cluster.test_franz_go import WITHIN as WITHIN_OF_FRANZ_GO
from tests.memory_cluster.test_kafkajs import run_story
from tests.memory_cluster.test_share_consumer import sharer
from tests.support.broker import Broker
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

ONLY_ADMIN: Final = {"super.users": "User:admin"}
"""The gateway's super users. A connection without a login needs ACLs there."""

NO_AUTHORIZER: Final = {"authorizer.class.name": "", "super.users": ""}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """A gateway before a Kafka without an authorizer, and a Kafka with the same ACLs."""
    directory = tmp_path_factory.mktemp("sides")
    places = [tmp_path_factory.mktemp(name) for name in ("open", "guarded", "gateway")]
    with ExitStack() as started:
        upstream = started.enter_context(running_kafka(places[0], SETTINGS | NO_AUTHORIZER))
        kafka = started.enter_context(running_kafka(places[1], SETTINGS))
        gateway = gateway_before(upstream.listeners["PLAINTEXT"], places[2], **LOGINS, **ONLY_ADMIN)
        started.callback(assert_no_errors, gateway)
        started.callback(gateway.terminate)
        sides = Sides(Side(gateway, directory / "gateway"), Side(kafka, directory / "kafka"))
        sides.prepare(lambda side: side.allow(*OWN_ACLS, *acls_of(ANONYMOUS)))
        sides.prepare(Side.wait_for_coordinators)
        yield sides


def assert_no_errors(gateway: Broker) -> None:
    """Assert that the gateway logged no error."""
    assert [event for event in gateway.events() if event["level"] == "error"] == []


@pytest.fixture(scope="module")
def words_to_count(sides: Sides) -> None:
    """The topics of Streams' word count, with lines in the first."""

    def prepare(side: Side) -> None:
        side.allow(*acls_on_topic(INPUT, raw.READ, NO_READ))
        side.allow(*acls_on_topic(OUTPUT, raw.WRITE, NO_WRITE))
        side.create({INPUT: 1, OUTPUT: 1})
        side.write(INPUT, LINES)

    sides.prepare(prepare)


JavaAttempt = Callable[[Side, str, str], str]


@pytest.fixture(scope="module")
def java(sides: Sides, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaAttempt]:
    """Run an attempt of Java's clients as a user, and return its outcome.

    Each side has a running driver.
    """
    logs = tmp_path_factory.mktemp("java")
    drivers = {
        side: AttemptDriver(ATTEMPTING["java"], logs / f"{side.directory.name}.log")
        for side in sides
    }

    def attempt(side: Side, user: str, words: str) -> str:
        wanted = f"{user} {words.format(user=user)}"
        password = side.password(user)
        return drivers[side].attempt(side.address, wanted, PATIENCE, password).outcome

    yield attempt
    for driver in drivers.values():
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
EITHER_REFUSED: Final = "the topic or the group"


def first_of_several(user: str, outcome: str) -> str:
    """Return an outcome, or `EITHER_REFUSED` where the first of two answers decides it.

    A consumer without any right asks for its topic and its group at the same time.
    """
    either = re.fullmatch("(topic|group)_?authorization.*", outcome, re.IGNORECASE)
    return EITHER_REFUSED if user == NOTHING and either else outcome


def test_java_producers(sides: Sides, java: JavaAttempt):
    own_topics(sides, "written")
    seen = sides.see(lambda side, user: java(side, user, "write-all {user}.written"))
    for user in (FULL, NO_READ, NO_GROUP):
        offsets = seen.pop(user).split()
        assert len(offsets) == len(set(offsets)) == COUNT
    # A principal without WRITE on any topic gets no producer id.
    assert seen == {NO_WRITE: "ClusterAuthorizationException", NOTHING: TOPIC_REFUSED}


@pytest.mark.parametrize("verb", ["read-all", "read-all-by-heartbeat"])
def test_java_consumers_of_both_protocols(sides: Sides, java: JavaAttempt, verb: str):
    own_topics(sides, verb, values=NUMBERED)
    words = f"{verb} {{user}}.{verb} {{user}}.{verb}"
    seen = sides.see(lambda side, user: first_of_several(user, java(side, user, words)))
    for user in (FULL, NO_WRITE):
        outcome = seen.pop(user)
        assert outcome.count("value") == COUNT
        assert outcome.endswith(" [0@100, 1@100]")
    assert seen == {NO_READ: TOPIC_REFUSED, NO_GROUP: GROUP_REFUSED, NOTHING: EITHER_REFUSED}


def test_java_transactions(sides: Sides, java: JavaAttempt):
    own_topics(sides, "payments")
    words = "transact {user}.payments {user}.payments {user}.payments"
    seen = sides.see(lambda side, user: java(side, user, words), OF_TRANSACTIONS)
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_groups(sides: Sides, protocol: str):
    own_topics(sides, f"rdkafka-{protocol}", values=NUMBERED)

    def read(side: Side, user: str) -> tuple[list[str], list[int]]:
        values, committed = rdkafka_group(side, user, f"{user}.rdkafka-{protocol}", protocol)
        return [first_of_several(user, value) for value in values], committed

    seen = sides.see(read)
    everything = (sorted(NUMBERED), [COUNT // 2, COUNT // 2])
    assert seen == {
        FULL: everything,
        NO_WRITE: everything,
        NO_READ: (["TOPIC_AUTHORIZATION_FAILED"], []),
        NO_GROUP: (["GROUP_AUTHORIZATION_FAILED"], []),
        NOTHING: ([EITHER_REFUSED], []),
    }


def test_librdkafka_transactions(sides: Sides):
    own_topics(sides, "rdkafka-payments")
    seen = sides.see(
        lambda side, user: rdkafka_transactions(side, user, f"{user}.rdkafka-payments"),
        OF_TRANSACTIONS,
    )
    assert seen == {
        FULL: [*(f"committed {index}" for index in range(COUNT)), "offset 1"],
        NO_WRITE: "TOPIC_AUTHORIZATION_FAILED",
        NO_READ: "TOPIC_AUTHORIZATION_FAILED",
        NO_GROUP: "GROUP_AUTHORIZATION_FAILED",
        NO_ID: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    }


def test_aiokafka(sides: Sides):
    own_topics(sides, "aio-written", partitions=1)
    own_topics(sides, "aio-read", partitions=1, values=NUMBERED)
    seen = sides.see(
        lambda side, user: aiokafka_round_trip(
            side, user, f"{user}.aio-written", f"{user}.aio-read"
        )
    )
    offsets, read = list(range(COUNT)), [list(NUMBERED), [(0, COUNT)]]
    assert seen == {
        FULL: [offsets, read],
        NO_WRITE: ["ClusterAuthorizationFailedError", read],
        NO_READ: [offsets, "TopicAuthorizationFailedError"],
        NO_GROUP: [offsets, "GroupAuthorizationFailedError"],
        NOTHING: ["ClusterAuthorizationFailedError", "TopicAuthorizationFailedError"],
    }


STORIES: Final = {
    "groups": ({"orders": 4}, PRINCIPALS),
    "transactions": ({"orders": 2, "sums": 1}, OF_TRANSACTIONS),
}
"""The stories of kafkajs, the partitions of their topics, and their principals."""


@pytest.mark.parametrize("story", STORIES)
def test_kafkajs(sides: Sides, story: str):
    topics, users = STORIES[story]
    for topic, partitions in topics.items():
        own_topics(sides, f"{story}.{topic}", partitions)

    def play(side: Side, user: str) -> Any:
        login = (side.address, user, side.password(user))
        done = run_story(story, *login, prefix=f"{user}.{story}.")
        if done.returncode:
            types = re.findall(r"type: '(\w+)'", done.stderr)
            return next(iter(types or re.findall(r"^KafkaJS\w+", done.stderr)))
        seen = json.loads(done.stdout)
        return {name: sorted(each) if name == "values" else each for name, each in seen.items()}

    seen = sides.see(play, users)
    full = seen.pop(FULL)
    refused = {
        NO_WRITE: "CLUSTER_AUTHORIZATION_FAILED",
        NO_READ: "TOPIC_AUTHORIZATION_FAILED",
        NO_GROUP: "KafkaJSGroupCoordinatorNotFound",
    }
    if story == "groups":
        assert seen == {**refused, NOTHING: "TOPIC_AUTHORIZATION_FAILED"}
        assert full["values"] == sorted(f"value {number}" for number in range(400))
        assert (full["shares"], sum(map(int, full["committed"]))) == ([2, 2], 400)
    else:
        assert seen == {**refused, NO_ID: "KafkaJSGroupCoordinatorNotFound"}
        assert full["written"] == ["committed", "last"]


COMMANDS: Final = (
    "topics --create --topic {user}.tools-new --partitions 2",
    "topics --create --topic {user}.tools",
    "topics --list",
    "topics --describe --topic {user}.tools",
    "topics --alter --topic {user}.tools-new --partitions 3",
    "configs --describe --entity-type topics --entity-name {user}.tools",
    "configs --alter --entity-type topics --entity-name {user}.tools-new"
    " --add-config retention.ms=60000",
    "configs --alter --entity-type groups --entity-name {user}.tools-sharing"
    " --add-config share.auto.offset.reset=earliest",
    "configs --describe --all --entity-type brokers --entity-name 1",
    "console-producer --topic {user}.tools-new",
    "verifiable-consumer --topic {user}.tools --group-id {user}.tools-verified --max-messages 4"
    " --reset-policy earliest",
    "console-consumer --topic {user}.tools --partition 0 --offset earliest --max-messages 2"
    " --timeout-ms 8000",
    "console-consumer --topic {user}.tools --group {user}.tools-classic --from-beginning"
    " --max-messages 4 --timeout-ms 20000 --command-property group.protocol=classic",
    "console-consumer --topic {user}.tools --group {user}.tools-consumer --from-beginning"
    " --max-messages 4 --timeout-ms 20000 --command-property group.protocol=consumer",
    "console-share-consumer --topic {user}.tools --group {user}.tools-sharing --max-messages 4"
    " --timeout-ms 8000",
    "get-offsets --topic {user}.tools",
    "consumer-groups --list",
    "consumer-groups --describe --group {user}.tools-classic",
    "consumer-groups --describe --state --group {user}.tools-consumer",
    "consumer-groups --reset-offsets --group {user}.tools-classic --topic {user}.tools"
    " --to-earliest --execute",
    "consumer-groups --delete-offsets --group {user}.tools-classic --topic {user}.tools",
    "consumer-groups --delete --group {user}.tools-consumer",
    "share-groups --list",
    "share-groups --describe --group {user}.tools-sharing",
    "transactions describe-producers --topic {user}.tools --partition 0",
    "transactions describe --transactional-id {user}.tools-missing",
    "log-dirs --describe --topic-list {user}.tools",
    "leader-election --election-type preferred --topic {user}.tools --partition 0",
    "reassign-partitions --list",
    "topics --delete --topic {user}.tools-new",
)
"""Commands of Kafka's own tools, in an order in which each finds the results of those before."""

OF_CLUSTER: Final = ("configs --describe --all --entity-type brokers", "log-dirs", "reassign")
"""The commands that need rights on the cluster, which none of the principals has."""

GIVEN: Final = {"console-producer": "one\n"}
"""The standard input of commands."""


class Ended(NamedTuple):
    """The end of a command: its status, the rights that it missed, and its sorted output."""

    status: int
    refused: list[str]
    lines: list[str]


def ended(commands: Commands, user: str, command: str, *login: str) -> Ended:
    """Run a command as a user.

    Its output is left without values that differ between runs, and without texts of errors.
    """
    tool, *words = command.format(user=user).split()
    status, out, errors = run(commands, tool, *login, *words, given=GIVEN.get(tool, ""))
    refused = refusals(out + errors)
    if user == NOTHING and refused:
        # A command that asks for a topic and a group may see either answer first.
        refused = [EITHER_REFUSED]
    if tool == "console-producer" and refused:
        # It fails if the refusal comes before the record, and otherwise only logs it.
        status = 0
    varying = r"TopicId: \S+|127\.0\.0\.1:\d+|\d{13}"
    lines = re.sub(varying, "...", out).splitlines()
    if command.endswith("--list"):
        # Whether a refused program of another test left a group behind is a matter of time.
        lines = [line for line in lines if "tools" in line]
    kept = (line for line in lines if not re.search("(?i)authoriz|exception|^$", line.strip()))
    return Ended(status, refused, sorted(kept))


@pytest.fixture(scope="module")
def commands_of(
    sides: Sides, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Side, Commands]]:
    """For each side a JVM that runs Kafka's tools one after the other."""
    logs = tmp_path_factory.mktemp("commands")
    running = {side: Commands(logs / f"{side.directory.name}.log") for side in sides}
    yield running
    for commands in running.values():
        commands.close()


def test_kafkas_own_tools(sides: Sides, commands_of: dict[Side, Commands]):
    own_topics(sides, "tools", values=["a", "b", "c", "d"])

    def run_all(side: Side, user: str) -> dict[str, Ended]:
        login = ("--bootstrap-server", side.address, "--command-config", side.properties(user))
        return {
            command: ended(commands_of[side], user, command, *map(str, login))
            for command in COMMANDS
        }

    seen = sides.see(run_all)
    refused = {
        user: [command for command, end in commands.items() if end.refused]
        for user, commands in seen.items()
    }
    assert refused[FULL] == [command for command in COMMANDS if command.startswith(OF_CLUSTER)]
    groups_and_shares = [command for command in COMMANDS if " --group {user}" in command]
    assert set(groups_and_shares) < set(refused[NO_GROUP])
    for command in groups_and_shares:
        if command.startswith("console-"):
            assert seen[FULL][command].lines == ["a", "b", "c", "d"]
            assert seen[NO_READ][command].refused == [TOPIC_REFUSED]


OF_FRANZ_GO: Final = ("TestGroupETL", "TestTxnEtl")
"""The tests of franz-go's kgo, which move records along chains of groups, also in transactions."""

RECORDS: Final = 2_000
"""How many records go along each chain."""


@pytest.mark.timeout(WITHIN_OF_FRANZ_GO + 60)
def test_franz_gos_chains_of_groups(sides: Sides, tmp_path: Path):
    def run_tests(side: Side, _user: str) -> list[str]:
        environment = {"KGO_SEEDS": side.server.listeners["PLAINTEXT"], "KGO_TEST_RF": "1"}
        output = output_of_tests(tmp_path, environment, OF_FRANZ_GO, RECORDS)
        return [f"{test}: {output}" for test in OF_FRANZ_GO if not passes(test, output)]

    # Its tests do not log in. Only the gateway checks the ACLs of their principal, because in a
    # Kafka of one node that principal is a super user.
    assert sides.see(run_tests, [ANONYMOUS]) == {ANONYMOUS: []}
