"""Which tests wait for other programs, which share a process, and which start first.

Tests that share a peer that is slow to start (Spark, Kafka, the running clients) are one group;
any other module is a group of its own. No group is divided, and each process takes the next one
when it has finished its last, so the longest stand first.
"""

from functools import cache
from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARING = {
    "tests/pipeline/command/test_engines.py": "spark",
    "tests/pipeline/command/test_foreign_tables.py": "spark",
    "tests/pipeline/ingest/test_tables.py": "spark",
    "tests/pipeline/replay/test_replay.py": "spark",
    "tests/pipeline/spark": "spark",
    "tests/pipeline/usage/test_table.py": "spark",
    "tests/clients": "tests/clients",
    "tests/conformance": "tests/clients",
    "tests/conformance_tool/test_kafka.py": "tests/clients",
    "tests/handlers/test_telemetry.py": "tests/clients",
    "tests/logins": "tests/logins",
    "tests/auth": "tests/auth",
    "tests/zookeeper": "tests/zookeeper",
}
"""The group of a module or of all modules of a folder; the longest name that fits counts.

The group `spark` has the modules whose daily tests use Spark, so the daily run starts it once.
"""

FIRST = (
    "tests/packaging/test_fresh_clone.py",
    "spark",
    "tests/zookeeper",
    "tests/clients",
    "tests/gateway/test_programs.py",
    "tests/pipeline/replay/test_oracles.py",
    "tests/packaging/test_wheel.py",
    "tests/kafka_store/test_brokers.py",
    "tests/auth",
    "tests/kafka_store/test_contract.py",
    "tests/cli/test_tutorials.py",
    "tests/pipeline/ingest/test_kafka_log.py",
    "tests/kafka_store/test_fleet.py",
    "tests/conformance_tool/test_behaviour.py",
    "tests/fuzz/test_unkind.py",
    "tests/stores/test_contract.py",
    "tests/acl/reasoning/test_lint_exact.py",
    "tests/logins",
    "tests/protocol/test_compile.py",
    "tests/acl/reasoning/test_exact.py",
    "tests/server/test_turns.py",
    "tests/gateway/test_as_one_cluster.py",
    "tests/server/test_tls.py",
    "tests/protocol/test_kafka.py",
    "tests/providers/test_migration.py",
    "tests/conformance_tool/test_broker.py",
    "tests/testing/test_plugin.py",
    "tests/testing/test_run.py",
    "tests/protocol/test_kio.py",
    "tests/memory_cluster/test_franz_go.py",
    "tests/pipeline/analysis/test_proposals.py",
    "tests/pipeline/ingest/test_json_form.py",
    "tests/pipeline/report/test_browser.py",
    "tests/server/test_workers.py",
    "tests/pipeline/acls/test_commands.py",
    "tests/pipeline/command/test_coverage_command.py",
    "tests/pipeline/jobs/test_judged_by_kafka.py",
    "tests/pipeline/jobs/test_applied_to_kafka.py",
    "tests/pipeline/analysis/test_redundancy.py",
    "tests/pipeline/ingest/test_json_batches.py",
    "tests/pipeline/ingest/test_ledger_file.py",
    "tests/pipeline/ingest/test_kafka_form.py",
    "tests/pipeline/ingest/test_growth.py",
    "tests/memory_cluster/test_connect.py",
    "tests/providers/test_kraft_migration.py",
    "tests/server/test_certificate_reload.py",
    "tests/server/test_besieged.py",
    "tests/server/test_durability.py",
    "tests/testing/test_application.py",
    "tests/fuzz/test_broker.py",
    "tests/kraft/test_kafka.py",
    "tests/conformance_tool/test_comparison.py",
    "tests/benchmarks/test_attacks.py",
    "tests/stores/test_flips.py",
    "tests/server/test_store.py",
    "tests/server/test_groups.py",
)
"""The groups that take longest, in the order in which they start."""

OF_PEERS = (
    "tests/acl/reasoning/test_kafka.py",
    "tests/cli/test_tutorials.py",
    "tests/clients",
    "tests/conformance",
    "tests/conformance_tool/test_behaviour.py",
    "tests/conformance_tool/test_broker.py",
    "tests/conformance_tool/test_kafka.py",
    "tests/fuzz/test_broker.py",
    "tests/fuzz/test_unkind.py",
    "tests/gateway",
    "tests/http_api",
    "tests/kafka_store",
    "tests/logins",
    "tests/memory_cluster",
    "tests/migrate",
    "tests/packaging",
    "tests/pipeline/command/test_engines.py",
    "tests/pipeline/ingest/test_dialects.py",
    "tests/pipeline/replay/test_oracles.py",
    "tests/protocol/test_kafka.py",
    "tests/server",
    "tests/support/test_shared_classes.py",
    "tests/testing",
    "tests/zookeeper",
)
"""Modules and folders whose tests wait for other programs."""

