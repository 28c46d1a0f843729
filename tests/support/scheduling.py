"""Which tests wait for other programs, which share a process, and which start first.

Tests that share a peer that is slow to start (Spark, Kafka, the running clients) are one group;
any other module is a group of its own. No group is divided, and each process takes the next one
when it has finished its last, so the longest stand first.
"""

from collections.abc import Collection
from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARING = {
    "tests/pipeline": "tests/pipeline",
    "tests/pipeline/analysis": "tests/pipeline/analysis",
    "tests/clients": "tests/clients",
    "tests/conformance": "tests/clients",
    "tests/conformance_tool/test_kafka.py": "tests/clients",
    "tests/handlers/test_telemetry.py": "tests/clients",
    "tests/logins": "tests/logins",
    "tests/auth": "tests/auth",
    "tests/zookeeper": "tests/zookeeper",
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
    "tests/server/test_turns.py",
    "tests/zookeeper",
    "tests/kafka_store/test_fleet.py",
    "tests/cli/test_tutorials.py",
    "tests/memory_cluster/test_franz_go.py",
    "tests/pipeline/ingest/test_kafka_log.py",
    "tests/pipeline/analysis",
    "tests/fuzz/test_broker.py",
    "tests/fuzz/test_unkind.py",
    "tests/kraft/test_kafka.py",
    "tests/protocol/test_compile.py",
    "tests/protocol/test_kio.py",
    "tests/protocol/test_kafka.py",
    "tests/conformance_tool/test_comparison.py",
    "tests/conformance_tool/test_behaviour.py",
    "tests/conformance_tool/test_broker.py",
    "tests/benchmarks/test_attacks.py",
    "tests/testing/test_application.py",
    "tests/server/test_besieged.py",
    "tests/server/test_durability.py",
    "tests/stores/test_flips.py",
    "tests/server/test_store.py",
    "tests/server/test_certificate_reload.py",
    "tests/server/test_groups.py",
    "tests/server/test_tls.py",
    "tests/auth",
)
"""The groups that take longest, in the order in which they start."""

OF_PEERS = (
    "tests/cli/test_tutorials.py",
    "tests/clients",
    "tests/conformance",
    "tests/conformance_tool/test_behaviour.py",
    "tests/conformance_tool/test_broker.py",
    "tests/conformance_tool/test_kafka.py",
    "tests/fuzz/test_broker.py",
    "tests/fuzz/test_unkind.py",
    "tests/kafka_store",
    "tests/logins",
    "tests/mds",
    "tests/memory_cluster",
    "tests/packaging",
    "tests/pipeline/ingest/test_dialects.py",
    "tests/pipeline/replay/test_oracles.py",
    "tests/protocol/test_kafka.py",
    "tests/reasoning/test_kafka.py",
    "tests/server",
    "tests/testing/test_application.py",
    "tests/zookeeper",
)
"""Modules and folders whose tests wait for other programs."""

EXHAUSTIVE = (
    "tests/acl/test_cost.py",
    "tests/acl/test_index.py",
    "tests/acl/test_properties.py",
    "tests/benchmarks",
    "tests/conformance_tool/test_comparison.py",
    "tests/fuzz/test_decode.py",
    "tests/pipeline/analysis",
    "tests/pipeline/ingest/test_json_batches.py",
    "tests/pipeline/ingest/test_kafka_batches.py",
    "tests/protocol/test_compile.py",
    "tests/protocol/test_kio.py",
    "tests/protocol/test_specifications.py",
    "tests/reasoning/test_exact.py",
    "tests/reasoning/test_lint_exact.py",
    "tests/server/test_turns.py",
    "tests/stores/test_crash.py",
    "tests/stores/test_flips.py",
    "tests/tools/test_generate_audit.py",
)
"""Modules and folders whose tests wait for nothing but go through a great many cases."""

INSTALLING = ("tests/packaging/test_fresh_clone.py", "tests/packaging/test_wheel.py")
"""Modules whose tests install the program, with all that it needs, into new environments."""

PEERS = {"broker", "start_broker", "kafka", "java", "oracle", "spark"}
"""The fixtures that start another program."""


def _is_of(item: pytest.Item, places: Collection[str]) -> bool:
    """Whether a test is in one of the modules and folders."""
    module = PurePosixPath(item.nodeid.partition("::")[0])
    return any(str(each) in places for each in (module, *module.parents))


def is_exhaustive(item: pytest.Item) -> bool:
    """Whether a test goes through a great many cases."""
    return _is_of(item, EXHAUSTIVE)


def installs(item: pytest.Item) -> bool:
    """Whether a test installs the program anew, which takes minutes and says little of its code."""
    return _is_of(item, INSTALLING)


def waits_for_a_peer(item: pytest.Item) -> bool:
    """Whether a test waits for a broker, a JVM, a client or an installation."""
    return _is_of(item, OF_PEERS) or not PEERS.isdisjoint(getattr(item, "fixturenames", ()))


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
