"""The jobs `unused` and `redundant`: what they find, write and refuse."""

from argparse import ArgumentTypeError
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow.parquet

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id, ordered
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.jobs import redundant, unused
from aclbroker.pipeline.jobs.unused.keeping import kept_principals, kept_resources
from aclbroker.pipeline.jobs.unused.options import UnusedOptions
from aclbroker.pipeline.replay.removal import proven
from tests.acl.examples import ALL, PREFIXED, READ, allow, deny
from tests.pipeline.analysis.test_use import (
    ALICE_DOES_ALL,
    ALICE_READS,
    ALICE_WRITES_PAY,
    ALL_READ_NEWS,
    BOB_WRITES,
    NOT_BOB,
    NOT_BOB_ORDERS,
    NOT_DAVE,
    PLANTED,
)
from tests.pipeline.use import figures_of, inputs_of, table_of, used

YOUNG = allow("User:erin", READ, "new")
ROWS = [
    used(day=2, events=70),
    used(day=8, events=7, operation="DESCRIBE", quiet=True),
    used(day=1, events=5, operation="WRITE", resource_name="orders.eu", host="10.0.0.2"),
    used(day=3, events=4, principal="User:carol", resource_name="news"),
    used(day=5, events=3, principal="User:bob", resource_name="news", allowed=False),
    used(day=6, events=2, principal="User:bob", resource_name="orders", allowed=False),
    used(day=7, events=1, principal="User:mallory", resource_name=None, allowed=False),
    # Only the ACLs that nobody else uses would allow these, but they need none.
    used(day=7, events=9, principal="User:root", resource_name="pay", rule="SuperUser"),
    used(day=7, events=6, principal="User:broker", resource_name="pay", listener="INTERNAL"),
    used(cluster="other", events=40),
    used(cluster="open", principal="User:mallory", events=30, allowed=False),
    used(cluster="open", principal="User:zoe", resource_name="free", events=20),
    used(cluster="unknown", events=1000),
]
RULES = Ruleset(
    ordered([*PLANTED, YOUNG, allow("User:root", READ, "pay"), allow("User:broker", READ, "pay")]),
    super_users=frozenset(["User:root"]),
    broker_users=BrokerUsers(frozenset(["User:broker"]), "INTERNAL"),
)
OTHER = Ruleset((ALICE_READS,))
OPEN = Ruleset(ordered([ALICE_READS, ALICE_WRITES_PAY]), allow_everyone_if_no_acl_found=True)


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return inputs_of(
        spark,
        tmp_path_factory.mktemp("jobs"),
        ROWS,
        days=9,
        current={"c1": RULES, "other": OTHER, "open": OPEN},
        earlier={"c1": RULES.with_acls(set(RULES.acls) - {YOUNG})},
    )


@pytest.fixture(scope="module")
def result(inputs):
    return unused.run(inputs)


def rows_by_acl(inputs, result, cluster, *columns):
    assert "unused/acls" in result.outputs
    table = inputs.spark.read.parquet(f"{inputs.output.place}/unused/acls")
    rows = table.where(F.col("cluster") == cluster).collect()
    return {row["acl_id"]: tuple(row[name] for name in columns) for row in rows}


def test_planted_acls_are_found_and_no_others(inputs, result):
    found = rows_by_acl(inputs, result, "c1", "use", "removable", "events", "decisive_events")
    assert found == {
        acl_id(acl): values
        for acl, values in {
            ALICE_READS: ("never decisive", True, 77, 0),
            ALICE_DOES_ALL: ("needed", False, 82, 5),
            ALICE_WRITES_PAY: ("unmatched", True, 0, 0),
            BOB_WRITES: ("unmatched", True, 0, 0),
            ALL_READ_NEWS: ("needed", False, 7, 4),
            NOT_BOB: ("needed", False, 3, 3),
            NOT_DAVE: ("unmatched", False, 0, 0),
            NOT_BOB_ORDERS: ("never decisive", True, 2, 0),
            YOUNG: ("unmatched", False, 0, 0),
            allow("User:root", READ, "pay"): ("unmatched", True, 0, 0),
            allow("User:broker", READ, "pay"): ("unmatched", True, 0, 0),
        }.items()
    }
    found = rows_by_acl(inputs, result, "other", "use", "stays_because", "last_day")
    assert found == {acl_id(ALICE_READS): ("needed", "needed", date(2026, 3, 1))}
    found = rows_by_acl(inputs, result, "open", "use", "stays_because", "decisive_events")
    assert found == {
        acl_id(ALICE_READS): ("needed", "needed", 30),
        acl_id(ALICE_WRITES_PAY): (
            "unmatched",
            "the last one that keeps a resource closed",
            0,
        ),
    }


