"""kafkajs with a cluster in memory of three nodes, with no more rights than it needs."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from aclbroker.testing import AclBroker
from tests.memory_cluster.rights import Right, grant, rights, was_enough
from tests.support.packages import node_modules
from tests.support.toolchain import require

STORIES: Final = Path(__file__).parent / "node" / "stories.js"
WITHIN: Final = 90


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(nodes=3) as running:
        yield running


def run_story(story: str, *login: str, prefix: str = "") -> CompletedProcess[str]:
    """Run a story of stories.js, whose login is an address, a user and a password."""
    command = [require("node"), str(STORIES), str(node_modules()), story, *login, prefix]
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)


def told(broker: AclBroker, story: str, given: list[Right]) -> Any:
    """Return what a story of stories.js saw, as a user who needs just these rights."""
    grant(broker, "app", given)
    done = run_story(story, broker.bootstrap_servers, "app", broker.password("app"))
    assert done.returncode == 0, f"{done.stderr}\n{broker.denials()}"
    was_enough(broker, given)
    return json.loads(done.stdout)


def test_its_admin_client_does_all_that_it_can_with_topics_and_groups(broker: AclBroker):
    given = [
        *rights("topic", "orders", "CREATE", "ALTER", "DELETE", "READ", "WRITE"),
        *rights("topic", "orders", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        *rights("group", "group", "READ", "DELETE"),
    ]
    assert told(broker, "admin", given) == {
        "brokers": 3,
        "created": True,
        "createdAgain": False,
        "partitions": 3,
        "isListed": True,
        "retention": "3600000",
        "offsets": ["0", "10"],
        "offsetsByTime": ["0", "10"],
        "lowAfterDeletion": "4",
        "set": "7",
        "reset": "4",
        "group": {"groupId": "group", "protocolType": "consumer"},
        "state": "Empty",
        "deletion": 0,
        "isListedAtLast": False,
    }


def test_its_consumers_share_a_topic_and_get_each_record_once(broker: AclBroker):
    broker.create_topic("orders", 4)
    given = [*rights("topic", "orders", "READ", "WRITE"), *rights("group", "group", "READ")]
    seen = told(broker, "groups", given)
    assert seen["shares"] == [2, 2]
    assert sorted(seen["values"]) == sorted(f"value {number}" for number in range(400))
    assert sum(map(int, seen["committed"])) == 400


def test_its_transactions_are_seen_whole_or_not_at_all(broker: AclBroker):
    broker.create_topic("orders", 2)
    broker.create_topic("sums")
    given = [
        *rights("topic", "orders", "READ", "WRITE"),
        *rights("topic", "sums", "READ", "WRITE"),
        *rights("group", "group", "READ"),
        *rights("group", "readers", "READ"),
        *rights("transactional_id", "writer", "WRITE"),
    ]
    assert told(broker, "transactions", given) == {
        "afterAbort": "10",
        "afterCommit": "12",
        "fenced": "INVALID_PRODUCER_EPOCH",
        "afterFencing": "12",
        "written": ["committed", "last"],
    }
