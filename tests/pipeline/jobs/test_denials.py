"""The job `denials`: what was denied, what is noise, and what would allow the rest."""

from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.jobs import denials
from aclbroker.pipeline.jobs.denials import DenialsOptions
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.use import figures_of, inputs_of, table_of, used

RULES = Ruleset(
    ordered(
        acls(
            "allow ALL topic * literal User:carol",
            "deny WRITE topic pay. prefixed User:*",
            "deny READ topic orders literal User:alice 10.0.0.66",
            "allow READ topic new literal User:dan",
        )
    )
)


def denied(**values):
    return used(allowed=False, **values)


ROWS = [
    denied(events=30),
    denied(events=20, day=2, host="10.0.0.2", hour=7, api="OffsetFetch"),
    denied(events=1, day=2, host="10.0.0.66"),
    used(events=4, day=1),
    denied(events=9, quiet=True),
    denied(operation="DESCRIBE", events=3),
    denied(principal="User:carol", operation="WRITE", resource_name="pay.x", events=40,
           rule="MatchingAcl"),
    denied(principal="User:dan", resource_name="new", events=10),
    denied(principal="User:eve", resource_name=None, events=8),
    denied(principal="User:eve", resource_name="(any)", operation="WRITE", events=7),
    denied(principal="User:frank", resource_name="vault", other_principals='["Group:g"]', events=6),
    denied(principal="User:frank", operation="DESCRIBE", resource_name="vault"),
    denied(principal="User:lister", operation="DESCRIBE", resource_name="x", quiet=True, events=99),
    denied(principal="User:once", resource_name="y"),
    denied(principal="User:gus", resource_type="GROUP", resource_name="*", events=2),
    denied(principal="User:gus", resource_type="GROUP", resource_name="**"),
    *(denied(principal="User:pod", resource_name="jobs", host=f"10.9.0.{n}") for n in range(12)),
    denied(cluster="c2", events=5, rule="MatchingAcl"),
]  # fmt: skip


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("denials")
    return inputs_of(spark, place, ROWS, days=4, current={"c1": RULES})


@pytest.fixture(scope="module")
def result(inputs):
    return denials.run(inputs)


def test_the_most_frequent_come_first_with_what_is_known_of_them(result):
    rows = table_of(result, "Top denied")
    assert [row["Events"] for row in rows] == [51, 40, 12, 10, 8, 7, 6, 5, 3, 2]
    assert rows[0] == {
        "Cluster": "c1",
        "Principal": "User:alice",
        "Operation": "READ",
        "Resource": "TOPIC orders",
        "Events": 51,
        "Days": 2,
        "Hosts": 3,
        "APIs": "Fetch, OffsetFetch",
        "First seen": "2026-03-01 12:00",
        "Last seen": "2026-03-03 12:00",
        "Allowed events": 4,
        "Remedy": "an ACL would allow it; from some hosts a DENY blocks it",
        "By which ACL": "ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.1; "
        "ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.2; "
        "DENY READ on TOPIC LITERAL orders to User:alice from 10.0.0.66",
        "Opens besides": "DESCRIBE on TOPIC orders from 10.0.0.2",
    }


def test_each_has_its_remedy(result):
    remedies = {
        (row["Principal"], row["Resource"], row["Operation"]): row["Remedy"]
        for row in table_of(result, "Top denied")
        if row["Cluster"] == "c1"
    }
    assert remedies["User:carol", "TOPIC pay.x", "WRITE"] == "a DENY ACL blocks it"
    assert remedies["User:dan", "TOPIC new", "READ"] == "allowed by now"
    assert remedies["User:eve", "TOPIC", "READ"].startswith("no resource was named")
    assert remedies["User:eve", "TOPIC (any)", "WRITE"].startswith(
        "no ACL can be made; asked of any"
    )
    assert remedies["User:frank", "TOPIC vault", "READ"] == "an ACL would allow it"
    assert remedies["User:alice", "TOPIC orders", "DESCRIBE"] == (
        "an ACL would allow it; READ, denied as well, implies it"
    )
    assert remedies["User:pod", "TOPIC jobs", "READ"] == (
        "an ACL for all hosts would allow it; denied from more than 10 hosts"
    )


def test_the_first_sentence_tells_what_acls_would_do(result):
    assert result.summary.endswith(
        "Of the 10 most frequent denials, ACLs would allow 4, 1 came from too many hosts for ACLs "
        "by host (see --any-host), a DENY blocks 1, and 1 are allowed by now."
    )


def test_the_suggestions_are_a_policy_to_choose_from(inputs, result):
    (file,) = (name for name in result.outputs if name.endswith(".yaml"))
    assert "not to be applied as it is" in result.outputs[file]
    policy = parse_policy(Path(inputs.output.place, file).read_text())
    assert policy.cluster == "c1"
    assert sorted(policy.acls) == acls(
        "allow READ topic orders literal User:alice 10.0.0.1",
        "allow READ topic orders literal User:alice 10.0.0.2",
        "allow READ topic vault literal User:frank 10.0.0.1",
        "allow READ group * prefixed User:gus 10.0.0.1",
    )


