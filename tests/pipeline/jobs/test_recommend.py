"""The job `recommend`: a small world of which the smallest set of ACLs is known."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.bindings import AclBinding, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.jobs import recommend
from aclbroker.pipeline.jobs.recommend.options import RecommendOptions
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.use import figures_of, inputs_of, table_of, used

RULES = Ruleset(
    ordered(
        acls(
            "allow ALL topic * literal User:alice",
            "allow READ topic pay. prefixed User:*",
            "allow READ topic vault literal User:bob 10.0.0.7",
            "allow READ group * literal User:alice",
            "allow WRITE topic news literal Group:press",
            "allow ALL cluster kafka-cluster literal User:alice",
            "allow ALL topic * literal User:broker",
            "allow ALL topic * literal User:gone",
            "deny READ topic pay.secret literal User:*",
            "deny DESCRIBE topic logs literal User:alice",
            "deny DELETE topic * literal User:*",
        )
    ),
    super_users=frozenset(["User:root"]),
    broker_users=BrokerUsers(frozenset(["User:broker"]), "INTERNAL"),
)

ROWS = [
    # alice reads three of the four topics below orders., and writes one of them
    *(used(resource_name=f"orders.{name}", events=10) for name in ("eu", "us", "ca")),
    used(resource_name="orders.eu", operation="DESCRIBE", host="10.0.0.9"),
    used(resource_name="orders.eu", operation="WRITE", day=3),
    used(resource_name="orders.eu", operation="WRITE", day=3, events=2),
    # stock. has one topic that alice did not read
    *(used(resource_name=f"stock-{number}") for number in range(3)),
    used(resource_name="stock-9", operation="WRITE", principal="User:broker", listener="PUBLIC"),
    # pay. has one that everyone is denied
    *(used(resource_name=f"pay.{name}", principal="User:carol") for name in ("a", "b", "c")),
    used(resource_name="pay.secret", principal="User:carol", allowed=False, events=5),
    used(resource_name="logs"),
    used(resource_name="logs", operation="DESCRIBE", allowed=False),
    used(resource_name="vault", principal="User:bob", host="10.0.0.7"),
    used(resource_name="vault", principal="User:bob", host="10.0.0.8", allowed=False),
    used(resource_name="app", resource_type="GROUP"),
    used(resource_name="kafka-cluster", resource_type="CLUSTER", operation="CREATE"),
    used(resource_name="news", principal="User:dan", other_principals='["Group:press"]',
         operation="WRITE"),
    used(resource_name=None, principal="User:mallory", allowed=False),
    used(resource_name="(any)", operation="WRITE", events=4),
    used(resource_name="(any)", operation="WRITE", principal="User:idle"),
    used(resource_name="pay.x", principal="User:root", rule="SuperUser", events=7),
    used(resource_name="pay.y", principal="User:broker", listener="INTERNAL", events=6),
    # recorded as denied, allowed by now
    used(resource_name="orders.old", principal="User:alice", allowed=False, events=3),
    used(cluster="c2", resource_name="t", events=20),
    used(cluster="c2", resource_name="t", allowed=False, events=2),
    used(cluster="c2", resource_name="u", principal="User:root", rule="SuperUser"),
    used(cluster="c2", resource_name="v", allowed=False),
    used(cluster="c2", resource_name="t", operation="DESCRIBE", allowed=False, events=3),
]  # fmt: skip

EXPECTED = [
    "allow READ topic orders.old literal User:alice",
    "allow READ topic orders.us literal User:alice",
    "allow READ topic orders.ca literal User:alice",
    "allow READ topic orders.eu literal User:alice",
    "allow WRITE topic orders.eu literal User:alice",
    "allow READ topic stock-0 literal User:alice",
    "allow READ topic stock-1 literal User:alice",
    "allow READ topic stock-2 literal User:alice",
    "allow WRITE topic stock-9 literal User:broker",
    "allow READ topic pay.a literal User:carol",
    "allow READ topic pay.b literal User:carol",
    "allow READ topic pay.c literal User:carol",
    "allow READ topic logs literal User:alice",
    "deny DESCRIBE topic logs literal User:alice",
    "allow READ topic vault literal User:bob 10.0.0.7",
    "allow READ group app literal User:alice",
    "allow CREATE cluster kafka-cluster literal User:alice",
    "allow WRITE topic news literal Group:press",
]


def policy_of(inputs, file) -> list[AclBinding]:
    return sorted(parse_policy(Path(inputs.output.place, file).read_text()).acls)


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return inputs_of(
        spark,
        tmp_path_factory.mktemp("recommend"),
        ROWS,
        days=10,
        current={"c1": RULES},
        names={"c1": {ResourceType.TOPIC: frozenset(["stock-8", "unrelated"])}},
    )


@pytest.fixture(scope="module")
def result(inputs):
    return recommend.run(inputs, RecommendOptions(max_drift=100))


def test_the_smallest_set_is_found(inputs, result):
    assert set(result.outputs) >= {"recommend/acls-c1.yaml", "recommend/acls-c1.sh"}
    assert policy_of(inputs, "recommend/acls-c1.yaml") == acls(*EXPECTED)


def test_without_rules_what_was_recorded_is_allowed(inputs, result):
    assert policy_of(inputs, "recommend/acls-c2.yaml") == acls(
        "allow READ topic t literal User:alice"
    )
    (warning,) = (each for each in result.warnings if "c2" in each)
    assert "22 events are of questions that it answers both ways" in warning


def test_everything_that_was_asked_is_proven(result):
    figures = figures_of(result)
    asked = [row for row in ROWS if row["resource_name"] != "u"]
    assert figures["events replayed"] == sum(row["events"] for row in asked)
    assert figures["allowed events that would be denied"] == 0
    assert figures["events of super users"] == 13


def test_what_cannot_be_mended_is_listed(result):
    """READ implies the DESCRIBE that was denied; which DENY did so is not known there."""
    assert figures_of(result)["denied events that would be allowed"] == 3
    assert "decides all but 1 of them as now" in result.summary
    assert any(each.startswith("1 question would be decided") for each in result.warnings)
    (flip,) = table_of(result, "What would be decided otherwise")
    assert (flip["Cluster"], flip["Resource"], flip["Allowed now"]) == ("c2", "t", False)
    assert "recommend/flips" in result.outputs


def test_the_current_set_is_compared(result):
    figures = figures_of(result)
    assert figures["ACLs now"] == 11
    assert figures["ACLs recommended"] == 19
    assert figures["rights opened"] == 0
    assert figures["rights closed"] > 0


def test_it_is_proven_to_open_nothing(inputs, result):
    assert "In c1 it opens nothing: proven for every request, asked or not." in result.summary
    # Of c2 it is not known.
    assert result.alarms == {"drift": 4}
    table = inputs.spark.read.parquet(f"{inputs.output.place}/recommend/opened")
    rows = [row.asDict() for row in table.collect()]
    assert {(row["cluster"], row["change"], row["is_asked"]) for row in rows} == {
        ("c1", "closed", False)
    }
    assert sum(row["rights"] for row in rows) == figures_of(result)["rights closed"]
    (gone,) = (row for row in rows if "User:gone" in row["principals"] and row["name"] == "*")
    assert gone["resource_type"] == "TOPIC"
    assert "recommend/prefixes" not in result.outputs
    titles = [table.title for table in result.tables]
    assert "Closed: what is allowed now, and would not be" in titles
    assert "Opened: what would be allowed, and is not now" not in titles


def test_the_report_shows_the_first_rights_that_are_closed_and_counts_all(
    spark, inputs, result, tmp_path
):
    other = replace(inputs, output=Output(spark, str(tmp_path)))
    short = recommend.run(other, RecommendOptions(top=2, max_drift=100))
    title = "Closed: what is allowed now, and would not be"
    (all_of_them,), (first,) = (
        [table for table in each.tables if table.title == title] for each in (result, short)
    )
    assert len(first.rows) == 2 < len(all_of_them.rows)
    written = spark.read.parquet(f"{tmp_path}/recommend/opened").count()
    assert first.total == all_of_them.total == written == len(all_of_them.rows)
    assert figures_of(short)["rights closed"] == figures_of(result)["rights closed"]


@pytest.fixture(scope="module")
def with_prefixes(spark, inputs, tmp_path_factory):
    place = tmp_path_factory.mktemp("prefixes")
    other = replace(inputs, output=Output(spark, str(place)))
    return other, recommend.run(other, RecommendOptions(prefixes=True, max_drift=100))


def test_prefixes_are_made_where_they_are_asked_for(with_prefixes):
    """alice may read all topics now, so that the prefix opens none."""
    inputs, result = with_prefixes
    kept = [text for text in EXPECTED if "READ topic orders." not in text]
    assert policy_of(inputs, "recommend/acls-c1.yaml") == acls(
        *kept, "allow READ topic orders. prefixed User:alice"
    )
    assert figures_of(result)["rights opened"] == 0


def test_prices_are_listed(with_prefixes):
    inputs, result = with_prefixes
    table = inputs.spark.read.parquet(f"{inputs.output.place}/recommend/prefixes")
    rows = {row["prefix"]: row.asDict() for row in table.collect()}
    assert rows["orders."]["taken"]
    assert rows["orders."]["price"] == 0
    assert rows["orders."]["opens"] == []
    assert (rows["stock-"]["price"], rows["stock-"]["newly_allowed"]) == (2, ["stock-8", "stock-9"])
    assert rows["stock-"]["why_not"] == "its price is above 0"
    assert rows["pay."]["price"] > 0
    (shown,) = (row for row in table_of(result, "Prefixes considered") if row["Why not"] == "")
    assert (shown["Principal"], shown["Prefix"], shown["Names"]) == ("User:alice", "orders.", 4)


def test_tables_say_what_becomes_of_each_acl_and_each_principal(inputs, result):
    def rows(name):
        table = inputs.spark.read.parquet(f"{inputs.output.place}/recommend/{name}")
        return [row.asDict() for row in table.collect()]

    changes = [(row["cluster"], row["change"]) for row in rows("changes")]
    # Three of the current ACLs are as small as can be, or protect.
    assert changes.count(("c1", "kept")) == 3
    assert changes.count(("c1", "removed")) == len(RULES.acls) - 3
    assert changes.count(("c1", "added")) == len(EXPECTED) - 3
    assert changes.count(("c2", "added")) == 1
    principals = {row["principal"]: row for row in rows("principals") if row["cluster"] == "c1"}
    assert (principals["User:gone"]["acls"], principals["User:gone"]["recommended"]) == (1, 0)
    assert not principals["User:gone"]["is_seen"]
    assert principals["User:alice"]["is_seen"]
    clusters = {row["cluster"]: row for row in rows("clusters")}
    assert (clusters["c1"]["opened"], clusters["c2"]["opened"]) == (0, None)
    assert (clusters["c1"]["acls"], clusters["c2"]["acls"]) == (len(RULES.acls), None)
    assert {table.source for table in result.tables} <= result.outputs.keys()


def test_what_is_doubtful_is_said(result):
    warnings = "\n".join(result.warnings)
    assert "1 principal with ALLOWs asked for nothing" in warnings
    assert "4 events were decided otherwise than the current rules decide" in warnings


def test_hosts_open_resources_and_dear_prefixes(spark, tmp_path):
    rules = Ruleset(
        ordered(
            acls(
                "allow READ topic a. prefixed User:bob",
                "allow READ topic b literal User:bob",
                "allow READ topic c-4 literal User:bob",
            )
        ),
        super_users=frozenset(["User:root"]),
        allow_everyone_if_no_acl_found=True,
    )
    rows = [
        *(used(resource_name=f"c-{number}", host="10.0.0.1") for number in range(3)),
        used(resource_name="c-3", host="10.0.0.2", principal="User:bob"),
        used(resource_name="c-4", allowed=False, host="10.0.0.1"),
        *(used(resource_name=f"long.{number}", principal="User:bob", host="10.0.0.2")
          for number in range(3)),
        used(resource_name="long.4", principal="User:many", host="10.0.0.3"),
        used(resource_name="long.4", principal="User:many", host="10.0.0.4"),
        used(resource_name="a.x", allowed=False, principal="User:mallory"),
    ]  # fmt: skip
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": rules})
    options = RecommendOptions(hosts=True, most_hosts=1, maximum_price=5, minimum_length=2)
    result = recommend.run(inputs, options)
    # long.0 to long.2 are open to everyone now, and so are others that begin so.
    assert result.alarms == {"opened": 0, "drift": 0}
    assert "It opens nothing: proven for every request" in result.summary
    assert figures_of(result)["allowed events that would be denied"] == 0
    assert figures_of(result)["denied events that would be allowed"] == 0
    assert "recommend/flips" not in result.outputs
    # c- would be dear enough, but one of its names is denied
    assert policy_of(inputs, "recommend/acls.yaml") == acls(
        "allow READ topic c-0 literal User:alice 10.0.0.1",
        "allow READ topic c-1 literal User:alice 10.0.0.1",
        "allow READ topic c-2 literal User:alice 10.0.0.1",
        "allow READ topic c-3 literal User:bob 10.0.0.2",
        "allow READ topic long. prefixed User:bob 10.0.0.2",
        "allow READ topic long.4 literal User:many",
        "allow DESCRIBE topic a. prefixed User:root",
        "allow DESCRIBE topic b literal User:root",
        "allow DESCRIBE topic c-4 literal User:root",
    )


def test_a_log_without_allowed_events_is_refused(inputs):
    window = replace(inputs.window, allowed=0)
    with pytest.raises(InputError, match="the log has no allowed event"):
        recommend.run(replace(inputs, window=window))


def test_options_are_checked():
    with pytest.raises(ValueError, match="most_hosts must be at least 1, not 0"):
        RecommendOptions(most_hosts=0)
    with pytest.raises(ValueError, match="minimum_names must be at least 2, not 1"):
        RecommendOptions(minimum_names=1)


def test_what_a_prefix_opens_is_told(spark, tmp_path):
    """Four topics of its own become a prefix, and a secret one with them.

    Of a principal that is called as everyone is in ACLs, what was used cannot be granted.
    """
    names = [f"app.{name}" for name in "abcd"]
    rules = Ruleset(
        ordered(acls(*(f"allow READ topic {name} literal User:alice" for name in names)))
    )
    rules = rules.with_acls([*rules.acls, *acls("allow READ topic t literal User:*")])
    rows = [
        *(used(resource_name=name) for name in names),
        used(resource_name="t", principal="User:*"),
    ]
    inputs = inputs_of(
        spark,
        tmp_path,
        rows,
        days=1,
        current={"c1": rules},
        names={"c1": {ResourceType.TOPIC: frozenset(["app.secret"])}},
    )
    assert recommend.run(inputs).alarms == {"opened": 0, "drift": 0}
    assert policy_of(inputs, "recommend/acls.yaml") == acls(
        *(f"allow READ topic {name} literal User:alice" for name in names)
    )
    result = recommend.run(inputs, RecommendOptions(maximum_price=1))
    (closed,) = table_of(result, "Closed: what is allowed now, and would not be")
    assert (closed["Principals"], closed["Resources"]) == ("everyone", "TOPIC t")
    assert closed["Asked for"] == "yes"
    assert policy_of(inputs, "recommend/acls.yaml") == acls(
        "allow READ topic app. prefixed User:alice"
    )
    assert result.alarms == {"opened": 2, "drift": 0}
    assert "It opens 2 rights that nobody asked for, such as User:alice from" in result.summary
    (shown,) = table_of(result, "Opened: what would be allowed, and is not now")
    assert shown["Resources"] == "TOPIC app.* but app.a, app.b, app.c and 1 more"
    assert (shown["Operations"], shown["Hosts"]) == ("READ, DESCRIBE", "any host")
    (prefix,) = table_of(result, "Prefixes considered")
    assert (prefix["Newly allowed"], prefix["Opens"]) == (
        "app.secret",
        "TOPIC app.* but app.a, app.b, app.c, app.d",
    )
