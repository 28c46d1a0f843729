"""Principals with different rights, for a gateway and for a Kafka with the same ACLs.

Each principal uses topics, groups and transactional ids whose names begin with its own name and a
dot. So a program runs once for each principal, and the runs do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from tests.clients.acl_command import command_config
from tests.memory_cluster import raw
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.kafka import Kafka
from tests.support.process import wait_for

Seen = TypeVar("Seen")

TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
_LITERAL, _PREFIXED = 3, 4
_ALLOW = 3

FULL, NO_WRITE, NO_READ, NO_GROUP = "full", "no-write", "no-read", "no-group"
NO_ID, NOTHING = "no-id", "nothing"

PRINCIPALS: Final = (FULL, NO_WRITE, NO_READ, NO_GROUP, NOTHING)
"""The principals of a program without transactions."""

OF_TRANSACTIONS: Final = (FULL, NO_WRITE, NO_READ, NO_GROUP, NO_ID)
"""The principals of a program with transactions."""

_ALL: Final = (*PRINCIPALS, NO_ID)

WITHIN = 30.0

JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    + " ".join(
        f'user_{user}="{password}"'
        for user, password in {**PASSWORDS, **{name: f"{name}-secret" for name in _ALL}}.items()
    )
    + ";"
)
"""The logins of the brokers' SASL_PLAINTEXT listener."""


class Right(NamedTuple):
    """Operations on resources, and the principals that may not do them."""

    kind: int
    name: str
    pattern: int
    operations: tuple[int, ...]
    refused: tuple[str, ...]

    def acls(self) -> Iterable[AclCreation]:
        """Yield the ACL of each operation and of each principal with this right."""
        for user in _ALL:
            if user not in (NOTHING, *self.refused):
                for operation in self.operations:
                    name = self.name.format(user=user)
                    principal = f"User:{user}"
                    yield AclCreation(
                        self.kind, name, self.pattern, principal, "*", operation, _ALLOW
                    )


OWN: Final = "{user}."
_MANAGING: Final = (
    raw.CREATE,
    raw.DELETE,
    raw.ALTER,
    raw.DESCRIBE_CONFIGS,
    raw.ALTER_CONFIGS,
)

_RIGHTS: Final = (
    Right(TOPIC, OWN, _PREFIXED, (raw.READ,), (NO_READ,)),
    Right(TOPIC, OWN, _PREFIXED, (raw.WRITE,), (NO_WRITE,)),
    Right(TOPIC, OWN, _PREFIXED, _MANAGING, ()),
    Right(GROUP, OWN, _PREFIXED, (raw.READ, raw.DELETE, raw.ALTER_CONFIGS), (NO_GROUP,)),
    Right(TRANSACTIONAL_ID, OWN, _PREFIXED, (raw.WRITE,), (NO_ID,)),
)
"""The rights to the resources of a principal's own names."""

OWN_ACLS: Final = tuple(acl for right in _RIGHTS for acl in right.acls())
"""The ACLs of all principals on the resources of their own names."""


def acls_on_topic(name: str, operation: int, refused: str) -> Iterable[AclCreation]:
    """Return the ACLs on a topic whose name a program chooses; one principal more is refused."""
    return Right(TOPIC, name, _LITERAL, (operation,), (refused,)).acls()


class Side:
    """A gateway or a Kafka, and the logins of the principals there."""

    def __init__(self, server: Broker | Kafka, directory: Path) -> None:
        self.server = server
        self.address = server.listeners["SASL_PLAINTEXT"]
        self.directory = directory
        directory.mkdir()

    def password(self, user: str) -> str:
        """Return the password of a user."""
        return PASSWORDS.get(user, f"{user}-secret")

    def properties(self, user: str) -> Path:
        """Return the file with which Kafka's own programs log in as a user."""
        path = Path(command_config(self.directory, user, self.password(user)))
        with path.open("a") as file:
            file.write(f"bootstrap.servers={self.address}\n")
        return path

    def librdkafka(self, user: str, **more: Any) -> dict[str, Any]:
        """Return the configuration of a client of librdkafka, with more settings."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": self.password(user),
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def allow(self, *acls: AclCreation) -> None:
        """Create ACLs, and wait until the server uses them."""
        with Client(self.address) as admin:
            assert admin.login("admin", PASSWORDS["admin"]).error_code == 0
            before = self._count(admin)
            assert not any(admin.create(*acls))
            expected = before + len(acls)
            wait_for("ACLs", lambda: self._count(admin) == expected or None, WITHIN)

    def _count(self, admin: Client) -> int:
        answer = admin.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
        return sum(len(resource.acls) for resource in answer.resources)

    def create(self, topics: Mapping[str, int]) -> None:
        """Create topics with numbers of partitions, and wait until all have leaders."""
        admin = AdminClient(self.librdkafka("admin"))
        created = [NewTopic(name, partitions, 1) for name, partitions in topics.items()]
        for future in admin.create_topics(created).values():
            future.result(WITHIN)

        def are_led() -> bool | None:
            listed = admin.list_topics(timeout=WITHIN).topics
            led = [
                name in listed
                and len(listed[name].partitions) == partitions
                and all(each.leader >= 0 for each in listed[name].partitions.values())
                for name, partitions in topics.items()
            ]
            return all(led) or None

        wait_for("leaders", are_led, WITHIN)

    def wait_for_coordinators(self) -> None:
        """Wait until the coordinators of groups and of transactions answer."""
        group = Consumer(self.librdkafka("admin", group_id="first"))

        def answers() -> bool | None:
            try:
                return bool(group.committed([TopicPartition("first", 0)], WITHIN))
            except KafkaException:
                # A new coordinator reads its log before it answers.
                return None

        wait_for("the coordinator of groups", answers, WITHIN)
        group.close()
        Producer(self.librdkafka("admin", transactional_id="first")).init_transactions(WITHIN)

    def write(self, topic: str, values: Iterable[str], partitions: int = 1) -> None:
        """Write records as the super user, each to the next partition."""
        producer = Producer(self.librdkafka("admin"))
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % partitions)
        assert producer.flush(WITHIN) == 0


class Sides(NamedTuple):
    """The gateway before a Kafka without an authorizer, and a Kafka that has the ACLs itself."""

    gateway: Side
    kafka: Side

    def prepare(self, prepare: Callable[[Side], object]) -> None:
        """Prepare both sides at the same time."""
        with ThreadPoolExecutor(len(self)) as threads:
            list(threads.map(prepare, self))

    def see(
        self, program: Callable[[Side, str], Seen], users: Iterable[str] = PRINCIPALS
    ) -> dict[str, Seen]:
        """Run a program on both sides, for one principal after the other.

        Return the outcome for each principal, which must be the same on both sides.
        """

        def run(side: Side) -> dict[str, Seen]:
            return {user: program(side, user) for user in users}

        with ThreadPoolExecutor(len(self)) as threads:
            through_gateway, of_kafka = threads.map(run, self)
        different = "\n".join(differences(through_gateway, of_kafka))
        assert not different, different
        return of_kafka


def differences(through_gateway: Mapping[str, Any], of_kafka: Mapping[str, Any]) -> Iterator[str]:
    """Yield each difference between the outcomes on both sides, by principal and command."""
    for name, expected in of_kafka.items():
        outcome = through_gateway[name]
        if (
            isinstance(outcome, dict)
            and isinstance(expected, dict)
            and set(outcome) == set(expected)
        ):
            yield from (f"{name}: {line}" for line in differences(outcome, expected))
        elif outcome != expected:
            yield f"{name}: {outcome!r} through the gateway, {expected!r} with Kafka"