def test_each_suggestion_is_proven(inputs, result):
    figures = figures_of(result)
    assert figures["denials proven to be allowed"] == 4
    assert figures["denials whose ACLs open more"] == 3
    assert figures["denials allowed besides"] == 2
    table = inputs.spark.read.parquet(f"{inputs.output.place}/denials/remedies")
    proven = {
        (row["principal"], row["operation"]): row["proven_events"]
        for row in table.where("proven_events is not null").collect()
    }
    # 9 quiet ones among them
    assert proven == {
        ("User:alice", "READ"): 59,
        ("User:alice", "DESCRIBE"): 3,
        ("User:frank", "READ"): 6,
        ("User:gus", "READ"): 2,
    }


def test_what_the_acls_open_besides_is_in_the_table(inputs, result):
    assert "denials/remedies" in result.outputs
    table = inputs.spark.read.parquet(f"{inputs.output.place}/denials/remedies")
    found = {(row["principal"], row["operation"]): row for row in table.collect()}
    assert found["User:frank", "READ"]["opens"] == ["DESCRIBE on TOPIC vault from 10.0.0.1"]
    assert found["User:alice", "DESCRIBE"]["acls"] == [
        "ALLOW DESCRIBE on TOPIC LITERAL orders to User:alice from 10.0.0.1"
    ]
    assert found["User:alice", "DESCRIBE"]["opens"] == []
    assert found["User:gus", "READ"]["opens"] == ["READ, DESCRIBE on GROUP ** from 10.0.0.1"]
    assert found["User:pod", "READ"]["acls"] == []


def test_acls_for_all_hosts_are_suggested_where_these_are_asked_for(spark, tmp_path):
    inputs = inputs_of(spark, tmp_path, ROWS, days=4, current={"c1": RULES})
    result = denials.run(inputs, DenialsOptions(any_host=True))
    (file,) = (name for name in result.outputs if name.endswith(".yaml"))
    assert sorted(parse_policy((tmp_path / file).read_text()).acls) == acls(
        "allow READ topic orders literal User:alice",
        "allow READ topic vault literal User:frank",
        "allow READ topic jobs literal User:pod",
        "allow READ group * prefixed User:gus",
    )
    [row] = (row for row in table_of(result, "Top denied") if row["Principal"] == "User:pod")
    assert row["Opens besides"] == "READ, DESCRIBE on TOPIC jobs from any host"
    assert figures_of(result)["denials proven to be allowed"] == 5


def test_an_acl_is_for_the_host_that_was_denied_and_not_for_all(spark, tmp_path):
    """Allowed from .5 alone, denied from .6: the case of who is allowed by host."""
    rules = Ruleset(ordered(acls("allow READ topic orders literal User:alice 10.0.0.5")))
    rows = [used(host="10.0.0.5", events=9), denied(host="10.0.0.6", events=3)]
    result = denials.run(inputs_of(spark, tmp_path, rows, days=1, current={"c1": rules}))
    [row] = table_of(result, "Top denied")
    assert row["By which ACL"] == "ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.6"
    assert row["Opens besides"] == "DESCRIBE on TOPIC orders from 10.0.0.6"


def test_noise_is_counted(result):
    figures = figures_of(result)
    assert figures["denied events"] == 147
    assert figures["quiet events left out"] == 108
    assert figures["seldom denials put together"] == 3
    assert figures["denials told"] == 10


def test_what_cannot_be_told_is_said(result):
    assert any("the ACLs of cluster c2 are not given" in each for each in result.warnings)
    (row,) = (each for each in table_of(result, "Top denied") if each["Cluster"] == "c2")
    assert row["Remedy"] == "the current ACLs are not given; a DENY ACL blocked it"


def test_days_without_denials_are_drawn_too(result):
    by_day, by_principal = result.charts
    assert by_day.labels == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
    assert by_day.series == {"denied": [126, 0, 21, 0], "quiet": [108, 0, 0, 0]}
    assert by_principal.labels[:2] == ["User:alice", "User:carol"]
    assert by_principal.series["denied events"][:2] == [59, 40]


def test_what_a_suggestion_allows_besides_is_told(result):
    rows = table_of(result, "Denied, and allowed besides by the suggested ACLs")
    assert [tuple(row.values()) for row in rows] == [
        ("c1", "User:frank", "DESCRIBE", "TOPIC vault", 1),
        ("c1", "User:gus", "READ", "GROUP **", 1),
    ]
    assert any("would allow 2 other denials besides" in each for each in result.warnings)
    assert "denials/besides" in result.outputs