def test_what_remains_is_written_with_the_commands_that_lead_there(inputs, result):
    place = inputs.output.place
    policies = {
        cluster: parse_policy(Path(f"{place}/unused/remaining-{cluster}.yaml").read_text())
        for cluster in ("c1", "other")
    }
    assert [policies[cluster].cluster for cluster in policies] == ["c1", "other"]
    assert set(policies["c1"].acls) == {ALICE_DOES_ALL, ALL_READ_NEWS, NOT_BOB, NOT_DAVE, YOUNG}
    assert set(policies["other"].acls) == {ALICE_READS}
    commands = Path(f"{place}/unused/remaining-c1.sh").read_text().splitlines()
    assert sum("--remove --force" in line for line in commands) == 6
    assert not any("--add" in line for line in commands)
    assert {name for name in result.outputs if name.startswith("unused/remaining-c1")} == {
        "unused/remaining-c1.yaml",
        "unused/remaining-c1.sh",
    }


def test_the_summary_has_the_proof(result):
    assert result.summary == (
        "6 of 14 ACLs can be removed together: that opens nothing (proven for every request, asked "
        "or not), and in the log from 2026-03-01 to 2026-03-09 none of 197 events would have been "
        "decided otherwise. It closes 6 rights that nobody used."
    )
    assert result.alarms == {"unused": 6, "drift": 0, "opened": 0}
    figures = figures_of(result)
    assert figures["Rights opened without them"] == 0
    assert figures["Events decided otherwise without them"] == 0
    assert figures["DENYs that protect"] == 1
    assert figures["ACLs younger than the log"] == 1
    assert figures["Events of super users"] == 15
    (shown,) = table_of(result, "DENYs that stay, though no event met them")
    assert shown["ACL"] == "DENY READ on TOPIC LITERAL news to User:dave from *"
    assert shown["Why"] == "it denies what an ALLOW that stays allows"
    (shown,) = table_of(result, "DENYs that can go together with the ALLOWs")
    assert shown["ACL"] == "DENY READ on TOPIC LITERAL orders to User:bob from *"
    assert shown["Why"] == "It takes back nothing: no ACL allows any of it."
    assert len(table_of(result, "ALLOWs that can go together")) == 5
    losing, young = result.warnings
    assert losing.startswith(
        "1 principal would lose all their ALLOWs, because no event met any of "
    )
    assert "User:bob. Disaster recovery" in losing
    assert young.endswith("may look unused (clusters open, other).")
    (row,) = table_of(result, "Principals that lose all their ALLOWs")
    assert (row["Cluster"], row["Principal"], row["ALLOWs"]) == ("c1", "User:bob", 1)


def test_what_is_closed_is_told_and_nothing_is_opened(inputs, result):
    assert "unused/opened" in result.outputs
    rows = inputs.spark.read.parquet(f"{inputs.output.place}/unused/opened").collect()
    assert {row["change"] for row in rows} == {"closed"}
    assert {(row["cluster"], *row["principals"], row["name"]) for row in rows} == {
        ("c1", "User:alice", "pay"),
        ("c1", "User:bob", "orders"),
        ("c1", "User:broker", "pay"),
    }
    assert sum(row["rights"] for row in rows) == 6
    assert len(table_of(result, "Closed: what is allowed now, and would not be")) == len(rows)


def test_a_log_without_allowed_events_is_refused(inputs):
    nothing = replace(inputs, window=replace(inputs.window, allowed=0))
    with pytest.raises(InputError, match="Set the level of Kafka's"):
        unused.run(nothing)
    with pytest.raises(InputError, match=r"cluster silent is left out: its log has no allowed"):
        unused.run(replace(inputs, current={"silent": OTHER}))
    with pytest.raises(InputError, match="--acls"):
        unused.run(replace(inputs, current={}))