EXHAUSTIVE = (
    "tests/acl/reasoning/test_exact.py",
    "tests/acl/reasoning/test_explain.py",
    "tests/acl/reasoning/test_lint_exact.py",
    "tests/acl/test_cost.py",
    "tests/acl/test_index.py",
    "tests/acl/test_properties.py",
    "tests/acl/test_reference.py",
    "tests/authorizer/test_sources.py",
    "tests/benchmarks",
    "tests/cli/test_documented.py",
    "tests/cli/test_terminal.py",
    "tests/conformance_tool/test_comparison.py",
    "tests/conformance_tool/test_corpus.py",
    "tests/conformance_tool/test_recording.py",
    "tests/fuzz/test_decode.py",
    "tests/fuzz/test_garbage.py",
    "tests/gate/test_every_key.py",
    "tests/gate/test_mutations.py",
    "tests/gate/test_reserved.py",
    "tests/handlers/test_hidden_names.py",
    "tests/memory/test_name_regex.py",
    "tests/observability/test_audit_rollups.py",
    "tests/pipeline/analysis",
    "tests/pipeline/command",
    "tests/pipeline/ingest/test_doubts.py",
    "tests/pipeline/ingest/test_json_batches.py",
    "tests/pipeline/ingest/test_json_form.py",
    "tests/pipeline/ingest/test_kafka_batches.py",
    "tests/pipeline/ingest/test_kafka_form.py",
    "tests/pipeline/ingest/test_layouts.py",
    "tests/pipeline/jobs/test_recommend_parts.py",
    "tests/pipeline/local/test_ending.py",
    "tests/pipeline/replay",
    "tests/pipeline/report/test_browser.py",
    "tests/pipeline/spark/test_shipping.py",
    "tests/protocol/test_compile.py",
    "tests/protocol/test_header.py",
    "tests/protocol/test_kio.py",
    "tests/protocol/test_limits.py",
    "tests/protocol/test_pieces.py",
    "tests/protocol/test_specifications.py",
    "tests/server/test_turns.py",
    "tests/stores/test_contract.py",
    "tests/stores/test_copies.py",
    "tests/stores/test_crash.py",
    "tests/stores/test_flips.py",
    "tests/stores/test_owned.py",
    "tests/stores/test_shared_sqlite.py",
    "tests/stores/test_sqlite.py",
    "tests/tools/test_generate_audit.py",
)
"""Modules and folders whose tests wait for nothing but take long: many go through many cases."""

THOROUGH = (
    "tests/benchmarks/test_hidden_names.py",
    "tests/conformance/test_conformance.py",
    "tests/gateway/test_streams_groups.py",
    "tests/http_api/test_out_of_reach.py",
    "tests/http_api/test_topic.py",
    "tests/kafka_store/test_completeness.py",
    "tests/kafka_store/test_cut_off.py",
    "tests/kafka_store/test_drills.py",
    "tests/kafka_store/test_migrate.py",
    "tests/kafka_store/test_outage.py",
    "tests/kafka_store/test_past.py",
    "tests/kafka_store/test_snapshot.py",
    "tests/memory_cluster/test_connect.py",
    "tests/memory_cluster/test_consumer_groups_command.py",
    "tests/memory_cluster/test_franz_go.py",
    "tests/memory_cluster/test_kafka_python.py",
    "tests/memory_cluster/test_share_tools.py",
    "tests/memory_cluster/test_streams.py",
    "tests/memory_cluster/test_transactions_command.py",
    "tests/migrate/test_trouble.py",
    "tests/packaging/test_fresh_clone.py",
    "tests/packaging/test_wheel.py",
    "tests/pipeline/ingest/test_kafka_log.py",
    "tests/pipeline/jobs/test_applied_to_kafka.py",
    "tests/pipeline/replay/test_oracles.py",
    "tests/pipeline/spark/test_cluster.py",
    "tests/providers/test_lost_sources.py",
    "tests/providers/test_migration.py",
    "tests/zookeeper/test_acls_command.py",
    "tests/zookeeper/test_drills.py",
    "tests/zookeeper/test_trouble.py",
)
"""Modules and folders that only `make test-all` runs."""

PEERS = {"broker", "start_broker", "kafka", "java", "oracle", "spark"}
"""The fixtures that start another program."""


def _is_of(item: pytest.Item, places: tuple[str, ...]) -> bool:
    """Whether a test is in one of the modules and folders."""
    return _is_in(item.nodeid.partition("::")[0], places)


@cache
def _is_in(module: str, places: tuple[str, ...]) -> bool:
    path = PurePosixPath(module)
    return any(str(parent) in places for parent in (path, *path.parents))


def is_exhaustive(item: pytest.Item) -> bool:
    """Whether a test goes through a great many cases."""
    return _is_of(item, EXHAUSTIVE)


def is_thorough(item: pytest.Item) -> bool:
    """Whether only `make test-all` runs a test."""
    return _is_of(item, THOROUGH)


def is_slow(place: str) -> bool:
    """Whether a module, or all modules of a folder, take long or wait for other programs."""
    return any(_is_in(place, slow) for slow in (OF_PEERS, EXHAUSTIVE, THOROUGH))


def waits_for_a_peer(item: pytest.Item) -> bool:
    """Whether a test waits for a broker, a JVM, a client or an installation."""
    return _is_of(item, OF_PEERS) or not PEERS.isdisjoint(getattr(item, "fixturenames", ()))


def group_of(node_id: str) -> str:
    """The group of a test."""
    return _group_of_module(node_id.partition("::")[0])


@cache
def _group_of_module(module: str) -> str:
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
