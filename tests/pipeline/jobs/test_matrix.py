"""Who used what, counted."""

from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.jobs.matrix import run
from tests.acl.examples import ALL, PREFIXED, allow, deny
from tests.pipeline.use import figures_of, inputs_of, table_of, used

ROWS = [
    used(events=5),
    used(events=7, host="10.0.0.2", listener="OTHER"),
    used(day=2, events=1, allowed=False),
    used(day=2, events=2, operation="DESCRIBE", api="Metadata", quiet=True),
    used(principal="User:bob", resource_name="*odd name", events=4),
    used(principal="User:bob", resource_name=None, events=1, allowed=False),
    used(cluster="7", principal="User:bob", resource_type="GROUP", events=30),
]


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return inputs_of(spark, tmp_path_factory.mktemp("matrix"), ROWS, days=3)


@pytest.fixture(scope="module")
def result(inputs):
    return run(inputs)


def test_the_table_has_a_row_for_each_use_of_a_day(inputs, result):
    table = inputs.spark.read.parquet(f"{inputs.output.place}/matrix/use")
    rows = table.where("principal = 'User:alice'").orderBy("day", "operation").collect()
    found = [(str(r.day), r.operation, r.events, r.allowed_events, r.quiet_events) for r in rows]
    assert found == [
        ("2026-03-01", "READ", 12, 12, 0),
        ("2026-03-03", "DESCRIBE", 2, 2, 2),
        ("2026-03-03", "READ", 1, 0, 0),
    ]
    place = Path(inputs.output.place, "matrix/use")
    assert "cluster=7/day=2026-03-01" in {
        str(path.parent.relative_to(place)) for path in place.rglob("*.parquet")
    }


def test_the_summary_counts(result):
    assert result.summary == (
        "3 principals used 4 resources in 50 events from 2026-03-01 to 2026-03-03."
    )
    assert figures_of(result)["Denied"] == 2


def test_top_lists_begin_with_the_most(result):
    assert table_of(result, "Top principals") == [
        {"Cluster": "7", "Principal": "User:bob", "Events": 30, "Allowed": 30, "Denied": 0},
        {"Cluster": "c1", "Principal": "User:alice", "Events": 15, "Allowed": 14, "Denied": 1},
        {"Cluster": "c1", "Principal": "User:bob", "Events": 5, "Allowed": 4, "Denied": 1},
    ]
    assert [row["Resource"] for row in table_of(result, "Top resources")] == [
        "GROUP orders",
        "TOPIC orders",
        'TOPIC "*odd name"',
        "TOPIC",
    ]


def test_the_heat_table_has_a_column_for_each_operation(result):
    assert table_of(result, "Events by principal and operation")[1] == {
        "Cluster": "c1",
        "Principal": "User:alice",
        "READ": 13,
        "DESCRIBE": 2,
    }


def test_days_without_events_are_in_the_chart(result):
    chart = result.charts[0]
    assert list(chart.labels) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert chart.series == {"allowed": [46, 0, 2], "denied": [1, 0, 1]}


ALLOWS = allow()
ALLOWS_PREFIX = allow(operation=ALL, name="ord", pattern_type=PREFIXED, host="10.0.0.2")
DENIES = deny("User:bob", name="*")


def test_with_acls_it_tells_what_they_decide(spark, tmp_path):
    rules = Ruleset().with_acls([ALLOWS, ALLOWS_PREFIX, DENIES])
    result = run(inputs_of(spark, tmp_path, ROWS, days=3, current={"c1": rules}))
    assert set(result.outputs) == {"matrix/use", "matrix/decisions"}
    rows = spark.read.parquet(f"{tmp_path}/matrix/decisions").collect()
    found = {
        (r.principal, r.operation, r.resource_name, r.host): (
            r.events,
            r.allowed,
            r.rule,
            set(r.allow_ids),
            set(r.deny_ids),
        )
        for r in rows
    }
    one, two, three = map(acl_id, (ALLOWS, ALLOWS_PREFIX, DENIES))
    matches = "MatchingAcl"
    assert found == {
        ("User:alice", "READ", "orders", None): (6, True, matches, {one}, set()),
        ("User:alice", "READ", "orders", "10.0.0.2"): (7, True, matches, {one, two}, set()),
        ("User:alice", "DESCRIBE", "orders", None): (2, True, matches, {one}, set()),
        ("User:bob", "READ", "*odd name", None): (4, False, matches, set(), {three}),
        ("User:bob", "READ", None, None): (1, False, "DefaultDeny", set(), set()),
    }
    assert {r.cluster for r in rows} == {"c1"}
