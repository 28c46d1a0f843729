"""Who behaves anew, on a planted case of six days: three of baseline, three after it."""

from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.jobs.anomalies import AnomaliesOptions, run
from tests.pipeline.use import figures_of, inputs_of, table_of, used

DAYS = range(6)

STEADY = [used(day=day, events=50) for day in DAYS]

NEW_HOST = [
    used(day=4, host="10.0.0.99", events=3),
    used(day=4, host="10.0.0.99", events=2, allowed=False, resource_name="secret"),
]

NEW_PRINCIPAL = [
    used(day=day, principal="User:new", operation="DELETE", resource_name="old", events=20)
    for day in (3, 4)
]

# A deployment whose pods have other addresses each day, and groups named after them.
PODS = [
    used(
        day=day,
        principal="User:pods",
        host=f"10.1.{day}.{pod}",
        resource_type="GROUP",
        resource_name=f"worker-{day}-{pod}",
    )
    for day in DAYS
    for pod in range(3)
]

# Many hosts on one day alone are not a habit.
ATTACK = [used(day=day, principal="User:bob") for day in DAYS] + [
    used(day=5, principal="User:bob", host=f"10.9.0.{n}", hour=9 + n) for n in range(9)
]

DENIED_THEN_ALLOWED = [
    used(day=1, resource_name="payroll", allowed=False, events=4),
    used(day=5, hour=8, resource_name="payroll", events=2),
]
ALLOWED_THEN_DENIED = [
    used(day=0, resource_name="closed"),
    used(day=4, resource_name="closed", allowed=False),
]
ONLY_LISTED = [used(day=4, operation="DESCRIBE", resource_name="listed", quiet=True)]

ADMIN = [used(day=day, principal="User:ops", operation="ALTER", events=4) for day in DAYS] + [
    used(day=4, principal="User:ops", operation="DELETE", events=36),
    used(day=5, principal="User:ops", operation="READ", allowed=False, events=36),
]

LATE_CLUSTER = [used(day=4, cluster="c2", principal="User:late")]

ROWS = [
    *STEADY,
    *NEW_HOST,
    *NEW_PRINCIPAL,
    *PODS,
    *ATTACK,
    *DENIED_THEN_ALLOWED,
    *ALLOWED_THEN_DENIED,
    *ONLY_LISTED,
    *ADMIN,
    *LATE_CLUSTER,
]


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return inputs_of(spark, tmp_path_factory.mktemp("anomalies"), ROWS, days=6)


@pytest.fixture(scope="module")
def result(inputs):
    return run(inputs)


def test_new_principals_are_told_with_what_they_did(result):
    assert table_of(result, "New principals") == [
        {
            "Cluster": "c1",
            "Principal": "User:new",
            "Since": "2026-03-04",
            "Hosts": 1,
            "Events": 40,
            "Denied": 0,
            "Administrative": 40,
        }
    ]


def test_known_principals_from_new_hosts(inputs, result):
    rows = table_of(result, "Principals from new hosts")
    assert [(row["Principal"], row["Hosts before"], row["New hosts"]) for row in rows] == [
        ("User:bob", 1, 9),
        ("User:alice", 1, 1),
    ]
    assert rows[0]["First of them"] == "10.9.0.0"
    assert rows[1]["On"] == "2026-03-05"
    assert (rows[1]["Events"], rows[1]["Denied"]) == (5, 2)
    hosts = inputs.spark.read.parquet(f"{inputs.output.place}/anomalies/hosts")
    assert hosts.count() == 10


def test_hosts_and_names_that_are_always_new_are_said_once(result):
    assert table_of(result, "Principals with ever new hosts") == [
        {"Cluster": "c1", "Principal": "User:pods", "Hosts": 18, "Events": 18}
    ]
    assert table_of(result, "Grants with ever new names") == [
        {
            "Cluster": "c1",
            "Principal": "User:pods",
            "Operation": "READ",
            "Type": "GROUP",
            "New names": 9,
            "Events": 9,
        }
    ]


