"""A broker with workers, and its processes."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.process import wait_for

TEAM = {"aclbroker.workers": "2", "aclbroker.metrics.address": "127.0.0.1:0"}
ENDS_WITHIN = 20.0
DENIED = 31


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def workers(broker: Broker) -> list[int]:
    """The ids of the workers' processes."""
    return [each for nursery in children(broker.running.pid) for each in children(nursery)]


def all_processes(broker: Broker) -> list[int]:
    return [broker.running.pid, *children(broker.running.pid), *workers(broker)]


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


def all_ended(pids: list[int]) -> bool | None:
    return None if any(map(is_running, pids)) else True


def kill_worker(broker: Broker) -> int:
    """Kill one of two workers, and wait until there are two again; returns whom."""
    before = workers(broker)
    os.kill(before[0], signal.SIGKILL)
    wait_for("another worker", lambda: replaced(broker, before[0]), ENDS_WITHIN)
    return before[0]


def replaced(broker: Broker, pid: int) -> bool | None:
    now = workers(broker)
    return True if len(now) == 2 and pid not in now else None


def logged_in(broker: Broker, user: str, password: str = "") -> Client:
    client = Client(broker.listeners["SASL_PLAINTEXT"])
    assert client.login(user, password or PASSWORDS[user]).error_code == 0
    return client


def described(client: Client) -> int:
    """The error code of a DescribeAcls: 0 if the cluster may be described."""
    code: int = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code
    return code


def cluster_describe(principal: str = "User:alice") -> AclCreation:
    """The creation of the ACL by which a principal may list ACLs."""
    return AclCreation(4, "kafka-cluster", 3, principal, "*", 8, 3)


def delete_of(client: Client, principal: str) -> Any:
    """Delete all ACLs of a principal; returns the answer."""
    request = DeleteAclsRequest([DeleteAclsFilter(1, None, 1, principal, None, 1, 1)])
    return client.ask(ApiKey.DELETE_ACLS, 3, request)