def test_a_cluster_whose_log_tells_nothing_is_left_out_and_the_others_are_answered(spark, tmp_path):
    rows = [
        used(events=70),
        used(cluster="denials", principal="User:mallory", events=9, allowed=False),
        used(cluster="otherwise", principal="User:bob", events=100),
    ]
    idle = allow("User:zoe", READ, "idle")
    rules = Ruleset(ordered([ALICE_READS, idle]))
    clusters = ["c1", "denials", "otherwise", "silent"]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current=dict.fromkeys(clusters, rules))
    result = unused.run(inputs)
    assert result.alarms == {"unused": 1, "drift": 100, "opened": 0}
    assert result.summary.startswith("1 of 2 ACLs can be removed together")
    assert result.summary.endswith(" Of 4 clusters, 3 are left out.")
    assert sorted(result.left_out) == ["denials", "otherwise", "silent"]
    assert result.left_out["denials"] == result.left_out["silent"]
    assert "Set the level of Kafka's" in result.left_out["silent"]
    assert "of 100 events in its log, 100 were" in result.left_out["otherwise"]
    assert result.warnings[0].startswith("2 clusters (denials, silent) are left out: its log has")
    assert result.warnings[1].startswith("Cluster otherwise is left out: of 100 events")
    assert [row["Cluster"] for row in table_of(result, "Clusters left out")] == clusters[1:]

    for cluster in clusters:
        text = Path(f"{tmp_path}/unused/remaining-{cluster}.yaml").read_text()
        left = {ALICE_READS} if cluster == "c1" else {ALICE_READS, idle}
        assert set(parse_policy(text).acls) == left
        commands = Path(f"{tmp_path}/unused/remaining-{cluster}.sh").read_text()
        assert ("--remove" in commands) == (cluster == "c1")
    rows = spark.read.parquet(f"{tmp_path}/unused/acls").collect()
    assert {row["cluster"] for row in rows} == {"c1"}


def test_uses_that_only_filter_an_answer_can_be_left_out(spark, tmp_path):
    rows = [
        used(operation="WRITE", events=5),
        used(principal="User:bob", operation="DESCRIBE", api="Metadata", quiet=True, events=3),
    ]
    rules = Ruleset(ordered([ALICE_DOES_ALL, BOB_WRITES]))
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": rules})
    assert figures_of(unused.run(inputs))["Removable together"] == 0
    result = unused.run(inputs, UnusedOptions(filtering=False))
    assert figures_of(result)["Removable together"] == 1
    assert result.warnings[-1].startswith("3 decisions that only filter an answer change")


def test_a_keep_list_keeps_the_acls_of_principals_and_on_resources(spark, tmp_path):
    recovery = allow("User:dr-mirror", READ, "all.", pattern_type=PREFIXED)
    of_pattern = allow("User:zoe", READ, "dr.", pattern_type=PREFIXED)
    # This DENY limits an unused ALLOW that the keep-list keeps.
    denial = deny("User:dr-mirror", READ, "all.secret")
    quarterly = allow("User:quarter", READ, "sales")
    rules = Ruleset(ordered([ALICE_READS, recovery, of_pattern, denial, quarterly]))
    inputs = inputs_of(spark, tmp_path, [used(events=9)], days=1, current={"c1": rules})
    assert unused.run(inputs).alarms["unused"] == 4
    options = {
        "keep": [*kept_principals("User:dr-*"), *kept_principals("User:gone")],
        "keep_resources": kept_resources("topic:dr.*"),
        "by_principal": True,
    }
    result = unused.JOB.answer(inputs, options)
    found = rows_by_acl(inputs, result, "c1", "removable", "stays_because")
    assert found == {
        acl_id(ALICE_READS): (False, "needed"),
        acl_id(recovery): (False, "on the keep-list"),
        acl_id(denial): (False, "on the keep-list"),
        acl_id(of_pattern): (False, "on the keep-list"),
        acl_id(quarterly): (True, None),
    }
    (row,) = table_of(result, "Principals that lose all their ALLOWs")
    assert row["Principal"] == "User:quarter"
    assert "The keep-list names what no ACL is about: User:gone." in result.warnings
    assert figures_of(result)["ACLs on the keep-list"] == 3
    # Spark itself reads the largest file first, whatever the names of the files are.
    written = pyarrow.parquet.read_table(f"{tmp_path}/unused/acls", columns=["principal"])
    principals = written["principal"].to_pylist()
    assert principals == sorted(principals)


def test_what_is_no_principal_or_resource_to_keep_is_refused(tmp_path):
    file = tmp_path / "keep"
    file.write_text("\ufeff# quarterly\r\nUser:quarter\r\n\r\nUser:a b-*\r\n", newline="")
    assert [each.text for each in kept_principals(f"@{file}")] == ["User:quarter", "User:a b-*"]
    with pytest.raises(ArgumentTypeError, match="'alice' is no principal such as User:app"):
        kept_principals("alice")
    with pytest.raises(ArgumentTypeError, match=r"no resource such as topic:dr\.\*; .* topic, "):
        kept_resources("topics:dr")
    with pytest.raises(ArgumentTypeError, match="missing cannot be read"):
        kept_resources(f"@{tmp_path}/missing")