def test_first_seen_grants_begin_with_administrative_ones(result):
    rows = table_of(result, "First-seen grants")
    assert [(row["Principal"], row["Operation"], row["Resource"]) for row in rows] == [
        ("User:ops", "DELETE", "TOPIC orders"),
        ("User:alice", "READ", "TOPIC payroll"),
    ]


def test_what_was_denied_and_then_allowed(result):
    assert table_of(result, "Denied, then allowed") == [
        {
            "Cluster": "c1",
            "Principal": "User:alice",
            "Operation": "READ",
            "Resource": "TOPIC payroll",
            "First allowed (UTC)": "2026-03-06 08:00:00",
            "Events": 2,
            "Denied": 4,
        }
    ]


def test_spikes_of_administrative_events_and_of_denials(result):
    assert table_of(result, "Spikes") == [
        {
            "Cluster": "c1",
            "Principal": "User:ops",
            "Day": "2026-03-06",
            "Kind": "denied",
            "Events": 36,
            "Usual": 0.0,
            "Limit": 6.0,
        },
        {
            "Cluster": "c1",
            "Principal": "User:ops",
            "Day": "2026-03-05",
            "Kind": "administrative",
            "Events": 40,
            "Usual": 4.0,
            "Limit": 16.0,
        },
    ]


def test_the_baseline_is_named_and_clusters_without_one_are_left_out(result):
    assert figures_of(result)["Baseline"] == "2026-03-01 to 2026-03-03"
    assert result.warnings == [
        "left out, since their log begins after the baseline (before 2026-03-04): clusters c2"
    ]
    chart = result.charts[0]
    assert list(chart.labels) == ["2026-03-04", "2026-03-05", "2026-03-06"]
    assert chart.series == {"hosts": [0, 1, 9], "grants": [0, 1, 1]}


@pytest.mark.parametrize(
    ("days", "baseline", "message"),
    [
        (1, None, r"covers one day \(2026-03-01\)"),
        (6, 6, "a baseline of 6 days does not fit into the log's 6: it can have 1 to 5 days"),
        (6, 0, "a baseline of 0 days does not fit"),
    ],
)
def test_a_log_without_days_to_compare_is_refused(spark, tmp_path, days, baseline, message):
    inputs = inputs_of(spark, tmp_path, [], days)
    with pytest.raises(InputError, match=message):
        run(inputs, AnomaliesOptions(baseline))


def with_odd_days(spark, place, events):
    """The inputs of a run on the last day, with events on further days, by their number."""
    odd = [used(day=day, principal="User:new", events=count) for day, count in events.items()]
    rows = [*ROWS, *(used(day=day, events=200) for day in DAYS), *odd]
    given = inputs_of(spark, place, rows, days=6)
    by_day: Counter[date] = Counter()
    for row in rows:
        by_day[row["day"]] += row["events"]
    first, last = min(by_day), max(by_day)
    window = replace(given.window, first_day=first, last_day=last, by_day=by_day)
    return replace(given, window=window, today=date(2026, 3, 6))


def test_events_that_a_wrong_clock_dated_silence_nothing(spark, tmp_path):
    given = with_odd_days(spark, tmp_path, {26_600: 400, 10: 1, -9_000: 1})
    assert len(given.window.days) == 6 + 5 + 2
    found = run(given)
    assert [row["Principal"] for row in table_of(found, "New principals")] == ["User:new"]
    assert figures_of(found)["Baseline"] == "2026-03-01 to 2026-03-03"
    (future, apart, _) = found.warnings
    assert future.startswith("left out, since they are still to come: the clock was wrong")
    assert "2026-03-11, 2098-12-28, with 401 events; --days looks at them alone" in future
    assert apart.startswith("left out, since they stand apart from all others")
    assert "2001-07-10, with 1 event;" in apart


def test_days_far_from_the_others_are_named_though_they_are_looked_at(spark, tmp_path):
    found = run(with_odd_days(spark, tmp_path, {-9_000: 400, -20: 1}))
    assert figures_of(found)["Baseline"] == "2001-07-10 to 2026-03-02"
    (warning, _) = found.warnings
    assert warning.startswith("looked at like all others, but far from them")
    assert "2001-07-10, 2026-02-09, with 401 events; --since and --until" in warning
