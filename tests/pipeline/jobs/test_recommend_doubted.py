"""`recommend` where its log or its ACLs may be misread: what it refuses, and that nothing opens.

The log may say otherwise than the rules given, hosts may be subnets though nobody said so, and what
was asked of any topic is no request about a resource.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.opened import opened
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.jobs import recommend
from aclbroker.pipeline.jobs.recommend.options import RecommendOptions
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.use import figures_of, inputs_of, table_of, used

OF_SUBNETS = Ruleset(
    ordered(
        acls(
            "allow READ topic t literal User:alice 10.0.0.0/8",
            "allow READ topic u literal User:alice 10.0.0.0/8",
            "allow READ topic v literal User:bob",
        )
    )
)
ALICE_READS = [
    used(resource_name="t", events=50),
    used(resource_name="u", events=50),
    used(resource_name="v", principal="User:bob"),
]


def rules(*texts: str) -> Ruleset:
    return Ruleset(ordered(acls(*texts)))


def recommended(inputs, file: str = "acls") -> Ruleset:
    return Ruleset(
        ordered(parse_policy(Path(inputs.output.place, f"recommend/{file}.yaml").read_text()).acls)
    )


def test_a_log_that_the_rules_do_not_explain_is_refused_with_the_likeliest_cause(spark, tmp_path):
    inputs = inputs_of(spark, tmp_path, ALICE_READS, days=1, current={"c1": OF_SUBNETS})
    with pytest.raises(InputError) as refused:
        recommend.run(inputs)
    text = str(refused.value)
    assert "cluster c1 is left out: of 101 events in its log, 100 were decided otherwise" in text
    assert "--max-drift allows 1 of 100. Likeliest cause: in cluster c1, 2 ACLs name" in text
    assert text.endswith("without --cidr, with which 100 more events are decided as logged")
    # It is counted even so.
    assert refused.value.alarms == {"drift": 100}
    assert not Path(tmp_path, "recommend").exists()

    told = replace(inputs, current={"c1": replace(OF_SUBNETS, cidr=True)})
    assert recommend.run(told).alarms == {"opened": 0, "drift": 0}
    assert recommended(inputs).acls == OF_SUBNETS.acls


def test_so_much_drift_as_is_allowed_is_told(spark, tmp_path):
    inputs = inputs_of(spark, tmp_path, ALICE_READS, days=1, current={"c1": OF_SUBNETS})
    result = recommend.run(inputs, RecommendOptions(max_drift=99.1))
    assert result.alarms == {"opened": 0, "drift": 100}
    assert list(recommended(inputs).acls) == acls("allow READ topic v literal User:bob")
    assert any("100 events were decided otherwise than the current" in e for e in result.warnings)


def test_clusters_that_are_left_out_keep_their_acls_and_the_others_are_answered(spark, tmp_path):
    silent = rules("allow READ topic t literal User:alice", "allow READ topic u literal User:gone")
    rows = [
        *ALICE_READS,
        used(cluster="c2", resource_name="t"),
        used(cluster="c3", resource_name="t", principal="User:mallory", allowed=False),
        used(cluster="c4", resource_name="t", principal="User:mallory", allowed=False),
    ]
    current = {"c1": OF_SUBNETS, "c2": silent, "c3": silent}
    inputs = inputs_of(spark, tmp_path, rows, days=1, current=current)
    result = recommend.run(inputs)
    assert set(result.left_out) == {"c1", "c3"}
    assert "its log has no allowed event" in result.left_out["c3"]
    assert "Of 4 clusters, 2 are left out." in result.summary
    assert [row["Cluster"] for row in table_of(result, "Clusters left out")] == ["c1", "c3"]
    assert sum("left out" in each for each in result.warnings) == 2
    # What is left out was counted.
    assert result.alarms == {"drift": 100}
    assert recommended(inputs, "acls-c1").acls == OF_SUBNETS.acls
    assert recommended(inputs, "acls-c3").acls == silent.acls
    assert recommended(inputs, "acls-c4").acls == ()
    script = Path(tmp_path, "recommend/acls-c1.sh").read_text()
    assert "adds 0 ACLs and removes 0" in script
    assert list(recommended(inputs, "acls-c2").acls) == acls(
        "allow READ topic t literal User:alice"
    )
    for table in ("changes", "opened", "principals", "clusters"):
        read = spark.read.parquet(f"{tmp_path}/recommend/{table}")
        assert {row["cluster"] for row in read.collect()} <= {"c2", "c4"}, table
    assert figures_of(result)["ACLs now"] == 2


def test_a_denial_from_what_may_be_a_subnet_stays_and_nothing_opens_if_it_is_one(spark, tmp_path):
    current = rules(
        "allow READ topic t literal User:alice",
        "deny READ topic t literal User:alice 10.0.0.0/8",
        "deny READ topic u literal User:alice 10.0.0.0/8",
    )
    rows = [used(resource_name="t", host="192.0.2.1", events=5)]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": current})
    result = recommend.run(inputs)
    assert result.alarms == {"opened": 0, "drift": 0}
    found = recommended(inputs)
    assert list(found.acls) == acls(
        "allow READ topic t literal User:alice", "deny READ topic t literal User:alice 10.0.0.0/8"
    )
    assert opened(replace(current, cidr=True), replace(found, cidr=True)).opened == ()


def test_what_a_prefix_opens_is_told_as_far_as_it_may(spark, tmp_path):
    """A Kafka overlooks the DENY, so that there the prefix opens its names to that host, too."""
    names = [f"app.{name}" for name in "abcd"]
    current = rules(
        *(f"allow READ topic {name} literal User:alice" for name in names),
        "deny ALL topic app. prefixed User:alice 2001:DB8::1",
    )
    rows = [used(resource_name=name) for name in names]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": current})
    result = recommend.run(inputs, RecommendOptions(prefixes=True))
    rows = table_of(result, "Opened: what would be allowed, and is not now")
    assert {row["Resources"] for row in rows} == {"TOPIC app.* but app.a, app.b, app.c and 1 more"}
    assert sorted(row["Hosts"] for row in rows) == ["any host", "any host but 2001:db8::1"]


def test_what_was_used_on_any_topic_is_kept_and_replayed(spark, tmp_path):
    """As an idempotent producer asks, from another host than what it writes."""
    current = rules(
        "allow WRITE topic t literal User:alice 10.0.0.2",
        "allow WRITE topic app. prefixed User:alice",
        "allow ALL topic * literal User:alice",
        "allow WRITE topic y literal User:bob",
        "deny WRITE topic y literal User:bob 10.0.0.1",
        "deny WRITE topic * literal User:carol",
    )
    rows = [
        used(resource_name="(any)", operation="WRITE", events=3),
        used(resource_name="t", operation="READ", host="10.0.0.2"),
        used(resource_name="y", operation="WRITE", host="10.0.0.2", principal="User:bob"),
        used(resource_name="(any)", operation="WRITE", host="10.0.0.2", principal="User:bob"),
        used(resource_name="(any)", operation="WRITE", principal="User:bob", allowed=False),
        used(resource_name="(any)", operation="WRITE", principal="User:carol", allowed=False),
    ]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": current})
    result = recommend.run(inputs)
    assert list(recommended(inputs).acls) == acls(
        "allow READ topic t literal User:alice",
        "allow WRITE topic app. prefixed User:alice",
        "allow WRITE topic y literal User:bob",
        "deny WRITE topic y literal User:bob 10.0.0.1",
    )
    figures = figures_of(result)
    assert (figures["questions replayed"], figures["events replayed"]) == (6, 8)
    assert figures["allowed events proven"] == 6
    assert figures["denied events that would be allowed"] == 0
    assert result.alarms == {"opened": 0, "drift": 0}
    assert not [each for each in result.warnings if "any topic" in each]


def test_what_was_used_on_any_topic_alone_is_told_where_the_acls_are_not_known(spark, tmp_path):
    rows = [
        used(resource_name="(any)", operation="WRITE"),
        used(resource_name="(any)", operation="WRITE", principal="User:bob"),
        used(resource_name="t", operation="WRITE", principal="User:bob"),
    ]
    inputs = inputs_of(spark, tmp_path, rows, days=1)
    result = recommend.run(inputs)
    assert list(recommended(inputs).acls) == acls("allow WRITE topic t literal User:bob")
    (unmet,) = table_of(result, "Used, but no ACL can be recommended")
    assert (unmet["Principal"], unmet["Resource"]) == ("User:alice", "(any)")
    assert "the current ACLs are not given" in unmet["Reason"]
    assert figures_of(result)["allowed events that would be denied"] == 1
