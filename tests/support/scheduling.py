"""Which tests wait for other programs, which share a process, and which start first.

Tests that share a peer that is slow to start (Spark, Kafka, the running clients) are one group;
any other module is a group of its own. No group is divided, and each process takes the next one
when it has finished its last, so the longest stand first.
"""

from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARING = {
    "tests/pipeline": "tests/pipeline",
    "tests/pipeline/analysis": "tests/pipeline/analysis",
    "tests/clients": "tests/clients",
    "tests/conformance": "tests/clients",
    "tests/conformance_tool/test_kafka.py": "tests/clients",
    "tests/logins": "tests/logins",
    "tests/auth": "tests/auth",
}
"""The group of a module or of all modules of a folder; the longest name that fits counts."""

ALONE = (
    "tests/pipeline/ingest/test_kafka_log.py",
    "tests/pipeline/replay/test_oracles.py",
)
"""Modules of those folders that share nothing."""

FIRST = (
    "tests/pipeline",
    "tests/clients",
    "tests/packaging/test_wheel.py",
    "tests/packaging/test_fresh_clone.py",
    "tests/pipeline/replay/test_oracles.py",
    "tests/logins",
    "tests/pipeline/ingest/test_kafka_log.py",
    "tests/pipeline/analysis",
    "tests/fuzz/test_broker.py",
    "tests/protocol/test_compile.py",
    "tests/protocol/test_kio.py",
    "tests/protocol/test_kafka.py",
    "tests/conformance_tool/test_broker.py",
    "tests/server/test_durability.py",
    "tests/server/test_certificate_reload.py",
    "tests/server/test_tls.py",
    "tests/auth",
)
"""The groups that take longest, in the order in which they start."""

OF_PEERS = (
    "tests/clients",
    "tests/conformance",
    "tests/conformance_tool/test_broker.py",
    "tests/conformance_tool/test_kafka.py",
    "tests/fuzz/test_broker.py",
    "tests/logins",
    "tests/packaging",
    "tests/protocol/test_kafka.py",
    "tests/server",
)
"""Modules and folders whose tests wait for other programs."""

PEERS = {"broker", "start_broker", "kafka", "java", "oracle", "spark"}
"""The fixtures that start another program."""


def waits_for_a_peer(item: pytest.Item) -> bool:
    """Whether a test waits for a broker, a JVM, a client or an installation."""
    module = PurePosixPath(item.nodeid.partition("::")[0])
    named = any(str(each) in OF_PEERS for each in (module, *module.parents))
    return named or not PEERS.isdisjoint(getattr(item, "fixturenames", ()))


def group_of(node_id: str) -> str:
    """The group of a test."""
    module = node_id.partition("::")[0]
    if module in ALONE:
        return module
    path = PurePosixPath(module)
    shared = (SHARING[str(each)] for each in (path, *path.parents) if str(each) in SHARING)
    return next(shared, module)


def place(node_id: str) -> int:
    """The place of a test's group among all: to sort by, where equal ones keep their order."""
    group = group_of(node_id)
    return FIRST.index(group) if group in FIRST else len(FIRST)


class Groups(LoadScopeScheduling):
    """Gives each process whole groups."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
