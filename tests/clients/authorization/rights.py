"""The resources of these tests, and what each user may do with them.

Their names tell it of alice: she has no rights on hidden-..., may describe seen-... and may use
own-.... bob may describe seen-topic, no more.
"""

from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.drivers import Driver
from tests.clients.story import EVERYTHING, connect, creates, lists, tell
from tests.support.process import wait_for

TOPICS = ("hidden-topic", "seen-topic", "own-topic")
"""missing-topic is none of them."""

RIGHTS = [
    "TOPIC,seen-topic,LITERAL,User:alice,*,DESCRIBE,ALLOW",
    "TOPIC,seen-topic,LITERAL,User:bob,*,DESCRIBE,ALLOW",
    "TOPIC,missing-topic,LITERAL,User:alice,*,DESCRIBE,ALLOW",
    "TOPIC,own-topic,LITERAL,User:alice,*,READ,ALLOW",
    "TOPIC,own-topic,LITERAL,User:alice,*,WRITE,ALLOW",
    "GROUP,seen-group,LITERAL,User:alice,*,DESCRIBE,ALLOW",
    "GROUP,own-,PREFIXED,User:alice,*,READ,ALLOW",
    "TRANSACTIONAL_ID,seen-id,LITERAL,User:alice,*,DESCRIBE,ALLOW",
    "TRANSACTIONAL_ID,own-,PREFIXED,User:alice,*,WRITE,ALLOW",
]


def replace_acls(driver: Driver, address: str) -> None:
    """Make `RIGHTS` the only ACLs of a broker."""
    connect(driver, address, "admin")
    driver.step("delete", EVERYTHING)
    tell(driver, [creates(RIGHTS), lists(EVERYTHING, RIGHTS)], reads_are_late=True)
    driver.step("disconnect")


def remove_acls(driver: Driver, address: str) -> None:
    """Leave a broker without ACLs."""
    connect(driver, address, "admin")
    driver.step("delete", EVERYTHING)
    driver.step("disconnect")


def create_topics(address: str) -> None:
    """Create `TOPICS` on a Kafka, at a listener where whoever comes may; they are empty."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
        future.result(20)

    def all_have_leaders() -> bool | None:
        topics = admin.list_topics(timeout=20).topics
        partitions = [topics[name].partitions for name in TOPICS if name in topics]
        led = [each and all(p.leader >= 0 for p in each.values()) for each in partitions]
        return (len(led) == len(TOPICS) and all(led)) or None

    wait_for("topics with leaders", all_have_leaders, seconds=20)


def delete_topics(address: str) -> None:
    """Delete `TOPICS` from a Kafka."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_topics(list(TOPICS)).values():
        future.result(20)