def test_a_log_without_denials_is_no_error(spark, tmp_path):
    inputs = inputs_of(spark, tmp_path, [used()], days=1, current={"c1": RULES})
    result = denials.run(inputs)
    assert result.summary == "Nothing was denied from 2026-03-01 to 2026-03-01."
    assert not any(name.endswith(".yaml") for name in result.outputs)


SCAN = [
    *(used(principal="User:svc", day=day, events=9) for day in range(6)),
    *(denied(principal="User:svc", day=5, resource_name=f"secret-{n:03}") for n in range(200)),
    *(
        denied(principal="User:svc", day=5, resource_type="CLUSTER", resource_name="kafka-cluster",
               operation=operation, hour=13)
        for operation in ("ALTER", "CREATE", "CLUSTER_ACTION")
    ),
    denied(principal="User:bob", events=5),
    denied(principal="User:once", resource_name="y"),
    denied(principal="User:maker", resource_type="CLUSTER", resource_name="kafka-cluster",
           operation="CREATE"),
]  # fmt: skip


def test_names_that_were_denied_once_are_told_by_kind_and_those_of_the_cluster_each(
    spark, tmp_path
):
    inputs = inputs_of(spark, tmp_path, SCAN, days=6, current={"c1": RULES})
    result = denials.run(inputs)
    assert result.summary == (
        "210 events were denied from 2026-03-01 to 2026-03-06. User:svc may be an intruder, from "
        "2026-03-06 12:00 to 2026-03-06 13:00 UTC (scan: 200 names, each once, such as secret-000; "
        "cluster: ALTER, CLUSTER_ACTION, CREATE on the cluster). Of the 5 most frequent denials, "
        "ACLs would allow 2, a DENY blocks 0, and 0 are allowed by now."
    )
    rows = table_of(result, "Denied seldom: names each once, by kind of resource")
    assert [(row["Principal"], row["Kind"], row["Names"]) for row in rows] == [
        ("User:svc", "TOPIC", 200),
        ("User:once", "TOPIC", 1),
    ]
    top = {(row["Principal"], row["Operation"]): row for row in table_of(result, "Top denied")}
    assert set(top) == {
        ("User:bob", "READ"),
        ("User:maker", "CREATE"),
        *(("User:svc", operation) for operation in ("ALTER", "CREATE", "CLUSTER_ACTION")),
    }


def test_a_principal_that_behaves_like_an_intruder_is_told_first_and_given_no_acl(spark, tmp_path):
    inputs = inputs_of(spark, tmp_path, SCAN, days=6, current={"c1": RULES})
    result = denials.run(inputs)
    assert result.tables[0].title == "Principals that behave like intruders"
    rows = table_of(result, "Principals that behave like intruders")
    assert [(row["Principal"], row["Kind"], row["Events"]) for row in rows] == [
        ("User:svc", "scan", 200),
        ("User:svc", "cluster", 3),
        ("User:svc", "spike", 203),
    ]
    assert result.alarms == {"suspects": 1}
    (file,) = (name for name in result.outputs if name.endswith(".yaml"))
    policy = parse_policy((tmp_path / file).read_text())
    assert {acl.principal for acl in policy.acls} == {"User:bob", "User:maker"}
    for row in table_of(result, "Top denied"):
        is_suspect = row["Principal"] == "User:svc"
        assert ("behaves like an intruder; denied 200 names" in row["Remedy"]) == is_suspect
        assert bool(row["By which ACL"]) != is_suspect


def test_a_denial_from_where_a_principal_never_came_is_told(spark, tmp_path):
    rows = [
        *(used(day=day) for day in range(3)),
        *(denied(day=2, host=f"10.6.6.{n}") for n in (7, 6)),
        # The host of bob was there from the first day, and pod has new hosts all the time.
        denied(principal="User:bob", host="10.0.0.7"),
        used(principal="User:bob"),
        *(used(principal="User:pod", host=f"10.9.0.{n}", day=n % 3) for n in range(12)),
        denied(principal="User:pod", host="10.9.1.1", day=2),
    ]
    result = denials.run(inputs_of(spark, tmp_path, rows, days=3))
    (row,) = table_of(result, "Principals that behave like intruders")
    assert (row["Principal"], row["Kind"]) == ("User:alice", "new host")
    assert row["Denied"].startswith("from 10.6.6.6 and 1 other host, where it had not come from")


def test_one_denial_is_one_event_and_one_row(spark, tmp_path):
    result = denials.run(inputs_of(spark, tmp_path, [denied()], days=1, current={"c1": RULES}))
    assert result.summary == "1 event was denied on 2026-03-01."
    (row,) = table_of(result, "Denied seldom: names each once, by kind of resource")
    assert (row["Principal"], row["For example"]) == ("User:alice", "TOPIC orders")
    assert result.alarms == {"suspects": 0}


@pytest.mark.parametrize("name", ["min_events", "most", "most_hosts"])
def test_options_are_checked(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        denials.JOB.options_with({name: 0})
