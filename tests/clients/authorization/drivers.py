"""Drives real clients as applications use them: a program for each attempts what it is told.

Such a program reads one attempt a line from standard input

    VERB PATIENCE HOST:PORT USER PASSWORD RESOURCE ...

where PATIENCE are the seconds after which its clients time out, and answers it with one line of
JSON: {"outcome": OUTCOME, "seconds": SECONDS}. OUTCOME is "done", or the name that the client gives
its error, or "nothing" if it was silent until the patience ended. Each attempt has clients of its
own. The verbs and their resources:

    produce, produce-idempotently TOPIC     produce-in-transaction TRANSACTIONAL-ID TOPIC
    assign, commit TOPIC GROUP              one partition, without joining the group
    subscribe TOPIC GROUP                   the classic protocol of groups
    subscribe-by-heartbeat TOPIC GROUP      the protocol of KIP-848
    share TOPIC GROUP                       a share group (KIP-932)
    stream, stream-by-heartbeat TOPIC APPLICATION-ID
    write-all TOPIC                         idempotently; Java's alone, as those below
    read-all, read-all-by-heartbeat TOPIC GROUP
    transact TRANSACTIONAL-ID TOPIC GROUP   records and an offset, aborted and committed
    create-topic, describe-group, ... NAME  what an admin client asks for

To produce, to commit and to administer is done when the broker says so, to consume when a fetch was
answered, to stream when the application runs. The last four have the records as their outcome.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.clients.drivers import LineProcess
from tests.support.accounts import PASSWORDS
from tests.support.packages import compiled_java, java_command, kafka_streams_jars
from tests.support.toolchain import CLIENTS

DONE = "done"
NOTHING = "nothing"


class Outcome(NamedTuple):
    """How an attempt ended, and after how many seconds."""

    outcome: str
    seconds: float


class Client(NamedTuple):
    """A client library: the command of its driver, and how it names the errors of brokers."""

    command: Callable[[], list[str]]
    name_of: Callable[[str], str]
    """From an error's name in Kafka's protocol to the client's."""
    time_outs: frozenset[str]
    """The outcomes of giving up after a broker's answers that are worth another try."""


def _java_command() -> list[str]:
    jars = kafka_streams_jars()
    sources = (CLIENTS / "java" / "attempts").glob("*.java")
    names = [f"attempts/{source.name}" for source in sorted(sources)]
    return java_command("Attempts", compiled_java("java-attempts", jars, "Json.java", *names), jars)


def _python(library: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", "tests.clients.python.attempts.main", library]


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def _java_name(name: str) -> str:
    return _camel(name.removesuffix("_FAILED")) + "Exception"


def _aiokafka_name(name: str) -> str:
    without_error = name == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    return _camel(name) + ("" if without_error else "Error")


ATTEMPTING = {
    "java": Client(_java_command, _java_name, frozenset({NOTHING, "TimeoutException"})),
    "confluent-kafka": Client(
        _python("confluent-kafka"),
        lambda name: name,
        frozenset({NOTHING, "COORDINATOR_NOT_AVAILABLE"}),
    ),
    "aiokafka": Client(_python("aiokafka"), _aiokafka_name, frozenset({NOTHING, "TimeoutError"})),
    "kafka-python": Client(
        _python("kafka-python"),
        lambda name: _camel(name) + "Error",
        frozenset({NOTHING, "KafkaTimeoutError"}),
    ),
}
"""The clients; `java` are the producers, consumers, Streams and Admin of Kafka 4.3.0."""


class AttemptDriver(LineProcess):
    """The running driver of one client."""

    def __init__(self, client: Client, log: Path) -> None:
        super().__init__(client.command(), log)

    def attempt(self, address: str, attempt: str, patience: float, password: str = "") -> Outcome:
        """Let `USER VERB RESOURCE ...` be attempted at the SASL_PLAINTEXT listener `address`."""
        user, verb, *resources = attempt.split()
        words = [verb, str(patience), address, user, password or PASSWORDS[user], *resources]
        answer = self.ask(" ".join(words))
        return Outcome(answer["outcome"], answer["seconds"])
