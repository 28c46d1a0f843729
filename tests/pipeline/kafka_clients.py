"""What applications of a small company do on a Kafka, with the rights that they need and no others.

`work_done` has all of them work once and says what each was told, which is the same each time as
long as nobody loses a right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from aclbroker.acl.bindings import AclBinding
from tests.acl.examples import (
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TRANSACTIONAL_ID,
    WRITE,
    allow,
)

USERS = ("shop", "billing", "payments", "operator")
TOPICS = ("orders", "invoices", "hr.pay", "old")

LEAST: list[AclBinding] = [
    # An idempotent producer.
    allow("User:shop", WRITE, "orders"),
    # A consumer of a group.
    allow("User:billing", READ, "orders"),
    allow("User:billing", READ, "billing", resource_type=GROUP),
    # Reads and writes in a transaction.
    allow("User:payments", READ, "orders"),
    allow("User:payments", READ, "payments", resource_type=GROUP),
    allow("User:payments", WRITE, "invoices"),
    allow("User:payments", WRITE, "payments-1", resource_type=TRANSACTIONAL_ID),
    # An admin client.
    allow("User:operator", CREATE, "releases"),
    allow("User:operator", DELETE, "releases"),
    allow("User:operator", DESCRIBE, "*"),
    allow("User:operator", DESCRIBE_CONFIGS, "orders"),
    allow("User:operator", ALTER_CONFIGS, "orders"),
    allow("User:operator", DESCRIBE, "kafka-cluster", resource_type=CLUSTER),
    allow("User:operator", DESCRIBE, "billing", resource_type=GROUP),
]
"""What the clients need, written without much thought: ALTER_CONFIGS implies DESCRIBE_CONFIGS."""

_WITHIN = 30  # seconds
_MESSAGES = 3


def work_done(address: str) -> dict[str, object]:
    """Have all clients work at a SASL_PLAINTEXT listener, and return what they were told."""
    work: dict[str, Callable[[dict[str, Any]], object]] = {
        "shop": _produced,
        "billing": _consumed,
        "payments": _paid,
        "operator": _administered,
    }
    return {user: does(_login(address, user)) for user, does in work.items()}


def _login(address: str, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": "pw",
        "log_level": 0,
    }


def _produced(login: dict[str, Any]) -> object:
    """Write idempotently."""
    reports: list[str] = []
    producer = Producer({**login, "enable.idempotence": True})
    for number in range(_MESSAGES):
        producer.produce(
            "orders",
            f"order {number}",
            on_delivery=lambda error, _: reports.append("written" if error is None else str(error)),
        )
    producer.flush(_WITHIN)
    return reports


def _consumer(login: dict[str, Any], group: str) -> Consumer:
    consumer = Consumer(
        {
            **login,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def _read(consumer: Consumer) -> list[str]:
    found: list[str] = []
    for message in consumer.consume(_MESSAGES, _WITHIN):
        error, value = message.error(), message.value()
        found.append(str(error) if error or value is None else value.decode())
    return found


def _consumed(login: dict[str, Any]) -> object:
    """Read as a member of a group, and commit what was read."""
    consumer = _consumer(login, "billing")
    found = _read(consumer)
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def _paid(login: dict[str, Any]) -> object:
    """Read as a member of a group, and write and commit in a transaction."""
    producer = Producer({**login, "transactional.id": "payments-1"})
    producer.init_transactions(_WITHIN)
    consumer = _consumer(login, "payments")
    found = _read(consumer)
    producer.begin_transaction()
    for each in found:
        producer.produce("invoices", each)
    offsets = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _WITHIN)
    producer.commit_transaction(_WITHIN)
    consumer.close()
    return found


def _administered(login: dict[str, Any]) -> object:
    """Look at topics, settings, ACLs and a group, change a setting, make a topic and delete it."""
    admin = AdminClient(login)
    orders = ConfigResource(ResourceType.TOPIC, "orders")
    entry = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    anything: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    return {
        "topics": sorted(admin.list_topics(timeout=_WITHIN).topics),
        "setting": _of(admin.incremental_alter_configs([changed])),
        "settings": _of(admin.describe_configs([orders]), lambda found: "retention.ms" in found),
        "acls": _told(admin.describe_acls(everything), lambda found: bool(found)),
        "group": _of(admin.describe_consumer_groups(["billing"]), lambda found: found.group_id),
        "made": _of(admin.create_topics([NewTopic("releases", 1, 1)])),
        "gone": _of(admin.delete_topics(["releases"], operation_timeout=_WITHIN)),
    }


def _of(futures: dict[Any, Any], what: Callable[[Any], object] = lambda _: "done") -> object:
    (future,) = futures.values()
    return _told(future, what)


def _told(future: Any, what: Callable[[Any], object]) -> object:
    try:
        return what(future.result(_WITHIN))
    except KafkaException as error:
        return error.args[0].name()