def test_what_was_wrongly_taken_for_superfluous_is_put_back(inputs):
    removal = proven(inputs.usage, {"c1": RULES}, {"c1": set(PLANTED)})
    # Of what alice may read, both are back: each of the two is behind what changed. What is allowed
    # to everybody again must not be so to those who are denied it, whether they asked or not.
    back = {ALICE_READS, ALICE_DOES_ALL, ALL_READ_NEWS, NOT_BOB, NOT_DAVE}
    assert removal.put_back == {"c1": back}
    gone = {ALICE_WRITES_PAY, BOB_WRITES, NOT_BOB_ORDERS}
    assert gone.isdisjoint(removal.remaining["c1"].acls)


def test_redundant_acls_and_contradictions_are_written_and_proven(inputs):
    inner = allow("User:bob", ALL, "orders", pattern_type=PREFIXED)
    outer = allow("User:*", ALL, "ord", pattern_type=PREFIXED)
    taken_back = allow("User:zoe", READ, "news")
    denial = deny("User:zoe", ALL, "n", pattern_type=PREFIXED)
    acls = ordered([*PLANTED, inner, outer, taken_back, denial])
    result = redundant.run(replace(inputs, current={"c1": Ruleset(acls)}))
    text = Path(f"{inputs.output.place}/redundant/remaining.yaml").read_text()
    gone = {ALICE_READS, ALICE_DOES_ALL, BOB_WRITES, inner}
    assert set(acls) - set(parse_policy(text).acls) == gone
    assert result.summary == (
        "4 of 12 ACLs are covered by others and can be removed together: that opens nothing, and "
        "closes nothing: proven for every request, asked or not; none of 107 events flips."
    )
    assert table_of(result, "ALLOWs that never decide") == [
        {
            "ALLOW": "ALLOW READ on TOPIC LITERAL news to User:zoe from *",
            "Denied by": "DENY ALL on TOPIC PREFIXED n to User:zoe from *",
            "Why": "It never allows anything: DENYs, which come first, hold for all that it "
            "allows.",
        }
    ]
    table = inputs.spark.read.parquet(f"{inputs.output.place}/redundant/covered")
    covers = {row["acl_id"]: row["covered_by_ids"] for row in table.collect()}
    assert covers[acl_id(inner)] == [acl_id(outer)]
    table = inputs.spark.read.parquet(f"{inputs.output.place}/redundant/contradictions")
    denied = {row["acl_id"]: (row["denied_by_ids"], row["entire"]) for row in table.collect()}
    assert denied[acl_id(taken_back)] == ([acl_id(denial)], True)
    assert result.alarms == {"opened": 0}


OF_SUBNETS = Ruleset(ordered(allow(f"User:{name}", host="10.0.0.0/8") for name in "abcdef"))


def test_a_log_that_the_rules_do_not_explain_is_refused_with_the_likeliest_cause(spark, tmp_path):
    rows = [
        *(used(principal=f"User:{name}", events=10) for name in "abcdef"),
        used(principal="User:admin", rule="SuperUser", events=4),
    ]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": OF_SUBNETS})
    with pytest.raises(InputError) as refused:
        unused.run(inputs)
    assert refused.value.alarms == {"drift": 64}
    text = str(refused.value)
    assert "cluster c1 is left out: of 64 events in its log, 64 were decided otherwise" in text
    assert "--max-drift allows 1 of 100. Likeliest cause: in cluster c1, 6 ACLs name" in text
    assert "without --cidr, with which 60 more events are decided as logged; " in text
    assert "4 events were allowed to super users that are not given as such: User:admin" in text

    told = replace(inputs, current={"c1": replace(OF_SUBNETS, cidr=True)})
    with pytest.raises(InputError, match=r"4 were decided otherwise .* User:admin$"):
        unused.run(told)
    result = unused.run(told, UnusedOptions(max_drift=6.25))
    assert result.alarms == {"unused": 0, "drift": 4, "opened": 0}
    assert "4 events were decided otherwise than the current rules decide" in result.warnings[0]


def test_an_acl_that_alone_explains_an_allowed_event_stays_below_the_bound(spark, tmp_path):
    of_subnet, other = allow("User:bob", host="10.0.0.0/8"), allow("User:zoe", host="10.0.0.0/8")
    rules = Ruleset(ordered([ALICE_READS, of_subnet, other]))
    rows = [used(events=500), used(principal="User:bob", events=5)]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": rules})
    result = unused.run(inputs)
    found = rows_by_acl(inputs, result, "c1", "removable", "stays_because", "goes_because")
    assert found == {
        acl_id(ALICE_READS): (False, "needed", None),
        acl_id(of_subnet): (
            False,
            "the log has allowed events that it explains and the rules given deny",
            None,
        ),
        acl_id(other): (True, None, "No event met it."),
    }
    assert result.alarms == {"unused": 1, "drift": 5, "opened": 0}
